# SPDX-License-Identifier: Apache-2.0
"""Writes expressions and statements as Python."""

from __future__ import annotations

import ast
import builtins
import keyword
import math
import symtable
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

import attrs

from pyflinkcep.migrate import runtime
from pyflinkcep.migrate.java.constants import BITS, joined
from pyflinkcep.migrate.java.declarations import STRING, UNKNOWN, JavaType
from pyflinkcep.migrate.java.source import snake_case
from pyflinkcep.migrate.meaning import operations as ops
from pyflinkcep.migrate.meaning.literals import Inside, constant, f_string, python_regex
from pyflinkcep.migrate.meaning.operations import Operation
from pyflinkcep.migrate.meaning.reading import RUNTIME, Findings, computed
from pyflinkcep.migrate.meaning.tree import (
    Binary,
    Break,
    Call,
    Captured,
    Cast,
    Choice,
    Const,
    Continue,
    Do,
    Expression,
    ForEach,
    Get,
    If,
    Is,
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
    ends,
    expressions_of,
    non_null_if,
    parts,
    text_pieces,
)

_DEFINED = frozenset({*dir(builtins), "Any"})  # all that is written imports Any


def tag_constant(tag: str) -> str:
    """Return the constant of an output tag."""
    return snake_case(tag).upper().strip("_")


def checked_names(lines: list[str], parameters: Iterable[str], findings: Findings) -> list[str]:
    """Return the body of a function as it was written; of Java that is broken it may be none."""
    body = "\n".join(f"    {line}" for line in [*lines, "pass"]).replace("\0", "?")
    python = f"def written({', '.join(parameters)}):\n{body}"
    try:
        table = symtable.symtable(python, "<written>", "exec")
    except SyntaxError as error:
        raise Untranslatable(f"it has no meaning ({error.msg})") from error
    given = {tag_constant(tag) for tag in findings.tags}
    for one in findings.imports:
        names = one.rpartition("import ")[2].split(",")
        given |= {name.rpartition(" as ")[2].strip().partition(".")[0] for name in names}
    for value in findings.captured.values():
        given |= {part.name for part in parts(value) if isinstance(part, Var)}
    unknown = sorted(_free(table) - given - _DEFINED)
    if unknown:
        raise Untranslatable(f"the value of {', '.join(unknown)} is not known here")
    return lines


def _free(table: symtable.SymbolTable) -> set[str]:
    """Return the names that are read of the module around."""
    found, waiting = set(), [table]
    while waiting:
        one = waiting.pop()
        waiting += one.get_children()
        symbols = one.get_symbols()
        found |= {s.get_name() for s in symbols if s.is_referenced() and s.is_global()}
    return found


_NEVER_NULL = (*BITS, "float", "double", "boolean", "char", "StringBuilder", "StringBuffer")
_SHORT = ("byte", "short", "int")
_CLASHES = frozenset({
    "count", "index", "asDict", "clear", "copy", "fromkeys", "get", "items", "keys", "pop",
    "popitem", "setdefault", "update", "values",
})  # fmt: skip
"""Fields that a Row or dict has as methods."""
_MODULES = {
    "math": "import math", "re": "import re", "Decimal": "from decimal import Decimal",
    "timedelta": "from datetime import timedelta",
}  # fmt: skip
_SIGNS: dict[str, ast.operator] = {
    "+": ast.Add(), "-": ast.Sub(), "*": ast.Mult(), "/": ast.Div(), "&": ast.BitAnd(),
    "|": ast.BitOr(), "^": ast.BitXor(), "<<": ast.LShift(), ">>": ast.RShift(),
}  # fmt: skip
_COMPARISONS: dict[str, ast.cmpop] = {
    "<": ast.Lt(), "<=": ast.LtE(), ">": ast.Gt(), ">=": ast.GtE(), "==": ast.Eq(),
    "!=": ast.NotEq(), "is": ast.Is(),
}  # fmt: skip
_OPPOSITE = {ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.Is: ast.IsNot}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _call(name: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(name), list(arguments), [])


def _compare(left: ast.expr, sign: str, right: ast.expr) -> ast.expr:
    return ast.Compare(left, [_COMPARISONS[sign]], [right])


def _not(of: ast.expr) -> ast.expr:
    """Return the negation of a condition; what NaN makes false is not turned round."""
    match of:
        case ast.Compare(left=left, ops=[sign], comparators=[right]) if type(sign) in _OPPOSITE:
            return ast.Compare(left, [_OPPOSITE[type(sign)]()], [right])
    return ast.UnaryOp(ast.Not(), of)


_BOOLS = {"bool"} | {
    one for one in RUNTIME if getattr(runtime, one).__annotations__.get("return") == "bool"
}


