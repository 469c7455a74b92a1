# SPDX-License-Identifier: Apache-2.0
"""Reads Java's statements."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import attrs

from pyflinkcep.migrate.java.declarations import BOOLEAN, INT, STRING, UNKNOWN, JavaType
from pyflinkcep.migrate.java.source import (
    Node,
    children,
    declared_type,
    lambda_of,
    line_of,
    text_of,
)
from pyflinkcep.migrate.meaning import operations as ops
from pyflinkcep.migrate.meaning.json_nodes import is_parsed
from pyflinkcep.migrate.meaning.reading import Reading, element_of, parameters_of
from pyflinkcep.migrate.meaning.tree import (
    Binary,
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
    Untranslatable,
    Var,
    While,
    all_statements,
    ends,
    expressions_of,
    parts,
)


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
        elif part.type in ("pattern", "record_pattern", "type_pattern", "guard"):
            raise reader.no(part, "a pattern in a switch")
        else:
            found.append(reader.read(part))
    return found


def is_case(tested: Expression, labels: list[Expression]) -> Expression:
    """Return whether a value is one of the labels of a case."""
    found: Expression | None = None
    for label in labels:
        if label.type.name in ("String",) or (isinstance(label, Const) and _is_enum(label)):
            one: Expression = Call(ops.EQUALS, (tested, label), BOOLEAN)
        else:
            one = Binary("==", tested, label, BOOLEAN)
        found = one if found is None else Binary("||", found, one, BOOLEAN)
    if found is None:
        raise Untranslatable("a case without a value")
    return found


def _is_enum(label: Const) -> bool:
    return isinstance(label.value, str) and label.type.name not in ("char", "String")


_LEVELS = {"trace": "debug", "debug": "debug", "info": "info", "warn": "warning", "error": "error"}
_PRINTED = ("System.out", "System.err")


def logged(reader: Reading, node: Node) -> Do | None:
    """Return a call that writes to a log or to the terminal; None for others."""
    owner, name = node.child_by_field_name("object"), text_of(node.child_by_field_name("name"))
    if owner is None:
        return None
    arguments = children(node.child_by_field_name("arguments"))
    void = JavaType("void")
    if text_of(owner) in _PRINTED and name in ("println", "print"):
        values = tuple(reader.read(argument) for argument in arguments)
        return Do(Call(ops.PRINT, values, void))
    is_logger = owner.type == "identifier" and (
        text_of(owner).lower() in ("log", "logger", "_log")
        or declared_type(owner, text_of(owner)) == "Logger"
    )
    if not is_logger or name not in _LEVELS or not arguments:
        return None
    values = tuple(reader.read(argument) for argument in arguments)
    return Do(Call(ops.LOG, (Const(_LEVELS[name], STRING), *values), void))


_METRICS = re.compile(
    r"(Counter|Meter|Gauge|Histogram|MetricGroup|\w+Counter|\w+Accumulator|MeterView)$"
)


def measured(reader: Reading, node: Node) -> bool:
    """Whether a call only counts for a metric or accumulator, which is left out, with a note."""
    owner = node.child_by_field_name("object")
    while owner is not None and owner.type == "method_invocation":
        first = owner.child_by_field_name("object")
        if first is None and text_of(owner.child_by_field_name("name")) == "getRuntimeContext":
            reader.note(node, f"{text_of(node)[:60]} is left out: metrics have no counterpart")
            return True
        owner = first
    if owner is None:
        return False
    name = text_of(owner).removeprefix("this.")
    if not name.isidentifier() or _METRICS.match(declared_type(node, name)) is None:
        return False
    reader.note(node, f"{text_of(node)[:60]} is left out: metrics have no counterpart")
    return True


def for_each_call(reader: Reading, node: Node) -> Statement | None:
    """Return ``xs.forEach(x -> …)`` or ``map.forEach((k, v) -> …)`` as a loop; None for others."""
    arguments = children(node.child_by_field_name("arguments"))
    if text_of(node.child_by_field_name("name")) != "forEach" or len(arguments) != 1:
        return None
    function = arguments[0]
    if function.type == "method_reference":
        owner, called = text_of(function.children[0]), text_of(function.children[-1])
        text = f"each -> {owner}.{called}(each)"
        function = lambda_of(text, reader.source.file, line_of(node))
    names = [name for name, _ in parameters_of(function)]
    if not names:
        return None
    whole = reader.read(node.child_by_field_name("object"))
    inner = reader.within_block()
    if len(names) == 1:
        each = inner.scope.declare(names[0], element_of(whole.type))
        return ForEach(each.name, each.type, whole, _turn(inner, function))
    args = whole.type.args if len(whole.type.args) == 2 else (UNKNOWN, UNKNOWN)
    each = inner.scope.declare("entry", JavaType("Entry", args))
    lets = []
    for name, type_, getter in zip(names, args, (ops.KEY, ops.VALUE), strict=True):
        variable = inner.scope.declare(name, type_)
        lets.append(Let(variable.name, type_, Call(getter, (each,), type_)))
    pairs = Call(ops.ENTRIES, (whole,), JavaType("Set", (each.type,)))
    return ForEach(each.name, each.type, pairs, (*lets, *_turn(inner, function)))


def _turn(reader: Reading, function: Node) -> tuple[Statement, ...]:
    """Return the statements of a lambda that a loop calls, which ``return`` goes on with."""
    body = function.child_by_field_name("body")
    return _going_on(read_statements(reader, children(body) if body.type == "block" else [body]))


def _going_on(statements: tuple[Statement, ...]) -> tuple[Statement, ...]:
    found: list[Statement] = []
    for one in statements:
        match one:
            case Return():
                found.append(Continue())
            case If():
                then, otherwise = _going_on(one.then), _going_on(one.otherwise)
                found.append(If(one.condition, then, otherwise))
            case ForEach() | While() if any(isinstance(s, Return) for s in all_statements((one,))):
                raise Untranslatable("return inside of a loop inside of forEach()")
            case Try() if any(isinstance(s, Return) for s in all_statements((one,))):
                raise Untranslatable("return inside of try inside of forEach()")
            case _:
                found.append(one)
    return tuple(found)


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
            value = Call(ops.LIST, items, written)
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
        each = for_each_call(reader, node)
        if each is not None:
            return [each]
        setter = _setter(reader, node)
        if setter is not None:
            return [setter]
    value = reader.read(node)
    if isinstance(value, Call) and value.operation is ops.APPEND:
        return _appended(reader, value, node)
    return [Do(value)]


def _appended(reader: Reading, value: Expression, node: Node) -> list[Statement]:
    pieces: list[Expression] = []
    while isinstance(value, Call) and value.operation is ops.APPEND:
        pieces.insert(0, value.operands[1])
        value = value.operands[0]
    if not isinstance(value, Var):
        raise reader.no(node, "append() to what is no variable")
    text: Expression = attrs.evolve(value, type=STRING)
    for piece in pieces:
        text = Call(ops.CONCAT, (text, piece), STRING)
    return [Set(value, text)]


def _assignment(reader: Reading, node: Node) -> list[Statement]:
    operator = text_of(node.child_by_field_name("operator"))
    right = node.child_by_field_name("right")
    before: list[Statement] = []
    if right.type == "assignment_expression":
        before = _assignment(reader, right)
        right = right.child_by_field_name("left")
    target = reader.read(node.child_by_field_name("left"))
    value = reader.argument(right, (target.type,))
    if operator != "=":
        value = reader.operation(operator[:-1], target, value, node)
        value = _narrowed(value, target.type)
    return [*before, _set(reader, target, reader.assigned(value, target.type), node)]


def _narrowed(value: Expression, type_: JavaType) -> Expression:
    """Return the result of a compound assignment, cast to the type of its variable."""
    want, have = type_.unboxed, value.type.unboxed
    whole = ("byte", "short", "int", "long", "char")
    if want == have or want.name not in (*whole, "float", "double"):
        return value
    return Cast(value, want)


def _set(reader: Reading, target: Expression, value: Expression, node: Node) -> Statement:
    if not isinstance(target, Var | Get) and not (
        isinstance(target, Call) and target.operation is ops.GET
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
    given_value = reader.as_row(given_value, field.type)
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
    loop = While(condition, read_block(inner, node.child_by_field_name("body")), tuple(update))
    counted = _counted(before, loop)
    return [*before, loop] if counted is None else [counted]


def _counted(before: list[Statement], loop: While) -> ForEach | None:
    """Return ``for (int i = …; i < n; i++)`` as a loop over a range; None for others."""
    match before, loop.condition, loop.update:
        case (
            [Let(name, type_, start)],
            Binary("<" | "<=" as op, Var() as counter, limit),
            (Set(target, Binary("+", counted, Const(value=1))),),
        ) if start is not None and counter.name == name and target == counted == counter:
            read = [part.name for part in parts(limit) if isinstance(part, Var)]
            changed = any(_changes(loop.body, one) for one in (name, *read))
            if not changed and _is_fixed(limit, loop.body):
                operation = ops.RANGE if op == "<" else ops.RANGE_TO_LAST
                numbers = Call(operation, (start, limit), JavaType("IntStream", (INT,)))
                return ForEach(name, type_, numbers, loop.body)
    return None


def _is_fixed(limit: Expression, body: tuple[Statement, ...]) -> bool:
    sized = [p.operands[0] for p in parts(limit) if isinstance(p, Call) and p.operands]
    changed = [
        p.operands[0]
        for one in expressions_of(body)
        for p in parts(one)
        if isinstance(p, Call) and p.operation in (ops.ADD, ops.ADD_ALL, ops.CLEAR)
    ]
    return not any(one in changed for one in sized)


def _changes(statements: tuple[Statement, ...], name: str) -> bool:
    calls = (p for one in expressions_of(statements) for p in parts(one) if isinstance(p, Call))
    stepped = [p.operands[0] for p in calls if p.operation in (ops.STEP,)]
    assigned = [one.target for one in all_statements(statements) if isinstance(one, Set)]
    return any(isinstance(one, Var) and one.name == name for one in (*stepped, *assigned))


def _while(reader: Reading, node: Node) -> list[Statement]:
    condition = reader.read(node.child_by_field_name("condition"))
    return [While(condition, read_block(reader, node.child_by_field_name("body")))]


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


def read_switch(reader: Reading, node: Node, *, is_value: bool = False) -> list[Statement]:
    """Return a switch as conditionals; one that is a value returns those of its cases."""
    tested = reader.read(node.child_by_field_name("condition"))
    groups = children(node.child_by_field_name("body"))
    cases: list[tuple[list[Expression], bool, tuple[Statement, ...]]] = []
    following: tuple[Statement, ...] = ()
    for group in reversed(groups):
        parts = children(group)
        labels: list[Expression] = []
        is_default = False
        inner = reader.within_block()
        for label in (part for part in parts if part.type == "switch_label"):
            given = case_labels(reader, label, tested)
            is_default = is_default or given is None
            labels += given or []
        body = [part for part in parts if part.type != "switch_label"]
        if is_value and body[0].type == "expression_statement":
            following = (Return(inner.read(children(body[0])[0])),)
        else:
            following = _of_case(inner, group, body, following)
        cases.insert(0, (labels, is_default, following))
    otherwise = next((statements for _, is_default, statements in cases if is_default), ())
    if is_value and not otherwise:
        otherwise = cases.pop()[2]  # one that has all constants of an enum
    for labels, is_default, statements in reversed(cases):
        if labels and not is_default:
            otherwise = (If(is_case(tested, labels), statements, otherwise),)
    return list(otherwise)


def _of_case(
    reader: Reading, group: Node, body: list[Node], following: tuple[Statement, ...]
) -> tuple[Statement, ...]:
    """Return the statements of a case, with those of the next one if it falls through."""
    nodes = children(body[0]) if len(body) == 1 and body[0].type == "block" else body
    statements = read_statements(reader, nodes)
    if statements and isinstance(statements[-1], Break):
        statements = statements[:-1]
    elif group.type != "switch_rule" and not ends(statements):
        statements += following
    if _leaves(statements):
        raise reader.no(group, "break inside of a case")
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
    "return_statement": _return,
    "throw_statement": _throw,
    "try_statement": _try,
    "switch_expression": read_switch,
    "yield_statement": _yield,
    "break_statement": lambda _, __: [Break()],
    "continue_statement": lambda _, __: [Continue()],
    "labeled_statement": _labeled,
    "block": lambda reader, node: list(read_block(reader, node)),
    "assert_statement": lambda _, __: [],
}
