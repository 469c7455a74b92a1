# SPDX-License-Identifier: Apache-2.0
"""
Rules as data: files of rules with tests in them, patterns from and to documents.

``python -m pyflinkcep.rules check FOLDER`` reads all rules of a folder and runs their tests.
"""

from pyflinkcep.rules.document import DocumentError
from pyflinkcep.rules.rule import Rule, RuleTest
from pyflinkcep.rules.rule_file import Checked, RuleFileError, checkRules, readRules

__all__ = [
    "Checked",
    "DocumentError",
    "Rule",
    "RuleFileError",
    "RuleTest",
    "checkRules",
    "readRules",
]
