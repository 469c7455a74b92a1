# SPDX-License-Identifier: Apache-2.0
"""Bodies of functions as one expression."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyflinkcep.migrate.java.declarations import Method
from pyflinkcep.migrate.java.source import Node
from pyflinkcep.migrate.meaning.folding import folded
from pyflinkcep.migrate.meaning.statements import read_block
from pyflinkcep.migrate.meaning.tree import Expression

if TYPE_CHECKING:
    from pyflinkcep.migrate.meaning.reader import Reader

__all__ = ["folded_body", "value_of_body"]


def folded_body(reader: Reader, body: Node) -> Expression:
    """Return a block that returns a value as an expression; raise Untranslatable otherwise."""
    return folded(read_block(reader, body))


def value_of_body(
    inner: Reader, method: Method, values: list[Expression], reader: Reader
) -> Expression:
    """Return the value of a method for some arguments."""
    for (name, type_), value in zip(method.parameters, values, strict=True):
        inner.scope.values[name] = reader.assigned(value, type_)
    inner.result_type = method.type
    inner.event_type = reader.event_type
    return reader.cast_known(folded_body(inner, method.body), method.type)
