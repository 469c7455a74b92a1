# SPDX-License-Identifier: Apache-2.0
"""What a project of Java declares: classes, members, constants, schemas."""

from __future__ import annotations

import math
from typing import Any

import pytest

from pyflinkcep.migrate.chains.walker import Walker
from pyflinkcep.migrate.java.constants import Const
from pyflinkcep.migrate.java.declarations import JavaType
from pyflinkcep.migrate.java.project import Project, chosen, discriminator, schema_of
from pyflinkcep.migrate.java.source import lambda_of, line_of, parse_java
from pyflinkcep.migrate.runtime import (
    compare,
    compare_text,
    div_float,
    equals_ignore_case,
    int32,
    java_format,
    java_round,
    java_split,
    rem_int,
    same_boxed,
    stream_sum,
    substring,
    text,
    to_float32,
    truncated,
)

pytest.importorskip("tree_sitter_java", reason="needs pyflinkcep[migrate]")

FILES = {
    "a/Base.java": "package a; public abstract class Base { protected long ts; static int n; transient int t; }",
    "a/Click.java": "package a; import b.Kind; public class Click extends Base { private String url; Kind kind; }",
    "a/View.java": "package a; import java.util.*; class View extends Base { Map<String, List<Double>> seen; Integer[] ids; }",
    "b/Kind.java": "package b; public enum Kind { X, Y; static final int COUNT = 2; }",
    "b/Dup.java": "package b; class Dup { int b; } class Node { Node next; int v; }",
    "c/Dup.java": "package c; class Dup { int c; } record Pair(Dup first, java.time.Instant at, char mark) {}",
}


def _project() -> Project:
    return Project([parse_java(text_, name) for name, text_ in FILES.items()])


def test_schemas_of_classes() -> None:
    """Fields become columns, those inherited first; subclasses add theirs and a column of classes."""
    project = _project()

    assert {name: schema_of(name, None, project) for name in ("Click", "Base", "Pair", "Node")} == {
        "Click": "ts bigint, url string, kind string",
        "Base": "type string, ts bigint, url string, kind string, "
        "seen map<string,array<double>>, ids array<int>",
        "Pair": "first struct<c:int>, at timestamp, mark string",
        "Node": "v int",
    }
    base = project.find("Base")
    assert base is not None
    assert discriminator(base, project) == "type"


def test_names_are_looked_up_as_in_java() -> None:
    """A class of the same file or package comes before one of another package."""
    sources = [parse_java(text_, name) for name, text_ in FILES.items()]
    project = Project(sources)
    found = [project.find("Dup", source) for source in sources[-2:]]

    assert [one.full_name for one in found if one is not None] == ["b.Dup", "c.Dup"]


CONSTANTS = {
    "1 + 2 * 3": 7, "Integer.MAX_VALUE + 1": -(1 << 31), "7 / -2": -3, "-7 % 3": -1, "1L << 40": 1 << 40,
    "0x7fffffff": (1 << 31) - 1, "-2147483648": -(1 << 31), "1_000": 1000, "0b101": 5, "017": 15,
    "(int) 3.9": 3, "(byte) 200": -56, "1 / 2.0": 0.5, "1.5f": 1.5, "0.1f": 0.10000000149011612,
    '"a" + 1 + true': "a1true", "'a'": "a", '"\\u0041\\n"': "A\n", "3 > 2 ? 4 : 5": 4, "!(1 < 2)": False,
    "LIMIT * 2": 84, "b.Kind.COUNT": 2, "unknown": None, "1 / 0": None,
}  # fmt: skip


@pytest.mark.parametrize(("java", "value"), CONSTANTS.items())
def test_constants_are_folded(java: str, value: Any) -> None:
    """Constant expressions have Java's values: ints wrap around, division is towards zero."""
    text_ = f"class Q {{ static final int LIMIT = 40 + 2; Object it = {java}; }}"
    source = parse_java(text_, "Q.java")
    project = Project([source, parse_java(FILES["b/Kind.java"], "b/Kind.java")])
    declared = project.find("Q")
    assert declared is not None
    found = Walker(project).field_of(declared, "it")

    assert (found.value if isinstance(found, Const) else None) == value


def test_syntax_errors_have_lines() -> None:
    """A broken file is read as far as it goes, and says where it is broken."""
    source = parse_java("class A {\n  int x;\n  void f( { }\n}", "A.java")

    assert [line for line, _ in source.errors] == [3]
    assert Project([source]).find("A") is not None


def test_numbers_of_java() -> None:
    """Arithmetic at its edges: overflow, casts, division by zero, halves."""
    assert (int32(1 << 31), rem_int(-7, 3), truncated(-1e20, 64)) == (-(1 << 31), -1, -(1 << 63))
    assert (div_float(-1.0, 0.0), java_round(-2.5, 64), java_round(0.49999999999999994, 64)) == (
        -math.inf,
        -2,
        0,
    )
    assert (to_float32((1 << 62) + (1 << 38) + 1), compare(-0.0, 0.0)) == (
        float((1 << 62) + (1 << 39)),
        -1,
    )
    assert (same_boxed(127, 127), same_boxed(128, 128), same_boxed(None, None)) == (
        True,
        False,
        True,
    )
    assert stream_sum([1e16, 1.0, 1.0, -1e16]) == 2.0


def test_strings_of_java() -> None:
    """Chars of 16 bits, comparison without case, numbers as texts, split and format."""
    assert (substring("a😀b", 1, 3), compare_text("\ue000", "😀") > 0) == ("😀", True)
    assert (equals_ignore_case("ſ", "S"), equals_ignore_case("İ", "i")) == (True, True)
    assert [text(x) for x in (1e7, 123456.7, 1e-3, 9.5e-4, 5e-324, -0.0, math.inf)] == [
        "1.0E7", "123456.7", "0.001", "9.5E-4", "4.9E-324", "-0.0", "Infinity",
    ]  # fmt: skip
    assert (java_split("a,b,,", ","), java_split("", ","), java_split(",a", ",")) == (
        ["a", "b"],
        [""],
        ["", "a"],
    )
    assert (
        java_format("%s|%5d|%.2f|%,d|%%", None, 7, 1.005, 1234567) == "null|    7|1.01|1,234,567|%"
    )


def test_pieces_of_a_file() -> None:
    """A file has its imports, a lambda of its own a line, a class what it inherits, its schema."""
    java = "class A { int x; void f(int x) {} void f(A x) {} } class B extends A { String y; }"
    project = Project([parse_java(java)])
    fields = project.all_fields(project.find("B"))
    file = parse_java("class Order { String user; Double amount; java.util.List<Long> ids; }")

    assert parse_java("package a; import b.C; class D {}").imports == {"C": "b.C"}
    assert line_of(lambda_of("it -> it.x()", "A.java", 7)) == 7
    assert [str(field.type) for field in fields.values()] == ["int", "String"]
    assert schema_of("Order", file, Project([file])) == (
        "user string, amount double, ids array<bigint>"
    )


@pytest.mark.parametrize(
    ("given", "wanted"), [("int", "int"), ("B", "A"), ("String", None), ("short", None)]
)
def test_which_of_several_methods_is_called(given: str, wanted: str | None) -> None:
    """It is known where one alone takes these very types, or classes of the program above them."""
    java = "class A { void f(int x) {} void f(A x) {} } class B extends A {}"
    project = Project([parse_java(java)])
    found = project.find("A")
    assert found is not None
    method = chosen(found.methods["f"], [JavaType(given)], project)

    assert (method and str(method.parameters[0][1])) == wanted
