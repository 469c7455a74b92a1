# SPDX-License-Identifier: Apache-2.0
"""Events that are written in a program, as rows."""

from __future__ import annotations

from pyflinkcep.migrate.chains.lookup import inside, simple_name
from pyflinkcep.migrate.chains.values import Constant, Made, Value
from pyflinkcep.migrate.java.declarations import JavaClass
from pyflinkcep.migrate.java.source import text_of
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
    if isinstance(element, Constant) and not isinstance(element.value, tuple):
        return f"({_python(element.value)},)"
    if not isinstance(element, Made):
        return None
    declared = translation.project.find(simple_name(element.type), element.code.source)
    if declared is None:
        return None
    given = _by_field(declared, element)
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
        held = [part if isinstance(part, Made) else Constant(part) for part in value.value]
        parts = [_value(translation, part) for part in held]
        known = [part for part in parts if part is not None]
        return f"[{', '.join(known)}]" if len(known) == len(parts) else None
    return _python(value.value)


def _python(value: object) -> str:
    text = repr(value)
    if isinstance(value, str) and '"' not in value:
        return '"' + text[1:-1].replace("\\'", "'") + '"'
    return text


def _by_field(declared: JavaClass, element: Made) -> dict[str, Value] | None:
    """Return the arguments of a constructor by the fields that they become."""
    count = len(element.arguments)
    for constructor in declared.methods.get(declared.name, []):
        if len(constructor.parameters) != count or constructor.body is None:
            continue
        parameters = [name for name, _ in constructor.parameters]
        given: dict[str, Value] = {}
        for assignment in inside(constructor.body, "assignment_expression"):
            left = text_of(assignment.child_by_field_name("left")).removeprefix("this.")
            right = text_of(assignment.child_by_field_name("right"))
            if right in parameters:
                given[left] = element.arguments[parameters.index(right)]
        for call in inside(constructor.body, "explicit_constructor_invocation"):
            arguments = call.child_by_field_name("arguments")
            names = [text_of(a) for a in arguments.named_children]
            inner = [element.arguments[parameters.index(n)] for n in names if n in parameters]
            above = declared.superclass
            if above is not None and len(inner) == len(names):
                given["super"] = Made(above.name, tuple(inner), element.code)
        return given if "super" not in given else None
    names = [name for name, field in declared.fields.items() if "static" not in field.modifiers]
    if len(names) == count:
        return dict(zip(names, element.arguments, strict=True))
    return None
