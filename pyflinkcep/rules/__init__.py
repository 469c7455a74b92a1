# SPDX-License-Identifier: Apache-2.0
"""
Rules as data: files of rules with tests in them, patterns from and to documents.

``python -m pyflinkcep.rules check FOLDER`` reads all rules of a folder and runs their tests.
"""

from typing import TYPE_CHECKING, Any

from pyflinkcep.rules.document import DocumentError
from pyflinkcep.rules.rule import Rule, RuleTest
from pyflinkcep.rules.rule_file import Checked, RuleFileError, checkRules, readRules
from pyflinkcep.rules.rule_log import Following, RuleLog
from pyflinkcep.rules.rules_in_force import RuleChange, RuleInForce, RuleProblem
from pyflinkcep.rules.sigma_correlation import SigmaCorrelation

if TYPE_CHECKING:
    from pyflinkcep.rules.rule_matches import RuleMatch, RuleMatches

__all__ = [
    "Checked",
    "DocumentError",
    "Following",
    "Rule",
    "RuleChange",
    "RuleFileError",
    "RuleInForce",
    "RuleLog",
    "RuleMatch",
    "RuleMatches",
    "RuleProblem",
    "RuleTest",
    "SigmaCorrelation",
    "checkRules",
    "readRules",
]


def __getattr__(name: str) -> Any:
    if name not in ("RuleMatch", "RuleMatches"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pyflinkcep.rules import rule_matches  # which loads Arrow

    return getattr(rule_matches, name)
