# SPDX-License-Identifier: Apache-2.0
"""Detections of Sigma rules, as pySigma reads them, as SQL over the input's columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from pyflinkcep.eql.conditions import FieldColumn, Fields
from pyflinkcep.eql.functions import cast
from pyflinkcep.eql.patterns import ANY_CHAR, any_true, is_in_blocks, quoted_char, whole_text
from pyflinkcep.errors import InputError, NotSupportedError, did_you_mean
from pyflinkcep.expressions.sql_types import BOOLEAN, STRING, VOID
from pyflinkcep.expressions.tree import Call, Literal, Operation, Tree

_SIGNS = {"LT": "<", "LTE": "<=", "GT": ">", "GTE": ">=", "NEQ": "<>"}
_REGEX_FLAGS = {"IGNORECASE": "i", "MULTILINE": "m", "DOTALL": "s"}
_REGEX_PARTS = re.compile(
    r"\\Q.*?(?:\\E|$)|\\[pPx]\{|\\."
    r"|\[(?P<begin>\^?\]?)(?P<members>(?:\[:\^?[a-z]+:\]|\\.|[^\]\\])*)\]"
    r"|\{(?P<times>,[0-9]+\}|[0-9]+(?:,[0-9]*)?\})?",
    re.DOTALL,
)
_OF_CLASS = re.compile(r"\\.|\[:(?P<negated>\^?)(?P<name>[a-z]+):\]|\[|&&", re.DOTALL)
_NAMED = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": r"\x00-\x7F", "blank": r"\t ",
    "cntrl": r"\x00-\x1F\x7F", "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~",
    "punct": r"!-/:-@\[-`{-~", "space": r"\t-\r ", "upper": "A-Z", "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}  # fmt: skip
"""The classes of POSIX, which Java names in another way."""
NULL = Literal(None)

Test = Callable[[FieldColumn, Tree], Tree]


@attrs.frozen(eq=False)
class Detection:
    """Makes SQL of the detection of a rule on some fields; equal tests are equal trees."""

    rule: str  # The rule, for messages
    fields: Fields  # The fields of the input
    names: dict[str, str]  # Sigma's names of fields, and those of the input
    raw: Sequence[str]  # The columns in which free text is looked for
    missing_is_null: bool  # Whether a field that the input lacks is null

    def tree(self, node: Any) -> Tree:
        """Return whether an event satisfies a part of the condition; nodes are pySigma's."""
        match type(node).__name__:
            case "ConditionAND" | "ConditionOR" as name:
                operands = tuple(dict.fromkeys(map(self.tree, node.args)))
                word = "and" if name == "ConditionAND" else "or"
                return operands[0] if len(operands) == 1 else Operation(word, operands)
            case "ConditionNOT":
                return Operation("not", (self.tree(node.args[0]),))
            case "ConditionFieldEqualsValueExpression":
                return self._field_test(node.field, node.value)
            case "ConditionValueExpression":
                return self._free_text(node.value)
            case name:
                raise self._refused(f"a condition of the kind {name} is not supported")

    def _refused(self, what: str, hint: str = "leave the rule out") -> NotSupportedError:
        return NotSupportedError(f"{self.rule}: {what}", hint)

    # --- fields

    def _column(self, name: str) -> FieldColumn | None:
        """Return a field of Sigma's; None for one that is missing, and null."""
        own = self.names.get(name, name)
        found = self.fields.known.get(own)
        if isinstance(found, FieldColumn):
            return found
        if found is None and self.missing_is_null:
            return None
        problem = f"the events have no field {own!r}" if found is None else f"{own!r} is {found}"
        raise InputError(
            f"{self.rule}: {problem}",
            f"{did_you_mean(own, self.fields.known, 'map it')}: "
            f'fields={{{name!r}: …}}, or missing="null"',
        )

    def _of_column(self, name: str, test: Test) -> Tree:
        column = self._column(name)
        if column is None:
            return NULL
        if column.is_array:
            return column.has_any(lambda value: test(column, value))
        return test(column, column.converted(column.column))

    def _field_test(self, name: str, value: Any) -> Tree:
        match type(value).__name__:
            case "SigmaNull" | "SigmaExists" as kind:
                column = self._column(name)
                wants_value = kind == "SigmaExists" and value.exists
                has_value = Literal(False) if column is None else column.has_value
                return has_value if wants_value else Operation("not", (has_value,))
            case "SigmaExpansion":
                return any_true([self._field_test(name, one) for one in value.values])
            case "SigmaFieldReference":
                return self._two_fields(name, value)
        test = self._test(value)
        return self._of_column(name, test)

    def _two_fields(self, name: str, value: Any) -> Tree:
        other = self._column(value.field)
        if other is None:
            return NULL
        column = self._column(name)
        for path, own in ((name, column), (value.field, other)):
            if own is not None and own.is_array:
                raise self._refused(
                    f"{path!r} is an array, which is not compared with a field",
                    "compare fields that have one value",
                )
        right = _text(other, other.smallest)
        if value.starts_with and value.ends_with:
            return self._of_column(name, lambda c, x: Call("contains", (_text(c, x), right)))
        if value.starts_with:
            return self._of_column(name, lambda c, x: Operation("startswith", (_text(c, x), right)))
        if value.ends_with:
            return self._of_column(name, lambda c, x: Call("endswith", (_text(c, x), right)))
        return self._of_column(name, lambda c, x: Operation("=", (_text(c, x), right)))

    def _free_text(self, value: Any) -> Tree:
        if not self.raw:
            raise self._refused(
                f"it looks for the text {f'{value}':.40} in the whole event",
                "name the columns with it: raw=['message']",
            )
        if type(value).__name__ == "SigmaString":
            parts = ("*", *_parts(value), "*") if not value.contains_special() else _parts(value)
            return any_true(
                [self._of_column(name, lambda c, x: _fits(_text(c, x), parts)) for name in self.raw]
            )
        return any_true([self._of_column(name, self._test(value)) for name in self.raw])

    # --- values

    def _test(self, value: Any) -> Test:
        """Return the test of a field against a value that is no field."""
        match type(value).__name__:
            case "SigmaString" | "SigmaCasedString" as kind:
                placeholder = next((part for part in value.s if _is_open(part)), None)
                if placeholder is not None:
                    raise self._refused(
                        f"it has the placeholder %{placeholder.name}%, a list of values",
                        "replace it by a pipeline of pySigma: pipeline=…",
                    )
                parts, folds = _parts(value), kind == "SigmaString"
                return lambda c, x: _fits(_text(c, x), parts, folds=folds)
            case "SigmaNumber":
                return lambda c, x: _equals(c, x, value.number)
            case "SigmaBool":
                return lambda c, x: _equals(c, x, value.boolean)
            case "SigmaRegularExpression":
                flags = "".join(sorted(_REGEX_FLAGS[flag.name] for flag in value.flags))
                regex = Literal((f"(?{flags})" if flags else "") + java_regex(str(value.regexp)))
                return lambda c, x: Call("rlike", (_text(c, x), regex))
            case "SigmaCIDRExpression":
                return lambda c, x: is_in_blocks(_text(c, x), [str(value.network)])
            case "SigmaCompareExpression" if type(value.number).__name__ == "SigmaNumber":
                sign, number = _SIGNS[value.op.name], Literal(value.number.number)
                return lambda c, x: Operation(sign, (_number(c, x), number))
            case kind:
                raise self._refused(f"a value of the kind {kind} is not supported")


