# SPDX-License-Identifier: Apache-2.0
"""Reads Java's statements."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce

import attrs

from pyflinkcep.migrate.java.declarations import BOOLEAN, INT, STRING, UNKNOWN, JavaType, Method
from pyflinkcep.migrate.java.source import (
    Node,
    children,
    declared_type,
    lambda_of,
    line_of,
    snake_case,
    text_of,
)
from pyflinkcep.migrate.meaning import operations as ops
from pyflinkcep.migrate.meaning.json_nodes import is_parsed
from pyflinkcep.migrate.meaning.python import ORDERED, Python, Statements
from pyflinkcep.migrate.meaning.reading import Reading, element_of, parameters_of
from pyflinkcep.migrate.meaning.tree import (
    ELEMENT,
    Aggregate,
    Binary,
    Break,
    Call,
    Cast,
    Choice,
    Const,
    Continue,
    Do,
    Expression,
    ForEach,
    Get,
    If,
    Lambda,
    Let,
    Make,
    Raise,
    Return,
    Set,
    Statement,
    Try,
    Unary,
    Untranslatable,
    Var,
    While,
    all_statements,
    calls_in,
    ends,
    parts,
    rewritten,
    stage_free,
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
    tests: list[Expression] = []
    for label in labels:
        is_name = isinstance(label, Const) and isinstance(label.value, str)
        if label.type == STRING or (is_name and label.type.name != "char"):
            tests.append(Call(ops.EQUALS, (tested, label), BOOLEAN))
        else:
            tests.append(Binary("==", tested, label, BOOLEAN))
    return reduce(lambda a, b: Binary("||", a, b, BOOLEAN), tests)


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
        if value is not None:
            is_raw = not written.args and value.type.args and written.name == value.type.name
            type_ = value.type if written == UNKNOWN or is_raw else written
            if value.type.name in ORDERED:
                type_ = attrs.evolve(type_, name=value.type.name)
        value = reader.assigned(value, type_) if value is not None else None
        variable = reader.scope.declare(text_of(name), type_)
        if value is not None and is_parsed(value, reader.findings.parsed):
            reader.findings.parsed.add(variable.name)
        found.append(Let(variable.name, type_, value))
    return found


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
    return [Set(value, Call(ops.CONCAT, (attrs.evolve(value, type=STRING), *pieces), STRING))]


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
    match target:
        case Var() | Get() | Call(ops.GET):
            return Set(target, value)
    raise reader.no(node, f"an assignment to {text_of(node)[:40]}")


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
    changes = (ops.ADD, ops.ADD_ALL, ops.CLEAR)
    changed = [one.operands[0] for one in calls_in(body) if one.operation in changes]
    return not any(one in changed for one in sized)


def _changes(statements: tuple[Statement, ...], name: str) -> bool:
    stepped = [one.operands[0] for one in calls_in(statements) if one.operation is ops.STEP]
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


_READERS: dict[str, Callable[[Reading, Node], list[Statement]]] = {
    "local_variable_declaration": _local,
    "expression_statement": lambda reader, node: _effect(reader, children(node)[0]),
    "if_statement": _if,
    "enhanced_for_statement": _for_each,
    "for_statement": _for,
    "while_statement": _while,
    "return_statement": _return,
    "throw_statement": _throw,
    "try_statement": _try,
    "switch_expression": read_switch,
    "yield_statement": lambda reader, node: [Return(reader.read(children(node)[0]))],
    "break_statement": lambda _, __: [Break()],
    "continue_statement": lambda _, __: [Continue()],
    "labeled_statement": _labeled,
    "block": lambda reader, node: list(read_block(reader, node)),
    "assert_statement": lambda _, __: [],
}


Values = Mapping[str, Expression]


def folded_loop(
    loop: ForEach, iterable: Expression, values: Values
) -> tuple[dict[str, Expression], tuple[Expression, Expression] | None]:
    """Return the variables after a loop, and a condition under which it returns, with the value."""
    if not (isinstance(iterable, Call) and iterable.operation is ops.EVENTS):
        raise Untranslatable("a loop over what is no stage")
    stage = iterable.operands[0]
    if not isinstance(stage, Const) or not isinstance(stage.value, str):
        raise Untranslatable("a loop over a stage whose name is not known")
    element = Var(ELEMENT, loop.type)
    inside = {**values, loop.name: element}
    folder = _Folder(stage.value, element, dict(values), inside)
    folder.statements(loop.body)
    return folder.after, folder.returned


@attrs.define(eq=False)
class _Folder:
    stage: str
    element: Var
    after: dict[str, Expression]
    inside: dict[str, Expression]
    returned: tuple[Expression, Expression] | None = None

    def statements(self, body: tuple[Statement, ...]) -> None:
        changed = set(_assigned(body))
        match body:
            case (Set(target=Var(name), value=value), Break()):
                self._taken("first", name, value, self.inside)
                return
        for place, one in enumerate(body):
            match one:
                case Let(name=name, value=made) if made is not None:
                    self.inside[name] = replaced(made, self.inside)
                case Set(target=Var(name), value=value):
                    self._set(name, value, None, changed)
                case If(condition, (Return(value=result),), ()) if result is not None:
                    if place != len(body) - 1 or changed or self.returned is not None:
                        raise Untranslatable("a loop that returns")
                    self._returns(replaced(condition, self.inside), replaced(result, self.inside))
                case If(condition, (Set(target=Var(name), value=value),), ()):
                    self._set(name, value, condition, changed | {name})
                case _:
                    raise Untranslatable("a loop with other statements")

    def _is_about_element(self, of: Expression) -> bool:
        """Whether a value depends on the event of the loop and constants alone."""
        names = {part.name for part in parts(of) if isinstance(part, Var)}
        return names <= {ELEMENT} and stage_free(of)

    # --- assignments

    def _set(
        self, name: str, value: Expression, condition: Expression | None, changed: set[str]
    ) -> None:
        before = self.after.get(name)
        if before is None:
            raise Untranslatable("a loop that sets a variable without a value before")
        outside = {k: v for k, v in self.inside.items() if k not in changed}
        test = replaced(condition, outside) if condition is not None else None
        inner = value.operand if isinstance(value, Cast) and value.type.is_whole else value
        match inner:
            case Binary("+", Var(same), added) if same == name:
                found = self._summed(replaced(added, outside), value.type, before, test)
                self.after[name] = found
            case Binary("+", added, Var(same)) if same == name and inner.type.is_whole:
                found = self._summed(replaced(added, outside), value.type, before, test)
                self.after[name] = found
            case _ if test is None:
                self._taken("last", name, value, outside)
            case _:
                raise Untranslatable("a loop that sets a variable under a condition")

    def _summed(
        self, added: Expression, type_: JavaType, before: Expression, test: Expression | None
    ) -> Expression:
        if not all(map(self._is_about_element, [added, *([] if test is None else [test])])):
            raise Untranslatable("a sum of what depends on other events")
        type_, begins = type_.unboxed, isinstance(before, Const) and before.value == 0
        narrower = added.type.unboxed.name in ("short", "byte", "char", "int", type_.name)
        if not (begins if type_.name == "double" else type_.name in ("int", "long") and narrower):
            raise Untranslatable(f"a sum of {type_}, or of doubles that does not begin with 0")
        if test is not None:
            zero = Const(0.0, type_) if type_.name == "double" else Const(0, INT)
            added = Choice(test, added, zero, added.type)
        total = Aggregate("sum", self.stage, added, type_)
        if added == Const(1, INT):
            total = Aggregate("count", self.stage, None, type_)
        return total if begins else Binary("+", before, total, type_)

    def _taken(self, function: str, name: str, value: Expression, names: Values) -> None:
        """Let a variable hold the first or last event, or a value of it."""
        before = self.after.get(name)
        taken = Aggregate(function, self.stage, None, self.element.type)
        found = replaced(value, names)
        if found != self.element or not (isinstance(before, Const) and before.value is None):
            raise Untranslatable("a loop that keeps what is no event")
        self.after[name] = taken

    # --- returns

    def _returns(self, condition: Expression, value: Expression) -> None:
        if any(isinstance(p, Var) and p.name == ELEMENT for p in parts(value)):
            raise Untranslatable("a loop that returns a value of one event")
        if not self._is_about_element(condition):
            raise Untranslatable("a loop that compares each event with others")
        one = Choice(condition, Const(1, INT), Const(0, INT), INT)
        found = Aggregate("sum", self.stage, one, JavaType("long"))
        self.returned = Binary(">", found, Const(0, found.type), BOOLEAN), value


def _assigned(body: tuple[Statement, ...]) -> Iterator[str]:
    for one in body:
        if isinstance(one, Set) and isinstance(one.target, Var):
            yield one.target.name


_MOST_PARTS = 400


def folded(statements: tuple[Statement, ...]) -> Expression:
    """Return statements that return a value as an expression; raise Untranslatable otherwise."""
    if any(one.operation.has_effect for one in calls_in(statements)):
        raise Untranslatable("an expression that changes something")
    found = _fold(statements, {})
    if found is None:
        raise Untranslatable("a function that may return nothing")
    return found


def replaced(of: Expression, values: Values) -> Expression:
    """Return an expression with what its variables stand for."""
    return rewritten(of, lambda part: values.get(part.name) if isinstance(part, Var) else None)


def _fold(statements: tuple[Statement, ...], values: Values) -> Expression | None:
    for place, statement in enumerate(statements):
        rest = statements[place + 1 :]
        match statement:
            case Let(value=None):
                values = {name: v for name, v in values.items() if name != statement.name}
            case Let(value=value) if value is not None:
                values = {**values, statement.name: replaced(value, values)}
            case Set(target=Var(name=name)):
                values = {**values, name: replaced(statement.value, values)}
            case Return(value=value):
                return None if value is None else replaced(value, values)
            case If():
                condition = replaced(statement.condition, values)
                branches = (statement.then, statement.otherwise)
                yes, no = (_fold((*branch, *rest), values) for branch in branches)
                found = None if yes is None or no is None else choose(condition, yes, no)
                if found is not None and sum(1 for _ in parts(found)) > _MOST_PARTS:
                    raise Untranslatable("a function with too many branches")
                return found
            case ForEach():
                iterable = replaced(statement.iterable, values)
                values, returned = folded_loop(statement, iterable, values)
                if returned is not None:
                    after = _fold(rest, values)
                    return None if after is None else choose(*returned, after)
            case Do(value=Call(ops.LOG | ops.PRINT)):
                raise Untranslatable("it writes to a log")
            case _:
                raise Untranslatable(f"{type(statement).__name__.lower()} in an expression")
    return None


def choose(condition: Expression, yes: Expression, no: Expression) -> Expression:
    """Return one of two values; of booleans, as ``&&`` and ``||`` where that is the same."""
    if isinstance(condition, Const):
        return yes if condition.value else no
    if yes == no:
        return yes
    if yes.type.unboxed == BOOLEAN and no.type.unboxed == BOOLEAN:
        for value, other, test in ((yes, no, condition), (no, yes, negated(condition))):
            if isinstance(value, Const):
                if isinstance(other, Const):
                    return test if value.value else negated(test)
                if value.value:
                    return Binary("||", test, other, BOOLEAN)
                return Binary("&&", negated(test), other, BOOLEAN)
    type_ = no.type.boxed if yes.type.name == "null" else yes.type
    type_ = type_.boxed if no.type.name == "null" else type_
    if yes.type.is_numeric and no.type.is_numeric and yes.type != no.type:
        type_ = yes.type if yes.type.unboxed.name in ("double", "float") else no.type
    return Choice(condition, yes, no, type_)


def negated(condition: Expression) -> Expression:
    """Return the negation of a condition."""
    if isinstance(condition, Unary) and condition.operator == "!":
        return condition.operand
    return Unary("!", condition, BOOLEAN)


_LISTS: list[Expression] = [Const(None, JavaType("Map"))]
"""What a variable with lists holds, which is no new object."""


def checked_changes(statements: tuple[Statement, ...]) -> None:
    """Raise Untranslatable if code changes a list or map, or an array, that it did not make."""
    own = _own(statements, {"match"})
    changes = [one for one in calls_in(statements) if one.operation.changes]
    shared = {_root(one.operands[0])[0] for one in changes if _takes_others(one, own)}
    for change in changes:
        changed = change.operands[0]
        _check(changed, own)
        if not isinstance(changed, Var) and _root(changed)[0] in shared:
            raise Untranslatable("an element of a list is changed that others have too")
    for one in all_statements(statements):
        if isinstance(one, Set) and isinstance(one.target, Call):
            _check(one.target.operands[0], own)


def _takes_others(change: Call, own: Mapping[str, list[Expression]]) -> bool:
    """Whether a list or map gets a list that the code did not make."""
    for value in change.operands[1:]:
        root, field = _root(value)
        many = value.type.dims or value.type.name in ("List", "Set", "Map", "Collection", "?")
        if many and isinstance(root, Var) and (field or root.name not in own):
            return True
    return False


def _check(changed: Expression, own: Mapping[str, list[Expression]]) -> None:
    root, field = _root(changed)
    held = own.get(root.name) if isinstance(root, Var) else None
    if held is None or (field and not all(isinstance(value, Make) for value in held)):
        raise Untranslatable("a list or map is changed that is kept from call to call")


def _root(of: Expression) -> tuple[Expression, bool]:
    """Return what holds a value, and whether a field of an object is on the way."""
    field = False
    while True:
        match of:
            case Get(owner=owner):
                of, field = owner, True
            case Cast(operand=operand):
                of = operand
            case Call(operation, operands) if operation.is_part:
                of = operands[0]
            case _:
                return of, field


def _own(statements: tuple[Statement, ...], given: set[str]) -> dict[str, list[Expression]]:
    """Return the variables that hold nothing but what the code makes itself, and what that is."""
    held: dict[str, list[Expression]] = {}
    for one in all_statements(statements):
        if isinstance(one, Let) and one.value is not None:
            held.setdefault(one.name, []).append(one.value)
        elif isinstance(one, Set) and isinstance(one.target, Var):
            held.setdefault(one.target.name, []).append(one.value)
        elif isinstance(one, ForEach):
            held.setdefault(one.name, []).append(one.iterable)
    own = set(held)
    while True:
        kept = {name for name in own if all(_is_own(value, own | given) for value in held[name])}
        if kept == own:
            return {name: held.get(name, []) for name in own} | dict.fromkeys(given, _LISTS)
        own = kept


def _is_own(value: Expression, own: set[str]) -> bool:
    root, field = _root(value)
    if isinstance(root, Var):
        return root.name in own and not field
    if field:
        return isinstance(root, Make)
    return isinstance(root, Make | Const) or (
        isinstance(root, Call) and root.operation is not ops.EVENTS
    )


def folded_body(reader: Reading, body: Node | tuple[Statement, ...]) -> Expression:
    """Return a block that returns a value as an expression; raise Untranslatable otherwise."""
    found = folded(body if isinstance(body, tuple) else read_block(reader, body))
    if not reader.findings.aggregates and has_aggregates(found):
        raise Untranslatable("a loop in an expression")
    return found


def has_aggregates(of: Expression) -> bool:
    """Whether loops have become aggregates, which only SQL has."""
    return any(isinstance(part, Aggregate) for part in parts(of))


def value_of_body(
    inner: Reading, method: Method, values: list[Expression], reader: Reading
) -> Expression:
    """Return the value of a method for some arguments."""
    owner = inner.scope.this
    for (name, type_), value in zip(method.parameters, values, strict=True):
        inner.scope.values[name] = reader.assigned(value, type_)
    inner.result_type = method.type
    inner.event_type = reader.event_type
    called = reader.findings.helper_names.get(method.node.id)
    if called is None:
        try:
            return reader.cast_known(folded_body(inner, method.body), method.type)
        except Untranslatable:
            called = _helper(inner, method)
    operation = ops.Operation(f"{called}()", f"{called}(*all)")
    return Call(operation, (*([owner] if owner else []), *values), method.type)


def function_called(
    reader: Reading, owner: Expression, values: list[Expression], node: Node
) -> Expression:
    """Return what a function that is an object returns for some arguments."""
    if isinstance(owner, Lambda):
        if len(owner.parameters) != len(values):
            raise reader.no(node, f"a function of {len(owner.parameters)} with {len(values)}")
        return replaced(owner.body, dict(zip(owner.parameters, values, strict=True)))
    function = owner.value if isinstance(owner, Const) else None
    if function is None or reader.scope.depth > _MOST:
        raise reader.no(node, "a function that is not known here")
    place = function.scope
    inner = reader.at(place.source, place.within, fields={**place.fields})
    for (name, type_), value in zip(function.parameters, values, strict=False):
        inner.scope.values[name] = reader.cast_known(value, type_)
    if function.is_block:
        return folded_body(inner, function.body)
    return inner.read(function.body)


_MOST = 12
"""How deep calls of functions are followed."""


def _helper(inner: Reading, method: Method) -> str:
    """Write a method as a function of Python; return its name."""
    findings = inner.findings
    name = "_" + snake_case(method.name)
    while name in findings.helper_names.values():
        name += "_"
    findings.helper_names[method.node.id] = name
    parameters = []
    if inner.scope.this is not None:
        this = inner.scope.declare("this", inner.scope.this.type)
        inner.scope.values.pop("this")
        inner.scope.this = this
        parameters.append(this.name)
    for java, type_ in method.parameters:
        parameters.append(inner.scope.declare(java, type_).name)
    try:
        statements = read_block(inner, method.body)
        checked_changes(statements)
        body = Statements(Python(findings)).block(statements)
    except Untranslatable:
        findings.helper_names.pop(method.node.id)
        raise
    returns = "None" if method.type == JavaType("void") else "Any"
    head = f"def {name}({', '.join(f'{one}: Any' for one in parameters)}) -> {returns}:"
    findings.helpers[name] = "\n".join([head, *(f"    {line}" for line in body or ["pass"])])
    return name


def helper_lines(reader: Reading) -> list[str]:
    """Return the lines of the functions that a body calls, and forget them."""
    found: list[str] = []
    for text in reader.findings.helpers.values():
        found += [*text.splitlines(), ""]
    reader.findings.helpers.clear()
    reader.findings.helper_names.clear()
    return found
