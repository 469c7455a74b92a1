# SPDX-License-Identifier: Apache-2.0
"""Finds the body of a function that Java passes as an object."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from pyflinkcep.migrate.java.declarations import UNKNOWN, JavaClass, JavaType, Method, read_type
from pyflinkcep.migrate.java.project import Project, filled
from pyflinkcep.migrate.java.source import (
    Node,
    Source,
    called_in,
    children,
    declared_in,
    javadoc,
    lambda_of,
    line_of,
    set_by_this,
    text_of,
    written_in,
)
from pyflinkcep.migrate.meaning.calls import initial, opened, set_fields, zero
from pyflinkcep.migrate.meaning.reader import Reader
from pyflinkcep.migrate.meaning.reading import Findings, Scope, parameters_of
from pyflinkcep.migrate.meaning.tree import Expression, Untranslatable

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
            opened(reader, method, fields)
    methods = [m for one in project.lineage(of) for same in one.methods.values() for m in same]
    constructors = {one.name for one in project.lineage(of)}
    for name in changing([m for m in methods if m.name not in constructors], called, project):
        fields.pop(name, None)
    return fields


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
    scope: Scope  # What names mean where it stands
    event_type: JavaType = UNKNOWN  # The first type argument of its class
    result_type: JavaType = UNKNOWN  # The declared type of its result
    doc: str = ""  # Its Java doc; empty if it has none
    type_arguments: tuple[JavaType, ...] = ()  # The type arguments of the class that it extends
    class_name: str = ""  # The name of the class; empty for anonymous ones
    # The names around that the function does not see, such as those of its own fields.
    hidden: frozenset[str] = frozenset()
    variables: tuple[str, ...] = ()  # The type variables of its class

    def of_types(self, types: dict[str, JavaType]) -> Function:
        """Return the function with types in place of type variables."""
        return attrs.evolve(
            self,
            parameters=tuple((name, filled(type_, types)) for name, type_ in self.parameters),
            event_type=filled(self.event_type, types),
            result_type=filled(self.result_type, types),
            type_arguments=tuple(filled(type_, types) for type_ in self.type_arguments),
            scope=attrs.evolve(self.scope, types={**self.scope.types, **types}),
        )

    @property
    def is_block(self) -> bool:
        """Whether the body is a block of statements."""
        return bool(self.body.type in ("block", "constructor_body"))


@attrs.frozen(eq=False)
class Finder:
    """Finds functions."""

    project: Project
    methods: tuple[str, ...]  # Those that a function may be
    findings: Findings
    known: Mapping[str, Expression]  # What variables around stand for

    def of(self, node: Node, source: Source) -> Function:
        """Return the function that an argument is."""
        inner = attrs.evolve(self, methods=_METHODS)
        self.findings.resolve = lambda one, at: inner.find(
            one, Scope(at.source, at.within, self.project), 1
        )
        return self.find(node, Scope(source, self.project.at(source, line_of(node)), self.project))

    def find(self, node: Node, at: Scope, depth: int = 0) -> Function:
        """Return the function that an expression at a place is."""
        if depth > 10:
            raise Untranslatable("a function made by too many others", line_of(node))
        match node.type:
            case "lambda_expression":
                scope = attrs.evolve(at, around=locals_around(node))
                body = node.child_by_field_name("body")
                return Function(tuple(parameters_of(node)), body, scope, doc=first_sentence(node))
            case "method_reference":
                return self._reference(node, at)
            case "object_creation_expression":
                return self._created(node, at)
            case "method_invocation":
                return self._called(node, at, depth)
        what = f"{text_of(node)[:60]} is made where it cannot be followed"
        raise Untranslatable(what, line_of(node))

    def _at(self, of: JavaClass, **names: Any) -> Scope:
        return Scope(of.source, of, self.project, **names)

    def _class(self, name: str, at: Scope) -> JavaClass | None:
        return self.project.find(name, at.source, at.within)

    def _reader(self, at: Scope) -> Reader:
        """Return a reader of what is given to a constructor or method."""
        scope = Scope(at.source, at.within, self.project, values=dict(self.known))
        return Reader(scope, self.findings)

    # --- classes

    def _created(self, node: Node, at: Scope) -> Function:
        """Return the method of a new object of a class, declared or anonymous."""
        type_ = read_type(node.child_by_field_name("type"))
        body = next((part for part in children(node) if part.type == "class_body"), None)
        above = self._class(type_.name, at)
        of = above if body is None else JavaClass("", "class", at.source, body, at.within)
        lineage = [] if of is None else list(self.project.lineage(of))
        named = (m for one in lineage for name in self.methods for m in one.methods.get(name, []))
        method = next((one for one in named if one.body is not None), None)
        if of is None or method is None:
            what = f"the class {type_} is not in the sources"
            what = what if above is None else f"{above.name} has no {self.methods[0]}()"
            raise Untranslatable(what, line_of(node))
        given = children(node.child_by_field_name("arguments"))
        fields = fields_of_object(self._reader(at), of, given, node, self.methods)
        parents = [one for one in (of.superclass, *of.interfaces) if one is not None and one.args]
        scope = self._at(method.owner, fields=fields, dynamic=of)
        found = self._method(method, scope, parents[0] if parents else type_)
        names, around = {name for one in lineage for name in one.fields}, locals_around(node)
        if above is None or method.owner.is_anonymous:
            scope.around = around - names
            return attrs.evolve(found, hidden=frozenset(names))
        made = attrs.evolve(
            found,
            class_name=above.name,
            doc=found.doc or first_sentence(above.node),
            hidden=frozenset(names | around),
            variables=above.variables,
        )
        return made.of_types(dict(zip(above.variables, type_.args, strict=False)))

    def _method(self, method: Method, scope: Scope, type_: JavaType) -> Function:
        """Return a method as a function, of an object of a type."""
        if method.body is None:
            raise Untranslatable(f"{method.name}() has no body", line_of(method.node))
        event, doc = (type_.args[0] if type_.args else UNKNOWN), first_sentence(method.node)
        given = (method.parameters, method.body, scope, event, method.type, doc, type_.args)
        return Function(*given)

    # --- others

    def _reference(self, node: Node, at: Scope) -> Function:
        owner, name = text_of(node.children[0]), text_of(node.children[-1])
        of = at.within if owner == "this" else self._class(owner, at)
        held = self.project.constant_field(owner, at.source, at.within) if of is None else None
        if held is not None and held[0].value is not None and name in (*_METHODS, *self.methods):
            inner = self.find(held[0].value, self._at(held[1]), 1)
            known = inner.event_type.name != "?" or not held[0].type.args
            return inner if known else attrs.evolve(inner, event_type=held[0].type.args[0])
        if of is None and not (owner[:1].isupper() and owner.isidentifier()):
            raise Untranslatable(f"the class {owner} is not in the sources", line_of(node))
        if of is None:  # of a library: as the lambda that it stands for
            return self._written(f"it -> {owner}.{name}(it)", UNKNOWN, at, node)
        for count in (1, 2):
            methods = self.project.overloads(of, name, count)
            if len(methods) > 1:
                raise Untranslatable(f"which of several {name}() is meant", line_of(node))
            for method in methods:
                return self._method(method, self._at(method.owner or of), UNKNOWN)
        return self._written(f"it -> it.{name}()", JavaType(of.name), self._at(of), node)

    def _written(self, text: str, type_: JavaType, at: Scope, node: Node) -> Function:
        """Return the function of a lambda of one parameter, from its text."""
        body = lambda_of(text, at.source.file, line_of(node)).child_by_field_name("body")
        return Function((("it", type_),), body, at)

    def _called(self, node: Node, at: Scope, depth: int) -> Function:
        """Return the function that is handed on, as to ``SimpleCondition.of``."""
        arguments = children(node.child_by_field_name("arguments"))
        if text_of(node.child_by_field_name("name")) in _WRAPPERS and len(arguments) == 1:
            return self.find(arguments[0], at, depth + 1)
        raise Untranslatable(f"{text_of(node)[:60]} is not in the sources", line_of(node))


def first_sentence(node: Node) -> str:
    """Return the first sentence of the comment before a declaration; empty if there is none."""
    before = node.prev_sibling
    if before is None or before.type != "block_comment":
        return ""
    words = " ".join(javadoc(node).split())
    first = re.split(r"(?<=\.)\s", words, maxsplit=1)[0].strip().replace('"""', "'''")
    first = first.replace("\\", "/").rstrip('"')[:90]
    return first if not first or first.endswith(".") else first + "."