def java_regex(regexp: str) -> str:
    r"""
    Return a regular expression as Java reads it, where PCRE, which Sigma names, reads it otherwise.

    To PCRE ``{,n}`` is at most n times, a brace that counts nothing is itself, and in a class so
    are brackets and ``&&``, but for names as in ``[[:alpha:]]``.

    Examples
    --------
    >>> java_regex(r"[^[]{,8}{a}[]&&]")
    '[^\\[]{0,8}\\{a}[\\]&\\&]'
    """
    return _REGEX_PARTS.sub(_java_part, regexp)


def _java_part(part: re.Match[str]) -> str:
    text, members = part[0], part["members"]
    if text == "{":
        return r"\{"
    if members is None:
        return text.replace("{,", "{0,", 1) if part["times"] else text
    if "-[:" in members:  # whether it is a range, not all say alike; it is refused
        return text
    begin = part["begin"].replace("]", r"\]")
    return f"[{begin}{_OF_CLASS.sub(_java_member, members)}]"


def _java_member(member: re.Match[str]) -> str:
    if member["name"] in _NAMED:
        own = _NAMED[member["name"]]
        return f"[^{own}]" if member["negated"] else own
    return {"[": r"\[", "&&": r"&\&"}.get(member[0], member[0])


def _is_open(part: Any) -> bool:
    return type(part).__name__ == "Placeholder"


def _parts(value: Any) -> tuple[str, ...]:
    """Return a text of Sigma's as texts, ``*`` and ``?`` alone being wildcards."""
    found: list[str] = []
    for part in value.s:
        if isinstance(part, str):
            found += [f"={part}"] if part else []
        else:
            found.append("*" if part.name == "WILDCARD_MULTI" else "?")
    return tuple(found)


def _fits(text: Tree, parts: Sequence[str], *, folds: bool = True) -> Tree:
    """Return whether a text is one of Sigma's, in which parts are texts after = and wildcards."""
    if folds:
        text, parts = Call("lower", (text,)), [part.lower() for part in parts]
    inner = list(parts)
    begins = inner[:1] != ["*"] or not inner.pop(0)
    ends = inner[-1:] != ["*"] or not inner.pop()
    if any(part in ("*", "?") for part in inner):
        known = {"*": f"{ANY_CHAR}*", "?": ANY_CHAR}
        regex = [known.get(one) or "".join(map(quoted_char, one[1:])) for one in parts]
        return whole_text(text, ["".join(regex)])
    wanted = Literal("".join(one[1:] for one in inner))
    if begins and ends:
        return Operation("=", (text, wanted))
    if begins:
        return Operation("startswith", (text, wanted))
    return Call("endswith" if ends else "contains", (text, wanted))


def _text(column: FieldColumn, value: Tree) -> Tree:
    """Return a value as a text."""
    return value if column.read in (STRING, VOID) else cast(value, "string")


def _number(column: FieldColumn, value: Tree) -> Tree:
    """Return a value as a number; a text that is none as null."""
    return Call("try_cast", (value,), "double") if column.read in (STRING, VOID) else value


def _equals(column: FieldColumn, value: Tree, wanted: float) -> Tree:
    """Return whether a value is a number or a truth value, which texts may write."""
    if column.read in (STRING, VOID):
        written = f"{wanted}".lower() if isinstance(wanted, bool) else f"{wanted}"
        return Operation("=", (Call("lower", (value,)), Literal(written)))
    if (column.read == BOOLEAN) != isinstance(wanted, bool):
        return Operation("=", (cast(value, "string"), Literal(f"{wanted}".lower())))
    return Operation("=", (value, Literal(wanted)))
