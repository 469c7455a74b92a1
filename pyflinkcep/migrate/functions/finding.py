# SPDX-License-Identifier: Apache-2.0
"""Finds the body of a function that Java passes as an object."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import attrs

from pyflinkcep.migrate.java.declarations import JavaClass, JavaType, Method, method_of, read_type
from pyflinkcep.migrate.java.project import UNKNOWN, Project, filled
from pyflinkcep.migrate.java.source import (
    Node,
    Source,
    called_in,
    children,
    declared_in,
    lambda_of,
    line_of,
    set_by_this,
    text_of,
    written_in,
)
from pyflinkcep.migrate.meaning import operations as ops
from pyflinkcep.migrate.meaning.calls import constructed, initial, opened, set_fields, zero
from pyflinkcep.migrate.meaning.reader import Reader, parameters_of
from pyflinkcep.migrate.meaning.reading import Findings, Scope
from pyflinkcep.migrate.meaning.tree import Call, Const, Expression, Untranslatable


@attrs.frozen
class Given:
    """An object of a class of the project, and what its constructor is given."""

    type: str
    arguments: tuple[Any, ...]
    source: Source = attrs.field(repr=False, eq=False)


@attrs.frozen
class GivenFunction:
    """A lambda or method reference that a method is given."""

    node: Node
    source: Source = attrs.field(repr=False, eq=False)


def expression_of(value: Any, project: Project) -> Expression | None:
    """Return what a variable stands for; None if that is not known."""
    if isinstance(value, Expression):
        return value
    if isinstance(value, bool | str | float | int):
        return Const(value)
    if isinstance(value, tuple):
        inner = [expression_of(one, project) for one in value]
        known = [one for one in inner if one is not None]
        types = {one.type for one in known}
        if len(known) < len(inner) or len(types) != 1:
            return None
        return Call(ops.LIST, tuple(known), JavaType("List", (types.pop(),)))
    if isinstance(value, GivenFunction):
        return _function(value, project)
    return _object(value, project) if isinstance(value, Given) else None


def array_of(values: tuple[Any, ...], type_: JavaType, project: Project) -> Expression | None:
    """Return an array of known values; None if not all are known."""
    found = expression_of(values, project)
    return attrs.evolve(found, type=type_) if isinstance(found, Call) else None


def _function(value: GivenFunction, project: Project) -> Expression | None:
    within = project.at(value.source, line_of(value.node))
    reader = Reader(Scope(value.source, within, project), Findings())
    try:
        return reader.function(value.node, ())
    except Untranslatable:
        return None


def _object(value: Given, project: Project) -> Expression | None:
    of = project.find(value.type, value.source)
    arguments = [expression_of(one, project) for one in value.arguments]
    known = [one for one in arguments if one is not None]
    if of is None or len(known) < len(arguments):
        return None
    reader = Reader(Scope(value.source, None, project), Findings())
    try:
        return constructed(reader, of, known, of.node)
    except Untranslatable:
        return None


_FUNCTIONS = ("method_declaration", "constructor_declaration", "lambda_expression")


def fields_of_object(
    reader: Reader,
    of: JavaClass,
    arguments: Sequence[Node | Expression],
    node: Node,
    called: Sequence[str],
) -> dict[str, Expression]:
    """Return the fields of a new object whose values are known when its methods are called."""
    project = reader.scope.project
    fields = {**initial(reader, of), **set_fields(reader, of, arguments, node)}
    for name, field in project.all_fields(of).items():
        if field.value is None and "final" not in field.modifiers and not field.type.dims:
            fields.setdefault(name, zero(field.type))
    for owner in project.lineage(of):
        for method in owner.methods.get("open", []):
            opened(reader.at(owner.source, owner), method, fields)
    methods = [m for one in project.lineage(of) for same in one.methods.values() for m in same]
    constructors = {one.name for one in project.lineage(of)}
    for name in changing([m for m in methods if m.name not in constructors], called, project):
        fields.pop(name, None)
    return fields


def fields_of_body(
    reader: Reader,
    body: Node,
    methods: Mapping[tuple[str, int], Method],
    called: Sequence[str],
) -> tuple[dict[str, Expression], set[str]]:
    """Return the known fields of an anonymous class, and the names of all of them."""
    fields: dict[str, Expression] = {}
    names: set[str] = set()
    for part in (one for one in children(body) if one.type == "field_declaration"):
        type_ = read_type(part.child_by_field_name("type"))
        for declarator in part.children_by_field_name("declarator"):
            value = declarator.child_by_field_name("value")
            name = text_of(declarator.child_by_field_name("name"))
            names.add(name)
            if value is None:
                fields[name] = zero(type_)
                continue
            reader.scope.fields = fields
            with suppress(Untranslatable):
                held = reader.assigned(reader.argument(value), type_)
                if not (isinstance(held, Call) and not held.operands):
                    fields[name] = held
    for method in methods.values():
        if method.name == "open":
            opened(reader, method, fields)
    for name in changing(methods.values(), called, reader.scope.project):
        fields.pop(name, None)
    return fields, names


def changing(methods: Iterable[Method], called: Sequence[str], project: Project) -> set[str]:
    """Return the fields that methods of an object change which are called, by Flink or others."""
    found: set[str] = set()
    for method in methods:
        if method.body is None or method.name == "open":
            continue
        own = {name for name, _ in method.parameters} | declared_in(method.body)
        names = {name for name in written_in(method.body) if name not in own}
        names |= {name for name in set_by_this(method.body) if name in own}
        if not names:
            continue
        if method.name in called or any(method.name in called_in(s) for s in project.sources):
            found |= names
    return found


def locals_around(node: Node) -> frozenset[str]:
    """Return the variables and parameters of the methods and lambdas around code."""
    found: set[str] = set()
    one = node.parent
    while one is not None:
        if one.type in _FUNCTIONS:
            found |= declared_in(one)
        one = one.parent
    return frozenset(found)


_METHODS = ("filter", "test", "apply")
_WRAPPERS = ("of", "fromFunction", "returns")


@attrs.frozen(eq=False)
class Function:
    """A function: its parameters, its body, and where its names come from."""

    parameters: tuple[tuple[str, JavaType], ...]  # Names and types
    body: Node  # A block or an expression
    # Where it stands.
    project: Project
    source: Source
    within: JavaClass | None
    fields: dict[str, Expression] = attrs.field(factory=dict)  # The values of fields of its class
    # The methods of an anonymous class around, by name and number of parameters.
    methods: dict[tuple[str, int], Method] = attrs.field(factory=dict)
    event_type: JavaType = UNKNOWN  # The first type argument of its class
    result_type: JavaType = UNKNOWN  # The declared type of its result
    doc: str = ""  # Its Java doc; empty if it has none
    type_arguments: tuple[JavaType, ...] = ()  # The type arguments of the class that it extends
    class_name: str = ""  # The name of the class; empty for anonymous ones
    # The class of the object, whose methods may override those that the class around has.
    dynamic: JavaClass | None = None
    # The names around that the function does not see, such as those of its own fields.
    hidden: frozenset[str] = frozenset()
    around: frozenset[str] = frozenset()  # The variables around the function
    variables: tuple[str, ...] = ()  # The type variables of its class
    types: dict[str, JavaType] = attrs.field(factory=dict)  # What they stand for

    def of_types(self, types: dict[str, JavaType]) -> Function:
        """Return the function with types in place of type variables."""
        return attrs.evolve(
            self,
            parameters=tuple((name, filled(type_, types)) for name, type_ in self.parameters),
            event_type=filled(self.event_type, types),
            result_type=filled(self.result_type, types),
            type_arguments=tuple(filled(type_, types) for type_ in self.type_arguments),
            types={**self.types, **types},
        )

    @property
    def is_block(self) -> bool:
        """Whether the body is a block of statements."""
        return bool(self.body.type in ("block", "constructor_body"))


def reader_of(function: Function, findings: Findings, known: Mapping[str, Any]) -> Reader:
    """Return a reader of the body of a function."""
    scope = Scope(
        function.source,
        function.within,
        function.project,
        fields=dict(function.fields),
        dynamic=function.dynamic,
        around=function.around,
        types=dict(function.types),
    )
    for name, value in known.items():
        known_value = expression_of(value, function.project)
        if known_value is not None and name not in function.hidden:
            scope.fields.setdefault(name, known_value)
    return Reader(scope, findings, local_methods=function.methods)


def function_of(
    node: Node,
    source: Source,
    project: Project,
    methods: tuple[str, ...],
    findings: Findings,
    known: Mapping[str, Any],
) -> Function:
    """Return the function that an argument is."""
    finder = _Finder(project, methods, findings, known)
    inner = _Finder(project, _METHODS, findings, known)
    findings.resolve = lambda node_, source_, around: inner.find(node_, source_, around, 1)
    return finder.find(node, source, project.at(source, line_of(node)), 0)


@attrs.frozen(eq=False)
class _Finder:
    project: Project
    methods: tuple[str, ...]
    findings: Findings
    known: Mapping[str, Any]

    def find(self, node: Node, source: Source, within: JavaClass | None, depth: int) -> Function:
        if depth > 10:
            raise Untranslatable("a function made by too many others", line_of(node))
        match node.type:
            case "parenthesized_expression" | "cast_expression":
                inner = node.child_by_field_name("value") or children(node)[-1]
                return self.find(inner, source, within, depth + 1)
            case "lambda_expression":
                body = node.child_by_field_name("body")
                parameters = tuple(parameters_of(node))
                doc, around = javadoc(node), locals_around(node)
                return Function(
                    parameters, body, self.project, source, within, doc=doc, around=around
                )
            case "method_reference":
                return self._reference(node, source, within)
            case "object_creation_expression":
                return self._created(node, source, within)
            case "method_invocation":
                return self._called(node, source, within, depth)
            case "identifier" | "field_access":
                name = text_of(node).rsplit(".", 1)[-1]
                found = self.project.constant_field(name, source, within)
                if found is None and node.type == "field_access":
                    of = self.project.find(
                        text_of(node.child_by_field_name("object")), source, within
                    )
                    owner = self.project.owner_of(of, name) if of is not None else None
                    found = (owner.fields[name], owner) if owner is not None else None
                if found is not None and found[0].value is not None:
                    inner = self.find(found[0].value, found[1].source, found[1], depth + 1)
                    types = found[0].type.args
                    known = inner.event_type.name != "?"
                    return inner if known or not types else attrs.evolve(inner, event_type=types[0])
        raise Untranslatable(
            f"{text_of(node)[:60]} is made where it cannot be followed", line_of(node)
        )

    # --- classes

    def _created(self, node: Node, source: Source, within: JavaClass | None) -> Function:
        type_ = read_type(node.child_by_field_name("type"))
        body = next((part for part in children(node) if part.type == "class_body"), None)
        of = self.project.find(type_.name, source, within)
        arguments = children(node.child_by_field_name("arguments"))
        if body is not None:
            own = [part for part in children(body) if part.type == "method_declaration"]
            declared = {(m.name, len(m.parameters)): m for m in (method_of(part) for part in own)}
            found = next((m for m in declared.values() if m.name in self.methods), None)
            fields, names = fields_of_body(
                self._reader(source, within), body, declared, self.methods
            )
            if of is not None:
                reader = self._reader(source, within)
                fields = {**fields_of_object(reader, of, arguments, node, self.methods), **fields}
                names |= set(self.project.all_fields(of))
            if found is not None:
                made = self._method(found, source, within, type_, fields, declared)
                around = locals_around(node) - names
                return attrs.evolve(made, dynamic=of, hidden=frozenset(names), around=around)
        if of is None:
            raise Untranslatable(f"the class {type_} is not in the sources", line_of(node))
        made = self.of_class(of, arguments, node, source, within, type_)
        return made if body is None else attrs.evolve(made, fields=fields, methods=declared)

    def of_class(
        self,
        of: JavaClass,
        arguments: list[Node],
        node: Node,
        source: Source,
        within: JavaClass | None,
        type_: JavaType,
    ) -> Function:
        """Return the method of a new object of a class of the project."""
        reader = self._reader(source, within)
        method = next(
            (
                one
                for owner in self.project.lineage(of)
                for name in self.methods
                for one in owner.methods.get(name, [])
                if one.body is not None
            ),
            None,
        )
        if method is None:
            raise Untranslatable(f"{of.name} has no {self.methods[0]}()", line_of(node))
        fields = fields_of_object(reader, of, arguments, node, self.methods)
        own = set(self.project.all_fields(of))
        hidden = frozenset(own | locals_around(node))
        parents = [one for one in (of.superclass, *of.interfaces) if one is not None and one.args]
        above = parents[0] if parents else type_
        owner = method.owner or of
        found = self._method(method, owner.source, owner, above, fields, {})
        doc = found.doc or javadoc(of.node)
        made = attrs.evolve(found, class_name=of.name, doc=doc, dynamic=of, hidden=hidden)
        types = dict(zip(of.variables, type_.args, strict=False))
        return attrs.evolve(made, variables=of.variables).of_types(types)

    def _reader(self, source: Source, within: JavaClass | None) -> Reader:
        """Return a reader of what is given to a constructor or method."""
        reader = Reader(Scope(source, within, self.project), self.findings)
        for name, value in self.known.items():
            expression = expression_of(value, self.project)
            if expression is not None:
                reader.scope.values[name] = expression
        return reader

    def _method(
        self,
        method: Method,
        source: Source,
        within: JavaClass | None,
        type_: JavaType,
        fields: dict[str, Expression],
        declared: dict[tuple[str, int], Method],
    ) -> Function:
        if method.body is None:
            raise Untranslatable(f"{method.name}() has no body", line_of(method.node))
        return Function(
            method.parameters,
            method.body,
            self.project,
            source,
            within,
            fields,
            declared,
            type_.args[0] if type_.args else JavaType("?"),
            method.type,
            javadoc(method.node),
            type_.args,
        )

    # --- others

    def _reference(self, node: Node, source: Source, within: JavaClass | None) -> Function:
        owner, name = text_of(node.children[0]), text_of(node.children[-1])
        of = within if owner == "this" else self.project.find(owner, source, within)
        held = self.project.constant_field(owner, source, within) if of is None else None
        if held is not None and held[0].value is not None and name in (*_METHODS, *self.methods):
            meant = self.find(held[0].value, held[1].source, held[1], 1)
            types = held[0].type.args
            return attrs.evolve(meant, event_type=types[0]) if types else meant
        made = node.children[0].type == "method_invocation"  # such as hot.and(open)::test
        if of is None and not made and not (owner[:1].isupper() and owner.isidentifier()):
            raise Untranslatable(f"the class {owner} is not in the sources", line_of(node))
        if of is None:  # of a library: as the lambda that it stands for
            return self._written(
                f"it -> {owner}.{name}(it)", UNKNOWN, source, within, line_of(node)
            )
        for count in (1, 2):
            methods = self.project.overloads(of, name, count)
            if len(methods) > 1:
                raise Untranslatable(f"which of several {name}() is meant", line_of(node))
            for method in methods:
                around = method.owner or of
                return self._method(method, around.source, around, JavaType("?"), {}, {})
        return self._written(f"it -> it.{name}()", JavaType(of.name), of.source, of, line_of(node))

    def _written(
        self, text: str, type_: JavaType, source: Source, within: JavaClass | None, line: int
    ) -> Function:
        """Return the function of a lambda of one parameter, from its text."""
        body = lambda_of(text, source.file, line).child_by_field_name("body")
        return Function((("it", type_),), body, self.project, source, within)

    def _called(self, node: Node, source: Source, within: JavaClass | None, depth: int) -> Function:
        """Return the function that a method makes: ``SimpleCondition.of``, a project's factory."""
        name = text_of(node.child_by_field_name("name"))
        arguments = children(node.child_by_field_name("arguments"))
        owner = node.child_by_field_name("object")
        owner_name = text_of(owner) if owner is not None else ""
        of = self.project.find(owner_name, source, within) if owner_name else within
        around = of
        while around is not None:
            method = self._reader(source, within).method(around, name, arguments)
            if method is not None and method.body is not None:
                return self._factory(
                    method, method.owner or around, arguments, source, within, depth
                )
            around = around.outer
        if name in _WRAPPERS and len(arguments) == 1:
            return self.find(arguments[0], source, within, depth + 1)
        raise Untranslatable(f"{text_of(node)[:60]} is not in the sources", line_of(node))

    def _factory(
        self,
        method: Method,
        of: JavaClass,
        arguments: list[Node],
        source: Source,
        within: JavaClass | None,
        depth: int,
    ) -> Function:
        statements = [one for one in children(method.body) if one.type != "line_comment"]
        if len(statements) != 1 or statements[0].type != "return_statement":
            raise Untranslatable(f"{method.name}() does more than return", line_of(method.node))
        reader = self._reader(source, within)
        given: dict[str, Expression] = {}
        if method.spreads:
            values = reader.packed(method, [reader.argument(argument) for argument in arguments])
            given = {
                name: value for (name, _), value in zip(method.parameters, values, strict=True)
            }
            arguments = []
        for (name, type_), argument in zip(method.parameters, arguments, strict=False):
            with suppress(Untranslatable):
                given[name] = reader.assigned(reader.argument(argument, (type_,)), type_)
        inner = attrs.evolve(self, known=given)
        found = inner.find(children(statements[0])[0], of.source, of, depth + 1)
        if found.class_name:
            return found
        seen = {name: value for name, value in given.items() if name not in found.hidden}
        return attrs.evolve(found, fields={**seen, **found.fields})


def javadoc(node: Node) -> str:
    """Return the first sentence of the comment before a declaration; empty if there is none."""
    before = node.prev_sibling
    if before is None or before.type != "block_comment":
        return ""
    lines = [re.sub(r"^[\s/*]+|[\s*/]+$", "", one) for one in text_of(before).splitlines()]
    words = " ".join(line for line in lines if line and not line.startswith("@"))
    plain = re.sub(r"\{@\w+\s+([^}]*)\}|<[^>]*>", r"\1", words)
    first = re.split(r"(?<=\.)\s", plain, maxsplit=1)[0].strip().replace('"""', "'''")
    first = first.replace("\\", "/").rstrip('"')[:90]
    return first if not first or first.endswith(".") else first + "."
