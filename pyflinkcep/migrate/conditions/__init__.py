# SPDX-License-Identifier: Apache-2.0
"""Translates conditions and selectors of events."""

from pyflinkcep.migrate.conditions.condition import (
    joined_columns,
    translate_condition,
    translate_value,
)

__all__ = ["joined_columns", "translate_condition", "translate_value"]
