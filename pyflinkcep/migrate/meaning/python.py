# SPDX-License-Identifier: Apache-2.0
"""Writes expressions as Python."""

from __future__ import annotations

import builtins
import keyword
import symtable
from collections.abc import Iterable
from typing import TypeGuard

import attrs

from pyflinkcep.migrate.java.declarations import JavaType
from pyflinkcep.migrate.java.project import BOOLEAN, STRING, UNKNOWN, is_boxed, is_floating, unboxed
from pyflinkcep.migrate.meaning.python_calls import CALLS, COMPARISONS, TYPED_BOOL, constant
from pyflinkcep.migrate.meaning.reading import Findings, snake_case
from pyflinkcep.migrate.meaning.tree import (
    Aggregate,
    Binary,
    Call,
    Captured,
    Cast,
    Choice,
    Const,
    Expression,
    Get,
    Is,
    Lambda,
    Make,
    Unary,
    Untranslatable,
    Var,
    non_null_if,
    parts,
)

_DEFINED = frozenset({*dir(builtins), "Any"})  # all that is written imports Any


def tag_constant(tag: str) -> str:
    """
    Return the constant of an output tag.

    Examples
    --------
    >>> tag_constant("still-hot")
    'STILL_HOT'
    """
    return snake_case(tag).upper().strip("_")


def checked_names(lines: list[str], parameters: Iterable[str], findings: Findings) -> list[str]:
    """
    Return the body of a function as it was written; of Java that is broken it may be none.

    Examples
    --------
    >>> checked_names(["return event.n + e.n"], ["event"], Findings())
    Traceback (most recent call last):
        ...
    pyflinkcep.migrate.meaning.tree.Untranslatable: the value of e is not known here
    """
    body = "\n".join(f"    {line}" for line in [*lines, "pass"]).replace("\0", "?")
    python = f"def written({', '.join(parameters)}):\n{body}"
    try:
        table = symtable.symtable(python, "<written>", "exec")
    except SyntaxError as error:
        raise Untranslatable(f"it has no meaning ({error.msg})") from error
    given = {tag_constant(tag) for tag in findings.tags} | _imported(findings.imports)
    for value in findings.captured.values():
        given |= {part.name for part in parts(value) if isinstance(part, Var)}
    unknown = sorted(_free(table) - given - _DEFINED)
    if unknown:
        raise Untranslatable(f"the value of {', '.join(unknown)} is not known here")
    return lines


def _imported(statements: set[str]) -> set[str]:
    """Return the names that import statements define."""
    names = (name for one in statements for name in one.rpartition("import ")[2].split(","))
    return {name.rpartition(" as ")[2].strip().partition(".")[0] for name in names}


def _free(table: symtable.SymbolTable) -> set[str]:
    """Return the names that are read of the module around."""
    found, waiting = set(), [table]
    while waiting:
        one = waiting.pop()
        waiting += one.get_children()
        symbols = one.get_symbols()
        found |= {s.get_name() for s in symbols if s.is_referenced() and s.is_global()}
    return found


ATOM, UNARY, TIMES, PLUS, COMPARED, NOT, AND, OR, CHOICE = range(9, 0, -1)
_BITS = {"byte": 8, "short": 16, "int": 32, "long": 64}
_NEVER_NULL = (*_BITS, "float", "double", "boolean", "char", "StringBuilder", "StringBuffer")
_SHORT = ("byte", "short", "int")
_CLASHES = frozenset({
    "count", "index", "asDict", "clear", "copy", "fromkeys", "get", "items", "keys", "pop",
    "popitem", "setdefault", "update", "values",
})  # fmt: skip
"""Fields that a Row or dict has as methods."""


