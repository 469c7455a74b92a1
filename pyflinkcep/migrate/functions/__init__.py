# SPDX-License-Identifier: Apache-2.0
"""Translates select, process and timeout functions, and comparators."""

from pyflinkcep.migrate.functions.function import translate_comparator, translate_function

__all__ = ["translate_comparator", "translate_function"]
