# SPDX-License-Identifier: Apache-2.0
"""The cases of a switch, of expressions and statements alike."""

from __future__ import annotations

from pyflinkcep.migrate.java.source import Node, children, text_of
from pyflinkcep.migrate.java.types import BOOLEAN
from pyflinkcep.migrate.meaning.reading import Reading
from pyflinkcep.migrate.meaning.tree import (
    Binary,
    Call,
    Const,
    Expression,
    Untranslatable,
)

__all__ = ["case_labels", "is_case"]


def case_labels(reader: Reading, label: Node, tested: Expression) -> list[Expression] | None:
    """Return the values of a case; None for ``default``."""
    if not children(label):
        return None
    of = reader.class_of(tested.type)
    found: list[Expression] = []
    for part in children(label):
        name = text_of(part)
        if of is not None and of.kind == "enum" and name in of.constants:
            found.append(Const(name, tested.type))
        elif part.type in ("pattern", "record_pattern", "type_pattern"):
            raise reader.no(part, "a pattern in a switch")
        else:
            found.append(reader.read(part))
    return found


def is_case(tested: Expression, labels: list[Expression]) -> Expression:
    """Return whether a value is one of the labels of a case."""
    found: Expression | None = None
    for label in labels:
        if label.type.name in ("String",) or (isinstance(label, Const) and _is_enum(label)):
            one: Expression = Call("equals", (tested, label), BOOLEAN)
        else:
            one = Binary("==", tested, label, BOOLEAN)
        found = one if found is None else Binary("||", found, one, BOOLEAN)
    if found is None:
        raise Untranslatable("a case without a value")
    return found


def _is_enum(label: Const) -> bool:
    return isinstance(label.value, str) and label.type.name not in ("char", "String")
