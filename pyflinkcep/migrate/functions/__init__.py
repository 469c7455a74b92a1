# SPDX-License-Identifier: Apache-2.0
"""Translates select, process and timeout functions, and comparators."""

from pyflinkcep.migrate.functions.comparator import translate_comparator
from pyflinkcep.migrate.functions.function import translate_function

__all__ = ["translate_comparator", "translate_function"]
