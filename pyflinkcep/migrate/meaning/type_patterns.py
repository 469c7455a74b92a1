# SPDX-License-Identifier: Apache-2.0
"""Patterns of types and records, of ``instanceof`` and ``case``."""

from __future__ import annotations

from pyflinkcep.migrate.java.declarations import JavaType, read_type
from pyflinkcep.migrate.java.source import Node, children, text_of
from pyflinkcep.migrate.java.types import BOOLEAN, UNKNOWN
from pyflinkcep.migrate.meaning.reading import Reading
from pyflinkcep.migrate.meaning.tree import Binary, Expression, field_of

__all__ = ["of_case", "of_pattern"]


def of_pattern(reader: Reading, pattern: Node, value: Expression) -> Expression:
    """
    Return whether a value is what a pattern says; the reader knows its variables then.

    Parameters
    ----------
    reader : Reading
        Reads what follows.
    pattern : Node
        ``Type name`` or ``Type(…)``.
    value : Expression
        The value.
    """
    inner, *rest = children(pattern)
    if pattern.type == "pattern":
        return of_pattern(reader, inner, value)
    if pattern.type == "type_pattern":
        type_ = read_type(inner)
        reader.scope.values[text_of(rest[0])] = reader.cast(value, type_)
        return reader.is_a(value, type_, pattern)
    if pattern.type != "record_pattern":
        raise reader.no(pattern, f"a pattern {text_of(pattern)[:60]}")
    return _of_record(reader, pattern, value)


def _of_record(reader: Reading, pattern: Node, value: Expression) -> Expression:
    type_ = JavaType(text_of(children(pattern)[0]).rsplit(".", 1)[-1])
    of = reader.class_of(type_)
    if of is None or of.kind != "record":
        raise reader.no(pattern, f"the record {type_} is not in the sources")
    found = reader.is_a(value, type_, pattern)
    typed = reader.cast(value, type_)
    fields = [field for field in of.fields.values() if "static" not in field.modifiers]
    for field, part in zip(fields, children(children(pattern)[1]), strict=False):
        held = field_of(typed, field.name, field.type)
        test: Expression | None = None
        if part.type == "record_pattern":
            test = _of_record(reader, part, held)
        else:
            written, name = read_type(children(part)[0]), children(part)[-1]
            narrower = written not in (UNKNOWN, field.type)
            test = reader.is_a(held, written, part) if narrower else None
            reader.scope.values[text_of(name)] = reader.cast(held, written) if narrower else held
        found = found if test is None else Binary("&&", found, test, BOOLEAN)
    return found


def of_case(reader: Reading, label: Node, tested: Expression) -> Expression | None:
    """Return the test of ``case Type name when …``; None for a case of values."""
    parts = children(label)
    if not parts or parts[0].type not in ("pattern", "type_pattern", "record_pattern"):
        return None
    found = of_pattern(reader, parts[0], tested)
    for guard in parts[1:]:
        if guard.type != "guard":
            raise reader.no(label, "several patterns in a case")
        found = Binary("&&", found, reader.read(children(guard)[0]), BOOLEAN)
    return found
