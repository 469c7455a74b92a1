# SPDX-License-Identifier: Apache-2.0
"""``python -m pyflinkcep.migrate SRC… --out FOLDER``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from pyflinkcep.errors import CepError
from pyflinkcep.migrate.migration import migrate, write

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Translate jobs of Flink CEP; return the exit status.

    Parameters
    ----------
    arguments : sequence of str, optional
        Those of the command line by default.
    """
    given = _parser().parse_args(arguments)
    try:
        report = migrate(given.sources)
        if given.out is not None:
            write(report, Path(given.out))
    except CepError as error:
        print(f"pyflinkcep.migrate: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"pyflinkcep.migrate: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    form = {"text": report.as_text, "markdown": report.as_markdown, "json": report.as_json}
    print(form[given.format]().rstrip("\n"))
    return report.status


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
        "--format", choices=("text", "markdown", "json"), default="text", help="of what is printed"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
