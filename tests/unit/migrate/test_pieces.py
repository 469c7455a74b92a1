# SPDX-License-Identifier: Apache-2.0
"""Pieces of what is written: names, constants, regular expressions, columns, notes."""

from __future__ import annotations

from typing import Any

import pytest

from pyflinkcep.migrate.functions.rows import ddl_of, joined_columns
from pyflinkcep.migrate.java.declarations import JavaType
from pyflinkcep.migrate.java.project import Project
from pyflinkcep.migrate.meaning.literals import Inside, constant, f_string, python_regex
from pyflinkcep.migrate.meaning.python import checked_names, tag_constant
from pyflinkcep.migrate.meaning.reading import Findings, snake_case
from pyflinkcep.migrate.meaning.translated import Note, gathered, null_note
from pyflinkcep.migrate.meaning.tree import Untranslatable

NULLS = [Note("A.java", line, null_note(name)) for line, name in ((3, "x"), (2, "y"))]
PIECES: list[tuple[Any, Any]] = [
    ([constant("it's"), constant('say "no"')], ['"it\'s"', "'say \"no\"'"]),
    ([constant("\\ \0"), constant(float("inf"))], ['"\\\\ \\x00"', 'float("inf")']),
    (f_string(['say "', Inside("name"), '" {}']), 'f"say \\"{name}\\" {{}}"'),
    (python_regex(r"\d+-.*"), "\\d+-[^\\n\\r\\u0085\\u2028\\u2029]*"),
    (python_regex(r"[a-z&&[^b]]"), None),
    (tag_constant("still-hot"), "STILL_HOT"),
    ([snake_case("isHotTemperature"), snake_case("URLCount")], ["is_hot_temperature", "url_count"]),
    (snake_case("MAX_SIZE"), "max_size"),
    ([(note.line, note.what[:20]) for note in gathered(NULLS)], [(2, "where x or y is null")]),
    (
        joined_columns({"a": "struct<x:int>"}, [("a", "struct<y:string>"), ("b", "int")]),
        {"a": "struct<x:int,y:string>", "b": "int"},
    ),
    (
        ddl_of(JavaType("Tuple2", (JavaType("String"), JavaType("Long"))), Project(), None),
        "f0 string, f1 bigint",
    ),
    (ddl_of(JavaType("String"), Project(), None), "value string"),
]


@pytest.mark.parametrize(("found", "expected"), PIECES)
def test_pieces(found: Any, expected: Any) -> None:
    """Each piece is written as the module that it stands in needs it."""
    assert found == expected


def test_names_that_nothing_defines_are_found() -> None:
    """Of Java that is broken a body may read what is nowhere."""
    with pytest.raises(Untranslatable, match="the value of e is not known here"):
        checked_names(["return event.n + e.n"], ["event"], Findings())
