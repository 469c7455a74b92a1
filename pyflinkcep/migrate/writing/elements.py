# SPDX-License-Identifier: Apache-2.0
"""Events that are written in a program, as rows."""

from __future__ import annotations

from pyflinkcep.migrate.chains.lookup import simple_name
from pyflinkcep.migrate.chains.objects import by_field
from pyflinkcep.migrate.chains.values import Constant, Made, Value
from pyflinkcep.migrate.meaning.constants import constant
from pyflinkcep.migrate.translation import Translation

__all__ = ["rows_of"]


def rows_of(translation: Translation, elements: tuple[Value, ...]) -> list[str] | None:
    """Return elements as tuples, in the order of their class's fields; None if unknown."""
    rows = []
    for element in elements:
        row = _row(translation, element)
        if row is None:
            return None
        rows.append(row)
    return rows or None


def _row(translation: Translation, element: Value) -> str | None:
    if isinstance(element, Constant) and isinstance(element.value, _PLAIN):
        return f"({constant(element.value)},)"
    if not isinstance(element, Made):
        return None
    declared = translation.project.find(simple_name(element.type), element.code.source)
    if declared is None:
        return None
    given = by_field(declared, element, translation.project)
    if given is None:
        return None
    fields = translation.fields(declared)
    values = []
    column = translation.discriminator(declared.name, element.code)
    for name in fields:
        value = given.get(name, Constant(None))
        if name == column and name not in given:
            value = Constant(declared.name)
        text = _value(translation, value)
        if text is None:
            return None
        values.append(text)
    return f"({', '.join(values)}{',' if len(values) == 1 else ''})"


def _value(translation: Translation, value: Value) -> str | None:
    """Return a field's value: a constant, a list of constants, or an object in the event."""
    if not isinstance(value, Constant):
        return _row(translation, value)
    if isinstance(value.value, tuple):
        held = [part if isinstance(part, Value) else Constant(part) for part in value.value]
        parts = [_value(translation, part) for part in held]
        known = [part for part in parts if part is not None]
        return f"[{', '.join(known)}]" if len(known) == len(parts) else None
    return constant(value.value) if isinstance(value.value, _PLAIN) else None


_PLAIN = (str, int, float, type(None))  # others hold what is not known before the program runs