def _is_bool(node: ast.expr) -> bool:
    """Whether mypy knows that what is written is a bool."""
    match node:
        case ast.Compare(ops=[ast.Is() | ast.IsNot()]) | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Call(func=ast.Name(id=name)):
            return name in _BOOLS
        case ast.Name(id=name):
            return name in ("True", "False") or name.startswith(("any(", "all("))
        case ast.BoolOp(values=values):
            return all(map(_is_bool, values))
    return ast.unparse(node).startswith("math.is")


@attrs.define(eq=False)
class Python:
    """Writes expressions of one function."""

    findings: Findings  # Gets the imports
    # The variables that hold new objects, which are dicts.
    made: set[str] = attrs.field(factory=set)
    known: frozenset[Expression] = frozenset()  # What is not null here
    quote: str = '"'  # The quote of strings, another one inside of an f-string
    wraps: bool = True  # Whether whole numbers overflow as in Java

    def write(self, of: Expression) -> str:
        """Return an expression as text."""
        return ast.unparse(self.node(of))

    def condition(self, of: Expression) -> str:
        """Return an expression as a bool that mypy knows to be one."""
        node = self._truth(of)
        return ast.unparse(node if _is_bool(node) else _call("bool", node))

    def filled(self, template: str, *operands: Expression) -> str:
        """Return a template of Python with operands."""
        return ast.unparse(self.fill(template, operands))

    def fill(self, template: str, operands: tuple[Expression, ...]) -> ast.expr:
        """Return a template of an operation with operands."""
        found: ast.expr = _Filling(self, operands).visit(ast.parse(template, mode="eval").body)
        return found

    def literal(self, value: object) -> ast.expr:
        """Return a constant, a string with the quote that stands around none of it."""
        if isinstance(value, int | float) and str(value)[0] == "-" and math.isfinite(value):
            return ast.UnaryOp(ast.USub(), self.literal(-value))
        return ast.Name(constant(value, self.quote))

    def inside(self) -> Python:
        """Return a writer of values inside of an f-string."""
        return attrs.evolve(self, quote="'" if self.quote == '"' else '"')

    def use(self, name: str) -> str:
        """Return a name, which will be imported if it is one of the runtime or of a module."""
        if name in RUNTIME:
            self.findings.imports.add(f"from pyflinkcep.migrate.runtime import {name}")
        elif name in _MODULES:
            self.findings.imports.add(_MODULES[name])
        return name

    def runtime(self, name: str, *arguments: ast.expr) -> ast.expr:
        """Return a call of a function of the runtime."""
        return _call(self.use(name), *arguments)

    def non_null(self, of: Expression) -> ast.expr:
        """Return a value; the function raises if it is null."""
        return self.node(of) if self.is_known(of) else self.runtime("present", self.node(of))

    def is_known(self, of: Expression) -> bool:
        """Whether a value cannot be null."""
        if isinstance(of, Const):
            return of.value is not None
        if isinstance(of, Binary | Unary | Cast | Make | Is | Captured) or of in self.known:
            return True
        if isinstance(of, Call):
            return not of.operation.nullable
        type_ = of.type
        return not type_.dims and type_.name in _NEVER_NULL

    def held(self, of: Expression) -> ast.expr:
        """Return a list; one of a match that is missing is an error."""
        match of:
            case Call(ops.MAP_GET, (whole, key)):
                return ast.Subscript(self.node(whole), self.node(key))
        return self.node(of)

    def events(self, of: Expression) -> ast.expr:
        """Return the events of a stage, to be read once; other values as they are."""
        match of:
            case Call(ops.EVENTS, operands):
                return self.fill("ctx.getEventsForPattern(a)", operands)
        return self.held(of)

    # --- one kind each

    def node(self, of: Expression) -> ast.expr:
        """Return an expression as a tree."""
        match of:
            case Const():
                tag = of.type.name == "OutputTag"
                return ast.Name(tag_constant(str(of.value))) if tag else self.literal(of.value)
            case Var(name=name):
                return ast.Name(name)
            case Captured(name=name, value=value):
                self.findings.captured[name] = value
                given = frozenset(part for part in parts(value) if isinstance(part, Var))
                return attrs.evolve(self, known=self.known | given).node(value)
            case Get():
                return self._get(of)
            case Unary():
                return self._unary(of)
            case Binary():
                return self._binary(of)
            case Cast():
                return self._converted(of) or self.node(of.operand)
            case Choice():
                return self._choice(of)
            case Is(operand=operand, column=column, names=names):
                held = self.node(Get(operand, column, STRING))
                values = list(map(self.literal, names))
                if len(values) == 1:
                    return _compare(held, "==", values[0])
                return ast.Compare(held, [ast.In()], [ast.Tuple(values, ast.Load())])
            case Call():
                return self._call(of)
            case Make(fields=fields):
                values = [self.node(value) for _, value in fields]
                return ast.Dict([self.literal(name) for name, _ in fields], values)
            case Lambda(parameters=parameters, body=body):
                empty = ast.arguments([], [], None, [], [], None, [])
                empty.args = [ast.arg(name) for name in parameters]
                return ast.Lambda(empty, self.node(body))
        raise Untranslatable("an aggregate in a function")

    def _get(self, of: Get) -> ast.expr:
        owner = self.node(of.owner)
        if isinstance(of.owner, Const) and isinstance(of.owner.value, int | float):
            raise Untranslatable(f"{of.name} of {ast.unparse(owner)}, which has no fields")
        plain = of.name.isidentifier() and not keyword.iskeyword(of.name)
        root = of.owner
        while isinstance(root, Get) or (isinstance(root, Call) and root.operation is ops.JSON_ITEM):
            root = root.owner if isinstance(root, Get) else root.operands[0]
        is_dict = isinstance(root, Var) and root.name in self.made | self.findings.parsed
        is_dict |= isinstance(root, Call) and root.operation in (ops.JSON_OF, ops.JSON_FIND)
        if is_dict or isinstance(of.owner, Make) or not plain or of.name in _CLASHES:
            return ast.Subscript(owner, self.literal(of.name))
        return ast.Attribute(owner, of.name)

    def _unary(self, of: Unary) -> ast.expr:
        inner = of.operand
        if of.operator == "!":
            if isinstance(inner, Unary) and inner.operator == "!":
                return self._truth(inner.operand)
            if isinstance(inner, Binary) and inner.operator in ("==", "!="):
                other = "!=" if inner.operator == "==" else "=="
                return self._equality(attrs.evolve(inner, operator=other))
            return _not(self._truth(inner))
        sign = ast.USub() if of.operator == "-" else ast.Invert()
        found = ast.UnaryOp(sign, self.node(inner))
        if of.operator == "-" and of.type.name in ("int", "long") and self.wraps:
            return self.runtime("int32" if of.type.name == "int" else "int64", found)
        return found

    def _truth(self, of: Expression) -> ast.expr:
        """Return a boolean; a boxed one that is null is an error."""
        return self.non_null(of) if of.type.is_boxed else self.node(of)

    # --- binary operators

    def _binary(self, of: Binary) -> ast.expr:
        op = of.operator
        if op in ("&&", "||"):
            left = self._truth(of.left)
            inner = attrs.evolve(self, known=self.known | non_null_if(of.left, op == "&&"))
            right, sign = inner._truth(of.right), ast.And() if op == "&&" else ast.Or()
            same = isinstance(left, ast.BoolOp) and type(left.op) is type(sign)
            before = left.values if isinstance(left, ast.BoolOp) and same else [left]
            return ast.BoolOp(sign, [*before, right])
        if op in ("==", "!="):
            return self._equality(of)
        if op in _TURNED:
            first, second = of.left, of.right
            if isinstance(first, Const) and not isinstance(second, Const):
                first, second, op = second, first, _TURNED[op]
            return _compare(self._operand(first), op, self._operand(second))
        return self._arithmetic(of)

    def _operand(self, of: Expression) -> ast.expr:
        """Return an operand; whole numbers that doubles hold exactly need no conversion."""
        is_double = isinstance(of, Cast) and of.type.name == "double"
        if isinstance(of, Cast) and is_double and of.operand.type.unboxed.name in _SHORT:
            return self.node(of.operand)
        return self.node(of)

    def _equality(self, of: Binary) -> ast.expr:
        sides = _constant_last(of.left, of.right)
        for place, side in enumerate(sides):
            if isinstance(side, Const) and isinstance(side.value, bool):
                found = self._truth(sides[1 - place])
                holds = side.value is (of.operator == "==")
                return found if holds else ast.UnaryOp(ast.Not(), found)
        nodes = []
        for side in sides:
            inner = side.operand if isinstance(side, Cast) else side
            nullable = inner.type.is_boxed and not self.is_known(inner)
            is_int = inner.type.unboxed.name in _SHORT or inner is side
            nodes.append(self.non_null(inner) if nullable and is_int else self._operand(side))
        return _compare(nodes[0], of.operator, nodes[1])

    def _arithmetic(self, of: Binary) -> ast.expr:
        op, type_ = of.operator, of.type.name
        if type_ in ("int", "long"):
            return self._whole(of, type_)
        if type_ == "boolean":
            return ast.BinOp(self.node(of.left), _SIGNS[op], self.node(of.right))
        fixed = isinstance(of.right, Const) and of.right.value not in (0, 0.0)
        if op == "%" or (op == "/" and not fixed):
            name = "div_float" if op == "/" else "rem_float"
            found = self.runtime(name, self._operand(of.left), self._operand(of.right))
        else:
            both_cast = isinstance(of.left, Cast) and isinstance(of.right, Cast)
            write = self.node if both_cast or op == "/" else self._operand
            found = ast.BinOp(write(of.left), _SIGNS[op], write(of.right))
        return self.runtime("float32", found) if type_ == "float" else found

    def _whole(self, of: Binary, type_: str) -> ast.expr:
        op, left, right = of.operator, self.node(of.left), self.node(of.right)
        wrap, bits = ("int32", 31) if type_ == "int" else ("int64", 63)
        if op in ("/", "%"):
            found = self.runtime("div_int" if op == "/" else "rem_int", left, right)
            is_safe = isinstance(of.right, Const) and of.right.value != -1
            return found if op == "%" or is_safe else self.runtime(wrap, found)
        if op in ("&", "|", "^"):
            return ast.BinOp(left, _SIGNS[op], right)
        if op == ">>>":
            left, op = ast.BinOp(left, ast.BitAnd(), self.literal((1 << bits + 1) - 1)), ">>"
        if op in ("<<", ">>"):
            right = ast.BinOp(right, ast.BitAnd(), self.literal(bits))
            return self.runtime(wrap, ast.BinOp(left, _SIGNS[op], right))
        found = ast.BinOp(left, _SIGNS[op], right)
        return self.runtime(wrap, found) if self.wraps else found

    # --- others

    def _converted(self, of: Cast) -> ast.expr | None:
        """Return a value converted; None if Python needs no conversion."""
        have, want = of.operand.type.unboxed.name, of.type.name
        inner = self.node(of.operand)
        plain = None
        if have == "char":
            plain = inner = _call("ord", inner)
            have = "int"
        if want == "char":
            if have in ("double", "float"):
                inner = self.runtime("truncated", inner, self.literal(32))
            return _call("chr", ast.BinOp(inner, ast.BitAnd(), self.literal(65535)))
        if want in ("double", "float") and have in BITS:
            name = self.use("to_float32") if want == "float" else "float"
            return _call(name, inner)
        if want == "float" and have in ("double", "?"):
            return self.runtime("float32", inner)
        bits = BITS.get(want, 64)
        if want in BITS and have in ("double", "float"):
            wide = self.runtime("truncated", inner, self.literal(max(32, bits)))
            return wide if bits >= 32 else self.runtime("narrowed", wide, self.literal(bits))
        if want in BITS and have in BITS and bits < BITS[have]:
            if want == "int":
                return self.runtime("int32", inner)
            return self.runtime("narrowed", inner, self.literal(bits))
        return plain

    def _choice(self, of: Choice) -> ast.expr:
        condition = self._truth(of.condition)
        yes = attrs.evolve(self, known=self.known | non_null_if(of.condition, True))
        no = attrs.evolve(self, known=self.known | non_null_if(of.condition, False))
        return ast.IfExp(condition, yes.node(of.yes), no.node(of.no))

    def _call(self, of: Call) -> ast.expr:
        if of.operation in (ops.EQUALS, ops.SAME):
            return self._equals(of)
        for operand in of.operands if of.operation in _TEXTS else ():
            if operand.type.dims:
                raise Untranslatable("the text of an array, which is its address in Java")
            if "Set" in operand.type.name:
                raise Untranslatable("the text of a set, whose order is another one here")
        for operand in of.operands if of.operation not in _WITHOUT_ORDER else ():
            _without_order(operand)
        write = _WRITERS.get(of.operation)
        if write is not None:
            return write(self, of.operands)
        if not of.operation.python:
            raise Untranslatable(f"{of.operation.name}() in Python")
        return self.fill(of.operation.python, of.operands)

    def _equals(self, of: Call) -> ast.expr:
        a, b = of.operands
        x, y = a.type.unboxed, b.type.unboxed
        if JavaType("BigDecimal") in (x, y):
            raise Untranslatable("equals() of BigDecimal, which compares zeros at the end too")
        strict = of.operation is ops.EQUALS and not self.is_known(a)
        if x.is_floating and y.is_floating:
            if x == y and of.operation is ops.EQUALS:
                same = self.runtime("compare", self.node(a), self.node(b))
                return _compare(same, "==", self.literal(0))
            return self.runtime("equal_floats", self.node(a), self.node(b))
        if UNKNOWN not in (x, y) and x != y and _is_value(x) and _is_value(y):
            if strict:  # null is an error
                return _compare(self.non_null(a), "is", self.literal(None))
            return self.literal(False)
        if isinstance(a, Const):
            a, b = _constant_last(a, b)
            flag = isinstance(b, Const) and isinstance(b.value, bool)
            return _compare(self.node(a), "is" if flag else "==", self.node(b))
        left = self.non_null(a) if strict else self.node(a)
        return _compare(left, "==", self.node(b))


