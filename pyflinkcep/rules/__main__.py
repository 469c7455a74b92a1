# SPDX-License-Identifier: Apache-2.0
"""``python -m pyflinkcep.rules check FOLDER``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from pyflinkcep.errors import CepError, counted
from pyflinkcep.rules.rule_file import checkRules


def main(arguments: Sequence[str] | None = None) -> int:
    """Check files of rules; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m pyflinkcep.rules",
        description="Read files of rules and run the tests in them, without Spark.",
        epilog="exit status: 0 all is well, 1 something is wrong, 2 nothing could be read",
    )
    commands = parser.add_subparsers(required=True, metavar="check")
    check = commands.add_parser("check", help="read all rules and run their tests")
    check.add_argument("path", metavar="FOLDER", help="a folder, or a file")
    given = parser.parse_args(arguments)
    try:
        checked = checkRules(given.path)
    except CepError as error:
        print(f"pyflinkcep.rules: {error}", file=sys.stderr)
        return 2
    for problem in checked.problems:
        hint = "" if problem.hint is None else f" ({problem.hint})"
        print(f"{problem.message}{hint}")
    numbers = (
        counted(len(checked.rules), "rule"),
        counted(checked.tests, "test"),
        counted(len(checked.problems), "problem"),
    )
    print(", ".join(numbers))
    if not checked.rules and not checked.problems:
        return 2
    return 1 if checked.problems else 0


if __name__ == "__main__":
    sys.exit(main())
