# SPDX-License-Identifier: Apache-2.0
"""Reads Java's statements."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import attrs

from pyflinkcep.migrate.java.declarations import JavaType
from pyflinkcep.migrate.java.source import Node, children, line_of, text_of
from pyflinkcep.migrate.java.types import BOOLEAN, INT, STRING, UNKNOWN, unboxed
from pyflinkcep.migrate.meaning.cases import case_labels, is_case
from pyflinkcep.migrate.meaning.collectors import element_of
from pyflinkcep.migrate.meaning.construction import as_row
from pyflinkcep.migrate.meaning.each import for_each_call, if_present
from pyflinkcep.migrate.meaning.json_events import is_parsed
from pyflinkcep.migrate.meaning.logging import logged, measured
from pyflinkcep.migrate.meaning.reading import Reading
from pyflinkcep.migrate.meaning.tree import (
    Break,
    Call,
    Cast,
    Const,
    Continue,
    Do,
    Expression,
    ForEach,
    Get,
    If,
    Let,
    Raise,
    Return,
    Set,
    Statement,
    Try,
    Unary,
    Untranslatable,
    Var,
    While,
)
from pyflinkcep.migrate.meaning.type_patterns import of_case
from pyflinkcep.migrate.meaning.walked import all_statements

__all__ = ["read_block", "read_statements"]

_EFFECTS = ("method_invocation", "assignment_expression", "update_expression")
_NOTHING = ("line_comment", "block_comment", ";", "empty_statement")


def read_block(reader: Reading, node: Node) -> tuple[Statement, ...]:
    """Return the statements of a block, or a single statement as a block."""
    inner = reader.within_block()
    nodes = children(node) if node.type in ("block", "constructor_body") else [node]
    return read_statements(inner, nodes)


def read_statements(reader: Reading, nodes: list[Node]) -> tuple[Statement, ...]:
    """Return statements, in the scope of the reader."""
    found: list[Statement] = []
    for node in nodes:
        if node.type in _NOTHING:
            continue
        if node.is_missing or node.type == "ERROR":
            raise reader.no(node, "a syntax error")
        read = _READERS.get(node.type, _effect if node.type in _EFFECTS else None)
        if read is None:
            raise reader.no(node, f"{node.type.replace('_', ' ')}: {text_of(node)[:60]}")
        try:
            found += read(reader, node)
        except Untranslatable as error:
            error.line = error.line or line_of(node)
            raise
    return tuple(found)


def _local(reader: Reading, node: Node) -> list[Statement]:
    written = reader.type_at(node.child_by_field_name("type"))
    found: list[Statement] = []
    for part in node.children_by_field_name("declarator"):
        name, value_node = (part.child_by_field_name(field) for field in ("name", "value"))
        value: Expression | None = None
        if value_node is not None and value_node.type == "array_initializer":
            items = tuple(reader.read(item) for item in children(value_node))
            value = Call("List.of", items, written)
        elif value_node is not None:
            value = reader.argument(value_node, (written,))
        type_ = written
        if value is not None and (written == UNKNOWN or _is_raw(written, value.type)):
            type_ = value.type
        value = reader.assigned(value, type_) if value is not None else None
        variable = reader.scope.declare(text_of(name), type_)
        if value is not None and is_parsed(value, reader.findings.parsed):
            reader.findings.parsed.add(variable.name)
        found.append(Let(variable.name, type_, value))
    return found


def _is_raw(written: JavaType, given: JavaType) -> bool:
    return not written.args and bool(given.args) and written.name == given.name


def _expression(reader: Reading, node: Node) -> list[Statement]:
    return _effect(reader, children(node)[0])


def _effect(reader: Reading, node: Node) -> list[Statement]:
    if node.type == "assignment_expression":
        return _assignment(reader, node)
    if node.type == "update_expression":
        operand = reader.read(children(node)[0])
        operator = "+" if "++" in text_of(node) else "-"
        value = reader.operation(operator, operand, Const(1, INT), node)
        return [_set(reader, operand, _narrowed(value, operand.type), node)]
    if node.type == "method_invocation":
        found = logged(reader, node)
        if found is not None:
            return [found]
        if measured(reader, node):
            return []
        present = if_present(reader, node)
        if present is not None:
            return [present]
        each = for_each_call(reader, node)
        if each is not None:
            return [each]
        setter = _setter(reader, node)
        if setter is not None:
            return [setter]
    value = reader.read(node)
    if isinstance(value, Call) and value.name == "append":
        return _appended(reader, value, node)
    return [Do(value)]


def _appended(reader: Reading, value: Expression, node: Node) -> list[Statement]:
    pieces: list[Expression] = []
    while isinstance(value, Call) and value.name == "append":
        pieces.insert(0, value.operands[1])
        value = value.operands[0]
    if not isinstance(value, Var):
        raise reader.no(node, "append() to what is no variable")
    text: Expression = attrs.evolve(value, type=STRING)
    for piece in pieces:
        text = Call("concat", (text, piece), STRING)
    return [Set(value, text)]


def _assignment(reader: Reading, node: Node) -> list[Statement]:
    operator = text_of(node.child_by_field_name("operator"))
    right = node.child_by_field_name("right")
    before: list[Statement] = []
    if right.type == "assignment_expression":
        before = _assignment(reader, right)
        right = right.child_by_field_name("left")
    target = _target(reader, node.child_by_field_name("left"))
    value = reader.argument(right, (target.type,))
    if operator != "=":
        value = reader.operation(operator[:-1], target, value, node)
        value = _narrowed(value, target.type)
    return [*before, _set(reader, target, reader.assigned(value, target.type), node)]


def _target(reader: Reading, node: Node) -> Expression:
    return reader.read(node)


def _narrowed(value: Expression, type_: JavaType) -> Expression:
    """Return the result of a compound assignment, cast to the type of its variable."""
    want, have = unboxed(type_), unboxed(value.type)
    whole = ("byte", "short", "int", "long", "char")
    if want == have or want.name not in (*whole, "float", "double"):
        return value
    return Cast(value, want)


def _set(reader: Reading, target: Expression, value: Expression, node: Node) -> Statement:
    if not isinstance(target, Var | Get) and not (
        isinstance(target, Call) and target.name == "List.get"
    ):
        raise reader.no(node, f"an assignment to {text_of(node)[:40]}")
    return Set(target, value)


def _setter(reader: Reading, node: Node) -> Statement | None:
    """Return ``x.setY(v)`` of a plain object as an assignment."""
    name = text_of(node.child_by_field_name("name"))
    owner, arguments = node.child_by_field_name("object"), node.child_by_field_name("arguments")
    given = children(arguments)
    if owner is None or not name.startswith("set") or len(name) < 4 or len(given) != 1:
        return None
    value = reader.read(owner)
    of = reader.class_of(value.type)
    if of is None:
        return None
    field_name = name[3].lower() + name[4:]
    field = reader.scope.project.field(of, field_name)
    if field is None:
        raise reader.no(node, f"{of.name} has no field {field_name}")
    given_value = reader.assigned(reader.argument(given[0], (field.type,)), field.type)
    given_value = as_row(reader, given_value, field.type)
    return Set(Get(value, field_name, field.type), given_value)


def _if(reader: Reading, node: Node) -> list[Statement]:
    condition = reader.read(node.child_by_field_name("condition"))
    then_reader = reader.within_block()
    consequence = node.child_by_field_name("consequence")
    nodes = children(consequence) if consequence.type == "block" else [consequence]
    then = read_statements(then_reader, nodes)
    alternative = node.child_by_field_name("alternative")
    otherwise = read_block(reader, alternative) if alternative is not None else ()
    return [If(condition, then, otherwise)]


def _for_each(reader: Reading, node: Node) -> list[Statement]:
    iterable = reader.read(node.child_by_field_name("value"))
    written = reader.type_at(node.child_by_field_name("type"))
    element = element_of(iterable.type)
    type_ = element if written == UNKNOWN or (written.name == element.name) else written
    inner = reader.within_block()
    variable = inner.scope.declare(text_of(node.child_by_field_name("name")), type_)
    if is_parsed(iterable, reader.findings.parsed):
        reader.findings.parsed.add(variable.name)
    body = read_block(inner, node.child_by_field_name("body"))
    return [ForEach(variable.name, type_, iterable, body)]


def _for(reader: Reading, node: Node) -> list[Statement]:
    inner = reader.within_block()
    before: list[Statement] = []
    for part in node.children_by_field_name("init"):
        before += _READERS.get(part.type, _effect)(inner, part)
    condition_node = node.child_by_field_name("condition")
    condition: Expression = Const(True, BOOLEAN)
    if condition_node is not None:
        condition = inner.read(condition_node)
    update: list[Statement] = []
    for part in node.children_by_field_name("update"):
        update += _effect(inner, part)
    body = read_block(inner, node.child_by_field_name("body"))
    return [*before, While(condition, body, tuple(update))]


def _while(reader: Reading, node: Node) -> list[Statement]:
    condition = reader.read(node.child_by_field_name("condition"))
    return [While(condition, read_block(reader, node.child_by_field_name("body")))]


def _do_while(reader: Reading, node: Node) -> list[Statement]:
    condition = reader.read(node.child_by_field_name("condition"))
    body = read_block(reader, node.child_by_field_name("body"))
    if any(isinstance(one, Continue) for one in all_statements(body)):
        raise reader.no(node, "continue in do")
    stop = If(Unary("!", condition, BOOLEAN), (Break(),))
    return [While(Const(True, BOOLEAN), (*body, stop))]


def _return(reader: Reading, node: Node) -> list[Statement]:
    values = children(node)
    value = reader.argument(values[0], (reader.result_type,)) if values else None
    return [Return(reader.assigned(value, reader.result_type) if value is not None else None)]


def _throw(reader: Reading, node: Node) -> list[Statement]:
    made = children(node)[0]
    message: Expression | None = None
    if made.type == "object_creation_expression":
        given = children(made.child_by_field_name("arguments"))
        message = reader.read(given[0]) if given else None
        if message is not None and message.type != STRING:
            message = None
    return [Raise(message)]


def _try(reader: Reading, node: Node) -> list[Statement]:
    clauses = [part for part in children(node) if part.type == "catch_clause"]
    if len(clauses) != 1 or any(part.type == "finally_clause" for part in children(node)):
        raise reader.no(node, "try with several catch clauses, or with finally")
    inner = reader.within_block()
    for part in children(clauses[0]):
        name = part.child_by_field_name("name") if part.type == "catch_formal_parameter" else None
        if name is not None:
            inner.scope.values[text_of(name)] = Var("error", JavaType("Exception"))
    handler = read_block(inner, clauses[0].child_by_field_name("body"))
    caught = [one for part in children(clauses[0]) for one in children(part)]
    types = [part for part in caught if part.type == "catch_type"]
    kinds = tuple(text_of(one).rsplit(".", 1)[-1] for part in types for one in children(part))
    return [Try(read_block(reader, node.child_by_field_name("body")), handler, kinds)]


def _switch(reader: Reading, node: Node) -> list[Statement]:
    tested = reader.read(node.child_by_field_name("condition"))
    groups = children(node.child_by_field_name("body"))
    cases: list[tuple[list[Expression], bool, tuple[Statement, ...]]] = []
    following: tuple[Statement, ...] = ()
    for group in reversed(groups):
        parts = children(group)
        labels: list[Expression] = []
        is_default = False
        kinds: list[Expression] = []
        inner = reader.within_block()
        for label in (part for part in parts if part.type == "switch_label"):
            kind = of_case(inner, label, tested)
            if kind is not None:
                kinds.append(kind)
                continue
            given = case_labels(reader, label, tested)
            is_default = is_default or given is None
            labels += given or []
        body = [part for part in parts if part.type != "switch_label"]
        following = _of_case(inner, group, body, following)
        tests = [*kinds, *([is_case(tested, labels)] if labels else [])]
        cases.insert(0, (tests, is_default, following))
    otherwise = next((statements for _, is_default, statements in cases if is_default), ())
    for tests, is_default, statements in reversed(cases):
        for test in () if is_default else tests:
            otherwise = (If(test, statements, otherwise),)
    return list(otherwise)


def _of_case(
    reader: Reading, group: Node, body: list[Node], following: tuple[Statement, ...]
) -> tuple[Statement, ...]:
    """Return the statements of a case, with those of the next one if it falls through."""
    nodes = children(body[0]) if len(body) == 1 and body[0].type == "block" else body
    statements = read_statements(reader, nodes)
    ended = bool(statements) and isinstance(statements[-1], Break | Return | Raise | Continue)
    if not ended and group.type != "switch_rule":
        statements += following
    found = _without_breaks(statements)
    if _leaves(found):
        raise reader.no(group, "break inside of a case")
    return found


def _without_breaks(statements: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """Return the statements of a case, with what a ``break`` skips in the other branch."""
    for place, one in enumerate(statements):
        if isinstance(one, Break):
            return statements[:place]
        if isinstance(one, If) and _leaves((one,)):
            rest = statements[place + 1 :]
            then, otherwise = (
                _without_breaks((*side, *rest)) for side in (one.then, one.otherwise)
            )
            return (*statements[:place], If(one.condition, then, otherwise))
    return statements


def _leaves(statements: Iterable[Statement]) -> bool:
    """Whether statements have a ``break`` that leaves the switch around them."""
    for one in statements:
        inner: tuple[Statement, ...] = ()
        if isinstance(one, If):
            inner = (*one.then, *one.otherwise)
        elif isinstance(one, Try):
            inner = (*one.body, *one.handler)
        if isinstance(one, Break) or _leaves(inner):
            return True
    return False


def _labeled(reader: Reading, node: Node) -> list[Statement]:
    label, body = children(node)[0], children(node)[-1]
    if f"break {text_of(label)}" in text_of(body) or f"continue {text_of(label)}" in text_of(body):
        raise reader.no(node, f"a loop that is left by its label {text_of(label)}")
    return list(read_statements(reader, [body]))


def _yield(reader: Reading, node: Node) -> list[Statement]:
    return [Return(reader.read(children(node)[0]))]


_READERS: dict[str, Callable[[Reading, Node], list[Statement]]] = {
    "local_variable_declaration": _local,
    "expression_statement": _expression,
    "if_statement": _if,
    "enhanced_for_statement": _for_each,
    "for_statement": _for,
    "while_statement": _while,
    "do_statement": _do_while,
    "return_statement": _return,
    "throw_statement": _throw,
    "try_statement": _try,
    "switch_expression": _switch,
    "yield_statement": _yield,
    "break_statement": lambda _, __: [Break()],
    "continue_statement": lambda _, __: [Continue()],
    "labeled_statement": _labeled,
    "block": lambda reader, node: list(read_block(reader, node)),
    "assert_statement": lambda _, __: [],
}
