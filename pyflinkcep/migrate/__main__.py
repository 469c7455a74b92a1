# SPDX-License-Identifier: Apache-2.0
"""``python -m pyflinkcep.migrate SRC… --out FOLDER``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from pyflinkcep.errors import CepError, InputError
from pyflinkcep.migrate.check.compare import check, read_events, shown
from pyflinkcep.migrate.migration import Migration, migrate, write


def main(arguments: Sequence[str] | None = None) -> int:
    """Translate jobs of Flink CEP; return the exit status."""
    given = _parser().parse_args(arguments)
    try:
        made = migrate(given.sources)
        report = made.report
        if given.out is not None:
            write(report, Path(given.out), force=given.force)
        lines, same = _check(made, given)
    except CepError as error:
        print(f"pyflinkcep.migrate: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"pyflinkcep.migrate: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    form = {"text": report.as_text, "markdown": report.as_markdown, "json": report.as_json}
    print(form[given.format]().rstrip("\n"))
    print(*lines, sep="\n", end="\n" if lines else "")
    return report.status if same else max(report.status, 1)


def _check(made: Migration, given: argparse.Namespace) -> tuple[list[str], bool]:
    """Compare with the original, if that is asked for."""
    if given.check is None:
        return [], True
    if given.flink_jars is None:
        raise InputError("--check needs Flink", "pass the folder of its jars: --flink-jars DIR")
    events = read_events(Path(given.check))
    return shown(check(made.project, made.report.files, events, Path(given.flink_jars)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pyflinkcep.migrate",
        description="Translate jobs of Flink CEP in Java to this library.",
        epilog="exit status: 0 everything is translated, 1 something remains to be written, "
        "2 nothing could be translated",
    )
    parser.add_argument("sources", nargs="+", metavar="SRC", help="files or folders of Java")
    parser.add_argument("--out", metavar="FOLDER", help="where modules and report are written")
    parser.add_argument(
        "--force", action="store_true", help="write over modules that were changed by hand"
    )
    parser.add_argument(
        "--format", choices=("text", "markdown", "json"), default="text", help="of what is printed"
    )
    parser.add_argument(
        "--check",
        metavar="EVENTS.jsonl",
        help="compile and run the original on Flink with these events, and compare the answers",
    )
    parser.add_argument("--flink-jars", metavar="DIR", help="the folder of Flink's jars")
    return parser


if __name__ == "__main__":
    sys.exit(main())