@attrs.define(eq=False)
class Python:
    """Writes expressions of one function."""

    findings: Findings  # Gets the imports
    # The variables that hold new objects, which are dicts.
    made: set[str] = attrs.field(factory=set)
    known: frozenset[Expression] = frozenset()  # What is not null here
    quote: str = '"'  # The quote of strings, another one inside of an f-string
    wraps: bool = True  # Whether whole numbers overflow as in Java

    def constant(self, value: object) -> str:
        """Return a constant, a string with the quote that stands around none of it."""
        return constant(value, self.quote)

    def inside(self) -> Python:
        """Return a writer of values inside of an f-string."""
        return attrs.evolve(self, quote="'" if self.quote == '"' else '"')

    def use(self, name: str) -> str:
        """Return the name of a function of the runtime, which will be imported."""
        self.findings.imports.add(f"from pyflinkcep.migrate.runtime import {name}")
        return name

    def write(self, of: Expression, level: int = 0) -> str:
        """Return an expression, in parentheses if it binds less tightly than a level."""
        written, own = self._written(of)
        return f"({written})" if own < level else written

    def condition(self, of: Expression) -> str:
        """Return an expression as a bool that mypy knows to be one."""
        written = self._truth(of, 0)
        return written if self._is_bool(of) else f"bool({written})"

    def _is_bool(self, of: Expression) -> bool:
        match of:
            case Const(type=type_) | Captured(type=type_):
                return type_ == BOOLEAN
            case Unary(operator="!", operand=operand):
                return self._is_bool_negated(operand)
            case Binary(operator="&&" | "||", left=left, right=right):
                return self._is_bool(left) and self._is_bool(right)
            case Call(name=name):
                return name in TYPED_BOOL
        return False

    def _is_bool_negated(self, of: Expression) -> bool:
        compared = self._comparison(of)
        match of:
            case Unary(operator="!", operand=operand):
                return self._is_bool(operand)
            case Binary(operator="==" | "!="):
                return _flag_in(of) is (of.operator == "==")
        return compared is None or compared[1] in ("is", "is not")

    def non_null(self, of: Expression) -> str:
        """Return a value; the function raises if it is null."""
        if self.is_known(of):
            return self.write(of)
        return f"{self.use('present')}({self.write(of)})"

    def is_known(self, of: Expression) -> bool:
        """Whether a value cannot be null."""
        if isinstance(of, Const):
            return of.value is not None
        if isinstance(of, Binary | Unary | Cast | Make | Is | Captured) or of in self.known:
            return True
        if isinstance(of, Call):
            return of.name not in _NULLABLE
        type_ = of.type
        return not type_.dims and type_.name in _NEVER_NULL

    # --- one kind each

    def _written(self, of: Expression) -> tuple[str, int]:
        compared = self._comparison(of)
        if compared is not None:
            return " ".join(compared), COMPARED
        match of:
            case Const():
                return self._const(of)
            case Var(name=name):
                return name, ATOM
            case Captured(name=name, value=value):
                self.findings.captured[name] = value
                given = frozenset(part for part in parts(value) if isinstance(part, Var))
                return attrs.evolve(self, known=self.known | given)._written(value)
            case Get():
                return self._get(of), ATOM
            case Unary():
                return self._unary(of)
            case Binary():
                return self._binary(of)
            case Cast():
                return self._cast(of)
            case Choice():
                return self._choice(of), CHOICE
            case Call():
                return self._call(of)
            case Make():
                inner = ", ".join(
                    f"{self.constant(name)}: {self.write(value)}" for name, value in of.fields
                )
                return f"{{{inner}}}", ATOM
            case Lambda():
                return f"lambda {', '.join(of.parameters)}: {self.write(of.body)}", 0
            case Aggregate():
                raise Untranslatable("an aggregate in a function")
        raise Untranslatable(f"{type(of).__name__} in Python")

    def _const(self, of: Const) -> tuple[str, int]:
        if of.type.name == "OutputTag":
            return tag_constant(str(of.value)), ATOM
        negative = isinstance(of.value, int | float) and str(of.value).startswith("-")
        return self.constant(of.value), UNARY if negative else ATOM

    def _get(self, of: Get) -> str:
        owner = self.write(of.owner, ATOM)
        if isinstance(of.owner, Const) and isinstance(of.owner.value, int | float):
            raise Untranslatable(f"{of.name} of {owner}, which has no fields")
        plain = of.name.isidentifier() and not keyword.iskeyword(of.name)
        root = of.owner
        while isinstance(root, Get) or (isinstance(root, Call) and root.name == "json item"):
            root = root.owner if isinstance(root, Get) else root.operands[0]
        is_dict = isinstance(root, Var) and root.name in self.made
        is_dict = is_dict or (isinstance(root, Call) and root.name in ("json of", "json find"))
        is_dict = is_dict or (isinstance(root, Var) and root.name in self.findings.parsed)
        if is_dict or isinstance(of.owner, Make) or not plain or of.name in _CLASHES:
            return f"{owner}[{self.constant(of.name)}]"
        return f"{owner}.{of.name}"

    def _unary(self, of: Unary) -> tuple[str, int]:
        inner = of.operand
        if of.operator == "!":
            compared = self._comparison(inner)
            if compared is not None:
                left, sign, right = compared
                return f"{left} {_OPPOSITE[sign]} {right}", COMPARED
            if isinstance(inner, Unary) and inner.operator == "!":
                return self._truth(inner.operand, 0), NOT
            if isinstance(inner, Binary) and inner.operator in ("==", "!="):
                other = "!=" if inner.operator == "==" else "=="
                return self._equality(attrs.evolve(inner, operator=other))
            return f"not {self._truth(inner, NOT)}", NOT
        if of.operator == "-" and of.type.name in ("int", "long") and self.wraps:
            bits = self.use("int32" if of.type.name == "int" else "int64")
            return f"{bits}(-{self.write(inner, UNARY)})", ATOM
        return f"{of.operator}{self.write(inner, UNARY)}", UNARY

    def _truth(self, of: Expression, level: int) -> str:
        """Return a boolean; a boxed one that is null is an error."""
        if is_boxed(of.type):
            return self.non_null(of)
        return self.write(of, level)

    # --- binary operators

    def _binary(self, of: Binary) -> tuple[str, int]:
        op = of.operator
        if op in ("&&", "||"):
            level, word = (AND, "and") if op == "&&" else (OR, "or")
            left = self._truth(of.left, _part_level(of.left, op, level))
            facts = non_null_if(of.left, op == "&&")
            inner = attrs.evolve(self, known=self.known | facts)
            right = inner._truth(of.right, _part_level(of.right, op, level + 1))
            return f"{left} {word} {right}", level
        if op in ("==", "!="):
            return self._equality(of)
        if op in ("<", "<=", ">", ">="):
            first, second = of.left, of.right
            if isinstance(first, Const) and not isinstance(second, Const):
                first, second, op = second, first, _TURNED[op]
            left, right = (self._compared(side) for side in (first, second))
            return f"{left} {op} {right}", COMPARED
        return self._arithmetic(of)

    def _compared(self, of: Expression) -> str:
        """Return an operand; whole numbers that doubles hold exactly need no conversion."""
        return self.write(of.operand if _is_exact(of) else of, PLUS)

    def _equality(self, of: Binary) -> tuple[str, int]:
        sides = _constant_last(of.left, of.right)
        for place, side in enumerate(sides):
            if isinstance(side, Const) and isinstance(side.value, bool):
                other = sides[1 - place]
                if side.value is (of.operator == "=="):
                    return self._truth(other, COMPARED), COMPARED
                return f"not {self._truth(other, NOT)}", NOT
        texts = []
        for side in sides:
            inner = side.operand if isinstance(side, Cast) else side
            nullable = is_boxed(inner.type) and not self.is_known(inner)
            is_int = unboxed(inner.type).name in _SHORT or inner is side
            if nullable and is_int:
                texts.append(self.non_null(inner))
            else:
                texts.append(self._compared(side))
        return f"{texts[0]} {of.operator} {texts[1]}", COMPARED

    def _arithmetic(self, of: Binary) -> tuple[str, int]:
        op, type_ = of.operator, of.type.name
        level = {"+": PLUS, "-": PLUS, "*": TIMES}.get(op, TIMES)
        if type_ in ("int", "long"):
            return self._whole(of, type_, level)
        if type_ == "boolean":
            return f"{self.write(of.left, ATOM)} {op} {self.write(of.right, ATOM)}", TIMES
        if op in ("/", "%"):
            fixed = isinstance(of.right, Const) and of.right.value not in (0, 0.0)
            if op == "/" and fixed:
                written = f"{self.write(of.left, TIMES)} / {self.write(of.right, UNARY)}"
            else:
                name = self.use("div_float" if op == "/" else "rem_float")
                written = f"{name}({self._operand(of.left)}, {self._operand(of.right)})"
                level = ATOM
        else:
            both_cast = isinstance(of.left, Cast) and isinstance(of.right, Cast)
            write = self.write if both_cast else self._operand
            written = f"{write(of.left, level)} {op} {write(of.right, level + 1)}"
        if type_ == "float":
            return f"{self.use('float32')}({written})", ATOM
        return written, level

    def _operand(self, of: Expression, level: int = 0) -> str:
        return self.write(of.operand if _is_exact(of) else of, level)

    def _whole(self, of: Binary, type_: str, level: int) -> tuple[str, int]:
        op = of.operator
        wrap = "int32" if type_ == "int" else "int64"
        bits = 31 if type_ == "int" else 63
        if op in ("/", "%"):
            name = self.use("div_int" if op == "/" else "rem_int")
            written = f"{name}({self.write(of.left)}, {self.write(of.right)})"
            minus_one = isinstance(of.right, Const) and of.right.value != -1
            if op == "%" or minus_one:
                return written, ATOM
            return f"{self.use(wrap)}({written})", ATOM
        if op in ("&", "|", "^"):
            return f"{self.write(of.left, UNARY)} {op} {self.write(of.right, UNARY)}", COMPARED
        if op in ("<<", ">>", ">>>"):
            left, right = self.write(of.left, UNARY), self.write(of.right, UNARY)
            if op == ">>>":
                left, op = f"({left} & {(1 << bits + 1) - 1})", ">>"
            return f"{self.use(wrap)}({left} {op} ({right} & {bits}))", ATOM
        left, right = self.write(of.left, level), self.write(of.right, level + 1)
        if not self.wraps:
            return f"{left} {op} {right}", level
        return f"{self.use(wrap)}({left} {op} {right})", ATOM

    # --- others

    def _cast(self, of: Cast) -> tuple[str, int]:
        written = self._converted(of)
        return self._written(of.operand) if written is None else (written, ATOM)

    def _converted(self, of: Cast) -> str | None:
        """Return a value converted; None if Python needs no conversion."""
        have, want = unboxed(of.operand.type).name, of.type.name
        inner = self.write(of.operand)
        plain = None
        if have == "char":
            inner, have = f"ord({inner})", "int"
            plain = inner
        if want == "char" and have in ("double", "float"):
            return f"chr({self.use('truncated')}({inner}, 32) & 65535)"
        if want == "char":
            return f"chr({inner} & 65535)"
        if want in ("double", "float") and have in _BITS:
            return f"float({inner})" if want == "double" else f"{self.use('to_float32')}({inner})"
        if want == "float" and have in ("double", "?"):
            return f"{self.use('float32')}({inner})"
        if want in _BITS and have in ("double", "float"):
            wide = f"{self.use('truncated')}({inner}, {max(32, _BITS[want])})"
            return wide if _BITS[want] >= 32 else f"{self.use('narrowed')}({wide}, {_BITS[want]})"
        if want in _BITS and have in _BITS and _BITS[want] < _BITS[have]:
            if want == "int":
                return f"{self.use('int32')}({inner})"
            return f"{self.use('narrowed')}({inner}, {_BITS[want]})"
        return plain

    def _choice(self, of: Choice) -> str:
        condition = self._truth(of.condition, OR)
        yes = attrs.evolve(self, known=self.known | non_null_if(of.condition, True))
        no = attrs.evolve(self, known=self.known | non_null_if(of.condition, False))
        return f"{yes.write(of.yes, OR)} if {condition} else {no.write(of.no, CHOICE)}"

    def _comparison(self, of: Expression) -> tuple[str, str, str] | None:
        """Return both sides of a comparison and the operator between them; None for others."""
        match of:
            case Is(operand=operand, column=column, names=names):
                written = self.write(Get(operand, column, STRING))
                if len(names) == 1:
                    return written, "==", self.constant(names[0])
                return written, "in", f"({', '.join(map(self.constant, names))})"
            case Call(name="equals" | "Objects.equals"):
                return self._equals(of)
            case Call() if of.name in COMPARISONS:
                return COMPARISONS[of.name](self, of.operands)
        return None

    def _call(self, of: Call) -> tuple[str, int]:
        if of.name in ("equals", "Objects.equals"):
            return self._other_equals(of)
        if of.name == "not null":
            (inner,) = of.operands
            return self._written(inner) if self.is_known(inner) else (self.non_null(inner), ATOM)
        if of.name.startswith("helper "):
            arguments = ", ".join(map(self.write, of.operands))
            return f"{of.name[7:]}({arguments})", ATOM
        written = CALLS.get(of.name)
        if written is None:
            raise Untranslatable(f"{of.name}() in Python")
        return written(self, of.operands)

    def _other_equals(self, of: Call) -> tuple[str, int]:
        """Return ``equals`` of what no operator of Python compares."""
        a, b = of.operands
        if is_floating(unboxed(a.type)) and is_floating(unboxed(b.type)):
            return f"{self.use('equal_floats')}({self.write(a)}, {self.write(b)})", ATOM
        return "False", ATOM

    def _equals(self, of: Call) -> tuple[str, str, str] | None:
        a, b = of.operands
        x, y = unboxed(a.type), unboxed(b.type)
        strict = of.name == "equals" and not self.is_known(a)
        if is_floating(x) and is_floating(y) and x == y:
            written = f"{self.use('compare')}({self.write(a)}, {self.write(b)})"
            return (written, "==", "0") if of.name == "equals" else None
        if UNKNOWN not in (x, y) and x != y and _is_value(x) and _is_value(y):
            return (self.non_null(a), "is", "None") if strict else None  # null is an error
        if isinstance(a, Const):
            a, b = _constant_last(a, b)
            if isinstance(b, Const) and isinstance(b.value, bool):
                return self.write(a, PLUS), "is", str(b.value)
            return self.write(a, PLUS), "==", self.write(b, PLUS)
        left = self.non_null(a) if strict else self.write(a, PLUS)
        return left, "==", self.write(b, PLUS)


