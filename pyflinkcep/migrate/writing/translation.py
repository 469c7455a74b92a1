# SPDX-License-Identifier: Apache-2.0
"""Asks for conditions, functions and selectors with what the walker knows of their variables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress

import attrs

from pyflinkcep.migrate.chains.values import Code, Const, Made, Symbol, Tag, Value, names_reached
from pyflinkcep.migrate.functions.translator import Translator, ddl_of, joined_columns
from pyflinkcep.migrate.java.declarations import JavaClass, JavaType, written_type
from pyflinkcep.migrate.java.project import Project, discriminator
from pyflinkcep.migrate.java.source import inside, lambda_of, line_of, simple_name, text_of
from pyflinkcep.migrate.meaning import operations as ops
from pyflinkcep.migrate.meaning.calls import constructed
from pyflinkcep.migrate.meaning.reader import Reader
from pyflinkcep.migrate.meaning.reading import Findings, Scope, tag_of
from pyflinkcep.migrate.meaning.translated import Translated
from pyflinkcep.migrate.meaning.tree import Call, Captured, Expression, Untranslatable, Var, parts

_MOMENT = re.compile(
    r"([^{}]*?->[^{}]*?)(?:\.toInstant\(\))?\.(?:toEpochMilli|getTime)\(\)\s*", re.DOTALL
)


@attrs.define(eq=False)
class Translation:
    """Translates pieces of Java, and counts them."""

    project: Project  # What the program declares
    # What was translated, for the report.
    conditions: list[tuple[Code, Translated]] = attrs.field(factory=list)
    functions: list[tuple[Code, Translated]] = attrs.field(factory=list)
    # The columns that were read of events whose classes are not in the project.
    columns: dict[str | None, dict[str, str]] = attrs.field(factory=dict)

    def _translator(
        self, code: Code, event_type: str | None, *, captures: bool = True
    ) -> Translator:
        given = known(code, self.project, captures=captures)
        return Translator(code.node, code.source, self.project, event_type, given)

    def condition(
        self, code: Code, event_type: str | None, stages: Sequence[str], name: str = "condition"
    ) -> Translated:
        """Translate a condition."""
        made = self._translator(code, event_type).condition(name, stages)
        self.conditions.append((code, made))
        self._read(event_type, made)
        return made

    def _read(self, event_type: str | None, made: Translated) -> None:
        """Remember the columns that are read of events."""
        kind = event_type and simple_name(event_type)
        self.columns[kind] = joined_columns(self.columns.get(kind, {}), made.columns)

    def function(
        self, code: Code, kind: str, event_type: str | None, name: str | None = None
    ) -> Translated:
        """Translate a function of matches."""
        made = self._translator(code, event_type).function(kind, name)
        self.functions.append((code, made))
        if event_type is not None:
            self._read(event_type, made)
        return made

    def value(self, code: Code, event_type: str | None) -> Translated:
        """Translate a selector of an event."""
        made = self._translator(code, event_type, captures=False).value()
        self._read(event_type, made)
        return made

    def returned(self, code: Code, event_type: str | None) -> Translated | None:
        """Translate what ``extractTimestamp`` of a class returns in the end, without the rest."""
        declared = class_made(code, self.project)
        bodies = [code.node, *([declared.node] if declared is not None else [])]
        for method in (m for body in bodies for m in inside(body, "method_declaration")):
            if not text_of(method.child_by_field_name("name")).startswith("extract"):
                continue
            returns = list(inside(method, "return_statement"))
            first = list(inside(method.child_by_field_name("parameters"), "formal_parameter"))
            if len(returns) == 1 and first:
                written = text_of(returns[0]).removeprefix("return").rstrip("; ")
                event = text_of(first[0].child_by_field_name("name"))
                return self._as_lambda(f"{event} -> {written}", code, event_type)
        return None

    def _as_lambda(self, text: str, code: Code, event_type: str | None) -> Translated | None:
        node = lambda_of(text, code.source.file)
        made = Translator(node, code.source, self.project, event_type).value()
        return None if made.stub else made

    def moment(self, code: Code, event_type: str | None) -> str | None:
        """Return the column of a moment whose milliseconds a function returns."""
        found = _MOMENT.fullmatch(text_of(code.node))
        made = None if found is None else self._as_lambda(found[1], code, event_type)
        sql = "" if made is None else made.sql or ""
        return sql if sql.strip("`").isidentifier() else None

    def comparator(self, code: Code, event_type: str | None) -> Translated:
        """Translate a comparator of events."""
        event = event_type and simple_name(event_type)
        return self._translator(code, event).function("compare", "compare_events")

    def subclasses(self, name: str, code: Code) -> list[str]:
        """Return the classes that extend a class."""
        declared = self.project.find(name, code.source)
        return [] if declared is None else [one.name for one in self.project.subclasses(declared)]

    def discriminator(self, name: str, code: Code) -> str:
        """Return the column with the class of an event."""
        declared = self.project.find(name, code.source)
        return "type" if declared is None else discriminator(declared, self.project)

    def aliases(self, type_: str | None, code: Code) -> dict[str, str]:
        """Return the fields of a class that have another name in JSON, by that name."""
        declared = self.project.find(simple_name(type_ or "?"), code.source)
        fields = self.project.all_fields(declared)
        return {field.alias: name for name, field in fields.items() if field.alias}

    def schema(self, type_: str | None, code: Code) -> str | None:
        """Return the schema of a class as DDL."""
        read_ = self.columns.get(type_ and simple_name(type_), {})
        unknown = ", ".join(f"{name} {kind}" for name, kind in read_.items()) or None
        made = None if type_ is None else ddl_of(written_type(type_), self.project, code.source)
        is_map = made is not None and made.startswith("value map<")  # as an event: what is read
        return unknown if made is None or (unknown and is_map) else made


def class_made(code: Code, project: Project) -> JavaClass | None:
    """Return the class of the program of which an expression makes an object."""
    if code.node is None or not code.node.type.startswith("object_creation"):
        return None
    name = simple_name(text_of(code.node.child_by_field_name("type")))
    return project.find(name, code.source)


def known(code: Code, project: Project, *, captures: bool = True) -> dict[str, Expression]:
    """Return what is known of the variables that code sees: values, captures and objects."""
    used = names_reached(code.node, code.scope.owner)
    found = {}
    for name, value in code.scope.values.items():
        seen = name.removeprefix("this.") in used
        made = _known(name, value, project, captures) if seen else None
        kind = code.scope.types.get(name) or ""
        if seen and isinstance(value, Tag):
            made = tag_of(value.code.node, written_type(kind))
        if isinstance(made, Call) and kind.endswith("[]"):
            made = attrs.evolve(made, type=written_type(kind))
        if made is not None:
            found[name] = made
    return found


def _known(name: str, value: Value, project: Project, captures: bool) -> Expression | None:
    """Return what a variable stands for; None if that is not known."""
    match value:
        case Const(value=tuple(listed)):
            held = [one if isinstance(one, Value) else Const(one) for one in listed]
            inner = [_known(name, one, project, captures) for one in held]
            types = {None if one is None else one.type for one in inner}
            type_ = types.pop() if len(types) == 1 else None
            values = tuple(one for one in inner if one is not None)
            return None if type_ is None else Call(ops.LIST, values, JavaType("List", (type_,)))
        case Const():
            return value if value.is_plain else None
        case Symbol(tree=tree):
            return Captured(name, tree, tree.type) if captures else None
        case Made(calls=()) if not value.state:
            given = [_known(name, one, project, captures) for one in value.arguments]
            return _object(value, given, project)
        case Code(node=node, source=source) if node.type in _FUNCTIONS:
            scope = Scope(source, project.at(source, line_of(node)), project)
            with suppress(Untranslatable):
                return Reader(scope, Findings()).function(node, ())
        case Code(node=node) if node.type in ("field_access", "identifier"):
            owner, _, constant = text_of(node).rpartition(".")
            declared = project.find(owner, value.source) if owner else None
            if declared is not None and declared.kind == "enum" and constant in declared.constants:
                return Const(constant, JavaType(declared.name))
    return None


_FUNCTIONS = ("lambda_expression", "method_reference")


def _object(made: Made, given: Sequence[Expression | None], project: Project) -> Expression | None:
    """Return an object of a class of the program; None if an argument is not known."""
    of = project.find(simple_name(made.type), made.code.source)
    arguments = [one for one in given if one is not None]
    if of is not None and len(arguments) == len(given):
        with suppress(Untranslatable):
            reader = Reader(Scope(made.code.source, None, project), Findings())
            return constructed(reader, of, arguments, of.node)
    return None


def parameters(code: Code, made: Translated) -> tuple[dict[str, str], dict[str, str]]:
    """Return what a translated function needs of what is known at run time alone."""
    needed: dict[str, str] = {}
    read_: dict[str, str] = {}
    for name in made.captured:
        symbol = code.scope.values.get(name)
        if isinstance(symbol, Symbol):
            needed.update(symbol.names)
            for part in parts(symbol.tree):
                if isinstance(part, Var):
                    read_.setdefault(part.name, needed.get(part.name, str(part.type)))
    return needed, read_