@lru_cache(4096)
def folded(op: str, *of: Const) -> Const | None:
    """Return what an operator makes of constants, as it is written; None if that is not known."""
    if op == "+" and len(of) == 2 and STRING in (of[0].type, of[1].type):
        return joined(*of)
    made = computed(op, *of)
    try:
        value = None if made is None else eval(Python(Findings()).write(made), vars(runtime))
    except ArithmeticError:
        return None
    return None if made is None else Const(value, made.type)


def _without_order(of: Expression) -> None:
    if of.type.name in ORDERED:
        raise Untranslatable(f"the order of a {of.type.name}, which is another one here")


def _constant_last(a: Expression, b: Expression) -> list[Expression]:
    """Return two operands, a constant one last."""
    turned = isinstance(a, Const) and not isinstance(b, Const)
    return [b, a] if turned else [a, b]


ORDERED = ("TreeSet", "LinkedHashSet", "SortedSet")
"""Sets that have an order in Java."""
_WITHOUT_ORDER = (ops.HAS, ops.SIZE, ops.NO_ELEMENTS, ops.ADD_TO_SET, ops.ADD_ALL_TO_SET, ops.CLEAR)
_TEXTS = (ops.CONCAT, ops.APPEND, ops.TEXT, ops.TO_STRING, ops.PRINT, ops.FORMAT, ops.LOG)
_VALUES = ("String", "int", "long", "double", "float", "short", "byte", "char", "boolean")


