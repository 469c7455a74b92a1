# SPDX-License-Identifier: Apache-2.0
"""Translates conditions and selectors of events."""

from pyflinkcep.migrate.conditions.condition import translate_condition, translate_value

__all__ = ["translate_condition", "translate_value"]
