# SPDX-License-Identifier: Apache-2.0
"""
Writes the table of ``what-runs-where.md`` from the package's own tables: ``make pictures``.

What runs on Sail is asked of the planner, with the expressions whose values the tests compare with
Spark's.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from unittest.mock import patch

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from pyspark.sql.pandas.types import from_arrow_schema  # noqa: E402

from pyflinkcep import CepError, Pattern, match  # noqa: E402
from pyflinkcep.expressions.aggregates import AGGREGATES  # noqa: E402
from pyflinkcep.expressions.parser import event_tree  # noqa: E402
from pyflinkcep.expressions.sql_functions import CASTS  # noqa: E402
from pyflinkcep.expressions.sql_functions import FUNCTIONS as OF_ONE_EVENT  # noqa: E402
from pyflinkcep.expressions.tree import FUNCTIONS as OF_SEVERAL  # noqa: E402
from pyflinkcep.spark.plan.conditions import names_of  # noqa: E402
from pyflinkcep.spark.plan.portable import Setting, portable  # noqa: E402
from tests.sail.spark_values import EVENTS, recorded  # noqa: E402

PAGE = HERE / "what-runs-where.md"
BEGIN, END = "<!-- functions -->\n", "<!-- end of functions -->\n"
_YES, _NO = "yes", "–"
_SAIL = Setting("Sail", True, True)
_ARGUMENTS = {
    "s": ("s",), "x": ("x",), "i": ("1",), "d": ("day",), "z": ("t",), "c": ("t",),
    ".": ("n", "b", "x", "d5", "s", "xs", "mp", "t"),
}  # fmt: skip
"""Columns to try a function with, by what it takes."""


def table() -> str:
    """Return the table as Markdown: functions that are the same everywhere share a line."""
    names = sorted(name for name in {*OF_ONE_EVENT, *OF_SEVERAL, *CASTS} if name.isidentifier())
    answers = list(recorded())
    rows: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        has = (
            name in OF_ONE_EVENT or name in CASTS or any(map(_is_matched, _calls(name, []))),
            any(_is_planned(text) for text in _calls(name, answers)),
            name in OF_SEVERAL,
        )
        rows.setdefault(tuple(_YES if it else _NO for it in has), []).append(name)
    lines = [
        "| functions | in memory | on Sail | over stages |",
        "| --- | --- | --- | --- |",
        *(f"| {_quoted(rows[has])} | {' | '.join(has)} |" for has in sorted(rows)[::-1]),
        f"| {_quoted(list(AGGREGATES))} (of a stage) | yes | yes | yes |",
    ]
    return "\n".join(lines) + "\n"


def _calls(name: str, answers: list[str]) -> Iterator[str]:
    """Yield calls of a function: those whose answers are recorded, of its other names too."""
    row = OF_ONE_EVENT.get(name)
    same = [other for other in OF_ONE_EVENT if row is not None and OF_ONE_EVENT[other] is row]
    for other in {name, *same}:
        called = re.compile(rf"\b{re.escape(other)}\s*\(")
        yield from (called.sub(f"{name}(", text) for text in answers if called.search(text))
    few = OF_SEVERAL[name][1] if name in OF_SEVERAL else 1
    takes, least, most = (row.takes, row.least, row.most) if row else (".", few, few)
    for count in range(least, min(most, 3) + 1):
        letters = (takes + takes[-1] * count)[:count]
        for arguments in product(*(_ARGUMENTS[letter] for letter in letters)):
            yield f"{name}({', '.join(arguments)})"


def _is_matched(text: str) -> bool:
    try:
        with patch(
            "pyflinkcep.tables.sql._running_session", return_value=None
        ):  # which computes all
            match(Pattern.begin("a").where(f"({text}) IS NOT NULL"), EVENTS.slice(0, 1))
    except CepError:
        return False
    return True


def _is_planned(text: str) -> bool:
    try:
        portable(event_tree(text), names_of(from_arrow_schema(EVENTS.schema)), _SAIL)
    except CepError:
        return False
    return True


def _quoted(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def page() -> str:
    """Return the page with the table as it is now."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}{table()}{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