def _is_value(type_: JavaType) -> bool:
    return type_.name in _VALUES and not type_.dims


# --- calls


class _Filling(ast.NodeTransformer):
    """Puts operands into a template."""

    def __init__(self, writer: Python, operands: tuple[Expression, ...]) -> None:
        self._writer = writer
        self._operands = operands
        self._places = dict(zip("abcd", operands, strict=False))

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Return an operand, or a name that is imported if need be."""
        operand, writer = self._places.get(node.id), self._writer
        return ast.Name(writer.use(node.id)) if operand is None else writer.node(operand)

    def visit_Starred(self, node: ast.Starred) -> ast.AST | list[ast.expr]:
        """Return all operands for ``*all``."""
        is_all = isinstance(node.value, ast.Name) and node.value.id == "all"
        return list(map(self._writer.node, self._operands)) if is_all else self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Return what ``present``, ``held`` and ``regex`` make of an operand."""
        match node:
            case ast.Call(ast.Name("present" | "held" | "regex" as name), [ast.Name(place)]):
                operand, writer = self._places[place], self._writer
                if name == "regex":
                    return _regex(writer, operand)
                return writer.held(operand) if name == "held" else writer.non_null(operand)
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        """Return a constant in the quotes of the writer."""
        return self._writer.literal(node.value)


