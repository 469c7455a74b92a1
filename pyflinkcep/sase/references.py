# SPDX-License-Identifier: Apache-2.0
"""Reads references to variables, such as ``b[i-1].price``."""

from __future__ import annotations

from typing import cast

from pyflinkcep.errors import InvalidArgumentError
from pyflinkcep.expressions.text import quoted_name, written_name
from pyflinkcep.expressions.tree import Call, Column, Literal, Tree
from pyflinkcep.sase.computed import column_sql, computed, is_computed
from pyflinkcep.sase.cursor import Cursor
from pyflinkcep.sase.model import Component
from pyflinkcep.sase.tokens import NUMBER, TEXT, Token, text_value
from pyflinkcep.sase.tree import ALL, BEFORE, CURRENT, FIRST, LAST, PREVIOUS

__all__ = ["ReferenceReader"]

_INDEXES = "write [1], [i], [i-1], [LEN] or []; aggregates take [..i-1] too"


class ReferenceReader:
    """
    Reads references from a cursor.

    Parameters
    ----------
    cursor : Cursor
        Where to read.
    components : tuple of Component
        The components that names refer to.
    """

    def __init__(self, cursor: Cursor, components: tuple[Component, ...]) -> None:
        self._cursor = cursor
        self._components = components
        self._by_name = {part.variable: part for part in components}

    def _reference(self, what: str) -> Column:
        name = self._cursor.name(what, "name a variable of PATTERN")
        return self._rest_of_reference(name)

    def _rest_of_reference(self, token: Token) -> Column:
        cursor, name = self._cursor, token.name
        part, shown = self._by_name.get(name), ""
        if part is None and cursor.here.text not in (".", "["):
            part, shown = next((p for p in self._components if p.type == name), None), token.text
        if part is None:
            raise self._unknown(name, token.at)
        index = self._index(part) if cursor.here.text == "[" else None
        if not cursor.take("."):
            return Column(None, part.variable, index, shown, cursor.span(token.at))
        attribute = cursor.name("an attribute", f"write {token.text}.attribute")
        if attribute.word == "len" and index is None and part.takes_many:
            return Column(column_sql("LEN"), part.variable, index, "", cursor.span(token.at))
        column = Column(
            quoted_name(attribute.name), part.variable, index, "", cursor.span(token.at)
        )
        path, written = self._path(column, attribute.name)
        if path is column and not is_computed(attribute.name):
            return column
        at = "" if index is None else f"[{index}]"
        text = f"{written_name(part.variable)}{at}.{written_name(attribute.name)}{written}"
        return computed(path, column, text, cursor.span(token.at))

    def _path(self, column: Column, attribute: str) -> tuple[Tree, str]:
        """Read the fields and elements of an attribute; return them and how they are written."""
        cursor, found, written = self._cursor, cast(Tree, column), ""
        hint = f"write {attribute}.field, {attribute}['key'] or {attribute}[0]"
        while True:
            if cursor.take("."):
                field = cursor.name("a field", hint).name
                found = Call(".", (found,), field)
                written += f".{written_name(field)}"
            elif cursor.take("["):
                key = cursor.here
                if key.kind == TEXT:
                    value = Literal(text_value(key), key.text)
                elif key.kind == NUMBER and key.text.isdigit():
                    value = Literal(int(key.text), key.text)
                else:
                    raise cursor.unexpected("a 'key' or a number", hint)
                found = Call("[]", (found, value))
                cursor.next()
                cursor.need("]", hint)
                written += f"[{key.text}]"
            else:
                return found, written

    def _unknown(self, name: str, at: int) -> InvalidArgumentError:
        known = ", ".join(map(repr, self._by_name))
        return self._cursor.failure(
            at, f"expected a variable of PATTERN, got {name!r}", f"the variables are {known}"
        )

    def _index(self, part: Component) -> str:
        cursor, variable = self._cursor, part.variable
        opened = cursor.next()
        index = self._index_inside(part)
        if index is None:
            token = cursor.here
            raise cursor.failure(
                token.at, f"expected an index, got {variable}[{token.text}]", _INDEXES
            )
        cursor.need("]", _INDEXES)
        if not part.takes_many:
            raise cursor.failure(
                opened.at,
                f"{variable!r} does not repeat, so it has no [{index}]",
                f"write {variable}.attribute, or {part.type}+ {variable}[] in PATTERN",
            )
        return index

    def _index_inside(self, part: Component) -> str | None:
        cursor = self._cursor
        if cursor.here.text == "]":
            return ALL
        if cursor.take(".."):
            cursor.need("i", _INDEXES)
            cursor.need("-", _INDEXES)
            cursor.need("1", _INDEXES)
            return BEFORE
        if cursor.take("1"):
            return FIRST
        if cursor.take("len"):
            return LAST
        if cursor.ahead().text == "." and cursor.take(part.variable.lower()):
            cursor.next()
            cursor.need("len", _INDEXES)
            return LAST
        if not cursor.take("i"):
            return None
        if not cursor.take("-"):
            return CURRENT
        cursor.need("1", _INDEXES)
        return PREVIOUS