_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


_OPPOSITE = {"==": "!=", "in": "not in", "is": "is not"}


def _flag_in(of: Binary) -> bool | None:
    """Return the boolean that a comparison is with; None if it is with none."""
    flags = (side.value for side in (of.right, of.left) if isinstance(side, Const))
    return next((flag for flag in flags if isinstance(flag, bool)), None)


def _constant_last(a: Expression, b: Expression) -> list[Expression]:
    """Return two operands, a constant one last."""
    turned = isinstance(a, Const) and not isinstance(b, Const)
    return [b, a] if turned else [a, b]


def _part_level(of: Expression, operator: str, level: int) -> int:
    """Return how tightly an operand has to bind: ``and`` inside ``or`` is in parentheses."""
    is_and = isinstance(of, Binary) and of.operator == "&&"
    return NOT if operator == "||" and is_and else level


def _is_exact(of: Expression) -> TypeGuard[Cast]:
    """Whether a value is a whole number as a double that Python converts by itself."""
    is_cast = isinstance(of, Cast) and of.type.name == "double"
    return isinstance(of, Cast) and is_cast and unboxed(of.operand.type).name in _SHORT


_NULLABLE = frozenset({
    "json item", "json find", "Map.get", "or else", "Stream.findFirst", "List.get",
    "Map.getOrDefault",
})  # fmt: skip
_VALUES = ("String", "int", "long", "double", "float", "short", "byte", "char", "boolean")


def _is_value(type_: JavaType) -> bool:
    return type_.name in _VALUES and not type_.dims