def _regex(writer: Python, pattern: Expression) -> ast.expr:
    """Return a regular expression of Java as Python writes it."""
    value = pattern.value if isinstance(pattern, Const) else None
    found = python_regex(value) if isinstance(value, str) else None
    if found is None:
        raise Untranslatable("a regular expression that Python reads differently")
    raw = '"' not in found and not found.endswith("\\") and found.isprintable()
    return ast.Name(f'r"{found}"') if raw else writer.literal(found)


Operands = tuple[Expression, ...]
_Writer = Callable[[Python, Operands], ast.expr]


def _each(
    writer: Python, of: Expression, function: Expression, *, test: bool = False
) -> tuple[ast.expr, list[ast.comprehension]]:
    """Return what a comprehension has for each value of a list: a function of it, or itself."""
    assert isinstance(function, Lambda)
    name, body = ast.Name(function.parameters[0]), writer.node(function.body)
    loop = ast.comprehension(name, writer.node(of), [body] if test else [], 0)
    return (name if test else body), [loop]


def _flattened(writer: Python, operands: Operands) -> ast.expr:
    of, many = operands
    assert isinstance(many, Lambda)
    (name,) = many.parameters
    each = ast.Name("one" if name != "one" else "inner")
    loops = [
        ast.comprehension(ast.Name(name), writer.node(of), [], 0),
        ast.comprehension(each, writer.held(many.body), [], 0),
    ]
    return ast.ListComp(each, loops)


def _quantified(word: str) -> _Writer:
    def write(writer: Python, operands: Operands) -> ast.expr:
        found = ast.GeneratorExp(*_each(writer, *operands))
        return ast.Name(f"{word}{ast.unparse(found)}")  # with one pair of parentheses

    return write


def _as_set(writer: Python, operands: Operands) -> ast.expr:
    (of,) = operands
    while isinstance(of, Call) and of.operation is ops.STREAM:
        (of,) = of.operands
    match writer.node(of):
        case ast.ListComp(elt=element, generators=loops):
            return ast.SetComp(element, loops)
        case ast.List(elts=elements) if elements:
            return ast.Set(elements)
    return _call("set", writer.node(operands[0]))


def _listed_again(writer: Python, operands: Operands) -> ast.expr:
    """Write a list of values, which may be one already."""
    found = writer.held(operands[0])
    return found if _is_new(operands[0]) else _call("list", found)


def _is_new(of: Expression) -> bool:
    """Whether a value is a list that nothing else holds."""
    if isinstance(of, Call) and of.operation in (ops.STREAM, ops.LIMIT, ops.SKIP):
        return _is_new(of.operands[0])
    return isinstance(of, Call) and of.operation.makes_list


def _summed(writer: Python, operands: Operands) -> ast.expr:
    (of,) = operands
    if of.type.name == "DoubleStream":
        return writer.runtime("stream_sum", writer.node(of))
    wrap = "int32" if of.type.name == "IntStream" else "int64"
    return writer.runtime(wrap, _call("sum", writer.node(of)))


def _map_of(writer: Python, operands: Operands) -> ast.expr:
    nodes = [writer.node(operand) for operand in operands]
    return ast.Dict([*nodes[::2]], nodes[1::2])


def _in_place(template: str) -> _Writer:
    """Return what writes a change of all elements of a list."""
    return lambda w, o: ast.Name(f"{w.write(o[0])}[:] = {w.filled(template, *o)}")


def _range(end: str) -> _Writer:
    def write(writer: Python, operands: Operands) -> ast.expr:
        is_first = operands[0] == Const(0, operands[0].type)
        return writer.fill(f"range({end})" if is_first else f"range(a, {end})", operands)

    return write


def _decimal(writer: Python, operands: Operands) -> ast.expr:
    digits = operands[0].value if isinstance(operands[0], Const) else None
    is_whole = isinstance(digits, str) and digits.lstrip("-").isdigit()
    value = writer.literal(int(str(digits))) if is_whole else writer.node(operands[0])
    return _call(writer.use("Decimal"), value)


def _json_of(writer: Python, operands: Operands) -> ast.expr:
    text, *names = operands
    more = [_map_of(writer, tuple(names))] if names else []
    return writer.runtime("json_object", writer.node(text), *more)


def _item(writer: Python, operands: Operands) -> ast.expr:
    whole, index = operands
    events = isinstance(whole, Call) and whole.operation is ops.EVENTS
    place = index.value if isinstance(index, Const) else None
    if place == 0 and events:
        return _first(writer, operands)
    if isinstance(place, int) and place >= 0:
        return ast.Subscript(writer.held(whole), writer.literal(place))
    match index:
        case Binary("-", Call(ops.SIZE, (same,)), Const(value=int(n))) if same == whole and n > 0:
            return ast.Subscript(writer.held(whole), writer.literal(-n))
    return writer.runtime("item", writer.held(whole), writer.node(index))


def _first(writer: Python, operands: Operands) -> ast.expr:
    is_stage = isinstance(operands[0], Call) and operands[0].operation is ops.EVENTS
    if is_stage or operands[0].type.name in ("Set", "HashSet", "Collection"):  # without places
        return _call("next", _call("iter", writer.events(operands[0])))
    return ast.Subscript(writer.held(operands[0]), writer.literal(0))


def _stepped(writer: Python, operands: Operands) -> ast.expr:
    counter, step, later = operands
    by = step.value if isinstance(step, Const) else 1
    signs = (ast.Add(), ast.Sub()) if by == 1 else (ast.Sub(), ast.Add())
    name, one = writer.node(counter), writer.literal(1)
    wrap = "int32" if counter.type.unboxed.name == "int" else "int64"
    assert isinstance(name, ast.Name)
    found = ast.NamedExpr(name, writer.runtime(wrap, ast.BinOp(name, signs[0], one)))
    return ast.BinOp(found, signs[1], one) if later == Const(True, later.type) else found


# --- texts


def _concat(writer: Python, operands: Operands) -> ast.expr:
    pieces, inside = list(text_pieces(operands)), writer.inside()
    texts = [
        piece.value if isinstance(piece, Const) and isinstance(piece.value, str)
        else Inside(ast.unparse(_text_of(inside, piece)))
        for piece in pieces
    ]  # fmt: skip
    found = f_string(texts, writer.quote)
    if found is not None:
        return ast.Name(found)
    first, *rest = (
        writer.node(piece) if isinstance(piece, Const) and isinstance(piece.value, str)
        else _text_of(writer, piece, always=True)
        for piece in pieces
    )  # fmt: skip
    for one in rest:
        first = ast.BinOp(first, ast.Add(), one)
    return first


def _text_of(writer: Python, of: Expression, *, always: bool = False) -> ast.expr:
    """Return a value as the text that Java makes of it."""
    type_ = of.type.unboxed.name
    if isinstance(of, Const) and type_ in ("int", "long") and not always:
        return writer.node(of)
    if type_ in ("String", "StringBuilder", "StringBuffer", "char") and writer.is_known(of):
        return writer.node(of)
    if type_ in BITS and not always and writer.is_known(of):
        return writer.node(of)
    return _as_text(writer, type_, writer.node(of))


def _as_text(writer: Python, type_: str, written: ast.expr) -> ast.expr:
    """Return a value of a Java type as the text that Java makes of it."""
    if type_ in ("Timestamp", "Date", "Instant", "LocalDateTime", "LocalDate"):
        return writer.runtime("time_text", written, writer.literal(type_))
    if type_ in ("ZonedDateTime", "OffsetDateTime", "Calendar", "Duration"):
        raise Untranslatable(f"the text of a {type_}")
    return writer.runtime("float_text" if type_ == "float" else "text", written)


def _to_string(writer: Python, operands: Operands) -> ast.expr:
    (of,) = operands
    if of.type.name in ("String", "StringBuilder", "StringBuffer"):
        return writer.non_null(of)
    if writer.is_known(of):
        return _text_of(writer, of, always=True)
    return _as_text(writer, of.type.unboxed.name, writer.non_null(of))


_WRITERS: dict[Operation, _Writer] = {
    ops.NOT_NULL: lambda w, o: w.non_null(o[0]), ops.STEP: _stepped,
    ops.PRINT: lambda w, o: _call("print", *(_text_of(w, one, always=True) for one in o)),
    ops.CONCAT: _concat, ops.APPEND: _concat,
    ops.TEXT: lambda w, o: _text_of(w, o[0], always=True), ops.TO_STRING: _to_string,
    ops.LIST_OF: _listed_again, ops.TO_LIST: _listed_again, ops.TO_SET: _as_set,
    ops.SET: lambda w, o: ast.Set([*map(w.node, o)]) if o else _call("set"),
    ops.MAP: _map_of, ops.GET: _item, ops.FIRST: _first, ops.SORT: _in_place("in_order(a)"),
    ops.REMOVE_IF: _in_place("[one for one in a if not b(one)]"),
    ops.FILTER: lambda w, o: ast.ListComp(*_each(w, *o, test=True)),
    ops.MAPPED: lambda w, o: ast.ListComp(*_each(w, *o)), ops.FLAT_MAPPED: _flattened,
    ops.ANY_MATCH: _quantified("any"), ops.ALL_MATCH: _quantified("all"),
    ops.NONE_MATCH: lambda w, o: ast.UnaryOp(ast.Not(), _quantified("any")(w, o)),
    ops.SUM: _summed, ops.RANGE: _range("b"), ops.RANGE_TO_LAST: _range("b + 1"),
    ops.DECIMAL: _decimal, ops.JSON_OF: _json_of,
}  # fmt: skip
"""What writes operations that no template says."""


# --- statements


_ZEROS = {"int": "0", "long": "0", "double": "0.0", "float": "0.0", "boolean": "False"}


@attrs.define(eq=False)
class Statements:
    """Writes the statements of one function."""

    python: Python  # Writes the expressions
    result: str = "row"  # ``bool`` for conditions, ``int`` for comparators, ``row`` for others
    row: Callable[[Expression], str] | None = None  # Writes a row
    output: Callable[[Call], str] | None = None  # Writes a call of ``ctx.output``
    _read: set[str] = attrs.field(factory=set)
    _declared: set[str] = attrs.field(factory=set)

    def block(self, statements: tuple[Statement, ...]) -> list[str]:
        """Return the lines of a function's body."""
        self._read = set(_names_read(statements))
        self.python.made |= set(_names_made(statements))
        return self._lines(statements)

    def _lines(
        self, statements: Iterable[Statement], facts: frozenset[Expression] = frozenset()
    ) -> list[str]:
        found: list[str] = []
        before = self.python.known
        self.python.known |= facts
        for statement in statements:
            found += self._one(statement)
            if isinstance(statement, If) and ends(statement.then) and not statement.otherwise:
                self.python.known |= non_null_if(statement.condition, False)
            if isinstance(statement, Return | Raise | Break | Continue):
                break
        self.python.known = before
        return found

    def _inner(
        self, statements: Iterable[Statement], facts: frozenset[Expression] = frozenset()
    ) -> list[str]:
        return [f"    {line}" for line in self._lines(statements, facts) or ["pass"]]

    def _one(self, of: Statement) -> list[str]:
        write = self.python.write
        match of:
            case Let():
                return self._let(of)
            case Set():
                return self._set(of)
            case If():
                return self._if(of)
            case ForEach():
                return self._for_each(of)
            case While():
                return self._while(of)
            case Return(value=None):
                return ["return"]
            case Return(value=value) if value is not None:
                if self.result == "bool":
                    return [f"return {self.python.condition(value)}"]
                if self.result == "int":
                    return [f"return int({write(value)})"]
                return [f"return {self._row(value)}"]
            case Do(value=value):
                return [self._do(value)]
            case Raise(message=message):
                inner = write(message) if message is not None else ""
                return [f"raise RuntimeError({inner})"]
            case Try():
                body, handler = (self._inner(part) for part in (of.body, of.handler))
                if not set(of.kinds) <= set(_ERRORS):
                    raise Untranslatable(f"catch ({' | '.join(of.kinds)})")
                error = "ValueError" if of.kinds == ("NumberFormatException",) else _ANY
                if error == _ANY:
                    self.python.findings.imports.add("from pyflinkcep import FunctionError")
                name = " as error" if "error" in _names_read(of.handler) else ""
                return ["try:", *body, f"except {error}{name}:", *handler]
            case Break():
                return ["break"]
            case Continue():
                return ["continue"]
        raise Untranslatable(f"{type(of).__name__} in Python")

    def _row(self, value: Expression) -> str:
        return self.python.write(value) if self.row is None else self.row(value)

    def _do(self, value: Expression) -> str:
        if isinstance(value, Call) and value.operation is ops.COLLECT:
            out, row = value.operands
            return f"{self.python.write(out)}.collect({self._row(row)})"
        if isinstance(value, Call) and value.operation is ops.OUTPUT and self.output is not None:
            return self.output(value)
        if isinstance(value, Call) and value.operation is ops.ADD_TO_SET:
            return self.python.filled("a.add(b)", *value.operands)
        return self.python.write(value)

    def _let(self, of: Let) -> list[str]:
        if of.name not in self._read:
            kept = of.value is not None and any(isinstance(p, Call) for p in parts(of.value))
            return [f"_ = {self.python.write(of.value)}"] if kept and of.value is not None else []
        annotation = "" if of.name in self._declared else ": Any"
        self._declared.add(of.name)
        if of.value is None:
            zero = _ZEROS.get(of.type.name, "None") if not of.type.dims else "None"
            return [f"{of.name}{annotation} = {zero}"]
        written = self.python.write(of.value)
        if of.type.is_floating and isinstance(of.value, Const) and isinstance(of.value.value, int):
            written = repr(float(of.value.value))
        return [f"{of.name}{annotation} = {written}"]

    def _set(self, of: Set) -> list[str]:
        target, value = of.target, of.value
        if isinstance(target, Var) and target.name not in self._read:
            return []
        written = self.python.write(value)
        match target:
            case Get(owner=Var(name=owner)) if owner in self.python.made:
                pass
            case Get(name=name):
                raise Untranslatable(f"a field of an event is changed: {name}")
            case Call(ops.GET, operands):
                return [f"{self.python.filled('a[b]', *operands)} = {written}"]
        return [f"{self.python.write(target)} = {written}"]

    def _if(self, of: If, word: str = "if") -> list[str]:
        match of:
            case If(Binary(">" | "<" as op, kept, Var() as best), (Set(Var() as same, value),), ()):
                if best == same and kept == value and word == "if":
                    name, both = self.python.write(best), self.python.write(kept)
                    return [f"{name} = {'max' if op == '>' else 'min'}({name}, {both})"]
        condition = self.python.write(of.condition)
        then = self._inner(of.then, non_null_if(of.condition, True))
        lines = [f"{word} {condition}:", *then]
        if not of.otherwise:
            return lines
        facts = non_null_if(of.condition, False)
        if len(of.otherwise) == 1 and isinstance(of.otherwise[0], If):
            before = self.python.known
            self.python.known = before | facts
            lines += self._if(of.otherwise[0], "elif")
            self.python.known = before
            return lines
        return [*lines, "else:", *self._inner(of.otherwise, facts)]

    def _for_each(self, of: ForEach) -> list[str]:
        _without_order(of.iterable)
        iterable = ast.unparse(self.python.events(of.iterable))
        name = of.name if of.name in _names_read(of.body) else "_"
        self._declared.add(name)
        return [f"for {name} in {iterable}:", *self._inner(of.body)]

    def _while(self, of: While) -> list[str]:
        if of.update and any(isinstance(one, Continue) for one in all_statements(of.body)):
            raise Untranslatable("continue in a loop with a counter")
        body = self._inner((*of.body, *of.update))
        return [f"while {self.python.write(of.condition)}:", *body]


def _names_read(statements: Iterable[Statement]) -> Iterator[str]:
    for one in expressions_of(statements):
        yield from (part.name for part in parts(one) if isinstance(part, Var))


def _names_made(statements: Iterable[Statement]) -> Iterator[str]:
    for one in all_statements(statements):
        if isinstance(one, Let) and one.value is not None and _is_made(one.value):
            yield one.name
        elif isinstance(one, Set) and isinstance(one.target, Var) and _is_made(one.value):
            yield one.target.name


def _is_made(of: Expression) -> bool:
    """Whether a value is a new object, or one of JSON: a dict."""
    return isinstance(of, Make) or (isinstance(of, Call) and of.operation is ops.JSON_OF)


_ANY = (
    "(ArithmeticError, AttributeError, FunctionError, LookupError, RuntimeError, StopIteration, "
    "TypeError, ValueError)"
)
_ERRORS = ("NumberFormatException", "Exception", "RuntimeException", "Throwable")
"""Errors of Java that Python has too: a text that is no number, or any."""
