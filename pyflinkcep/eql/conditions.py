# SPDX-License-Identifier: Apache-2.0
"""EQL's conditions as SQL over the input's columns, by the language's two logics of null."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import attrs

from pyflinkcep.eql.functions import FUNCTIONS, NOTHING, NULL, Typed, cast, kind_name, op, typed
from pyflinkcep.eql.model import EqlModel, Field, Filter
from pyflinkcep.eql.patterns import fits_regex, fits_wildcards, without_case
from pyflinkcep.eql.tokens import failure
from pyflinkcep.errors import CepError, InputError, did_you_mean
from pyflinkcep.expressions.sql_types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    STRING,
    TIMESTAMP,
    VOID,
    SqlType,
    literal_type,
)
from pyflinkcep.expressions.tokens import place
from pyflinkcep.expressions.tree import EACH, Call, Column, Literal, Operation, Span, Tree, mapped

ABOUT_A_FIELD = ("cidrmatch", "endswith", "startswith", "stringcontains")
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_EQUAL = ("=", "<>")
_TESTS = ("in", "in~", ":", "like", "like~", "regex", "regex~")
TRUE, FALSE = Literal(True), Literal(False)


@attrs.frozen
class FieldColumn:
    """A field of the input."""

    column: Tree  # What reads it
    type: SqlType  # Of its values
    is_array: bool = False

    @property
    def read(self) -> SqlType:
        """The type by which its values are compared and computed."""
        if self.type.is_time:
            return BIGINT
        return DOUBLE if self.type.name in ("float", "decimal") else self.type

    @property
    def key_type(self) -> SqlType:
        """The type by which its values are compared as keys, if it has any."""
        return TIMESTAMP if self.type.is_time else BIGINT if self.read.is_whole else self.read

    def converted(self, value: Tree) -> Tree:
        """Return a value of the field as the type by which it is read."""
        if self.type.is_time:
            return Call("unix_millis", (value,))  # times are numbers here
        return value if self.read == self.type else cast(value, self.read.name)

    def has_any(self, test: Callable[[Tree], Tree]) -> Tree:
        """Return whether any value satisfies a test; false without one."""
        if not self.is_array:
            return op("coalesce", test(self.converted(self.column)), FALSE)
        inner = test(self.converted(EACH))
        return op("coalesce", Call("exists", (self.column, inner)), FALSE)

    @property
    def has_value(self) -> Tree:
        """Whether it has a value."""
        if not self.is_array:
            return op("is not null", self.column)
        return op("coalesce", Call("exists", (self.column, op("is not null", EACH))), FALSE)

    @property
    def smallest(self) -> Tree:
        """Its value where one is needed, the smallest of an array."""
        return self.converted(Call("array_min", (self.column,)) if self.is_array else self.column)


@attrs.frozen(eq=False)
class Fields:
    """The fields of an input."""

    known: Mapping[str, FieldColumn | str]  # By path; of those of other types the type
    text: str = ""  # The query, for messages

    def find(self, field: Field) -> FieldColumn | None:
        """Return a field; None for one that may be missing, and is."""
        if field.optional and field.path not in self.known:
            return None
        where = f"{place(self.text, field.span[0])}: " if self.text else ""
        return self._found(field.path, where, f"?{field.path} may be missing; ", field.span)

    def key_types(self, model: EqlModel) -> list[SqlType]:
        """
        Return the type of each part of a sequence's key.

        It is that of the first step that takes an event, or of a wider number. Values of another
        kind are equal to none of them, so that a step whose field has such has no key of a run.
        """
        steps = sorted(model.every, key=lambda step: step.is_missing or step is model.until)
        found = []
        for keys in zip(*(step.keys for step in steps), strict=True):
            fields = [field for field in map(self.find, keys) if field is not None]
            types = [field.key_type for field in fields if field.type != VOID] or [STRING]
            found.append(DOUBLE if types[0].is_number and DOUBLE in types else types[0])
        return found

    def named(self, argument: str, path: str) -> FieldColumn:
        """Return the field that an argument names."""
        return self._found(path, f"{argument}={path!r}: ")

    def _found(
        self, path: str, where: str, hint: str = "", span: Span | None = None
    ) -> FieldColumn:
        found = self.known.get(path)
        if isinstance(found, FieldColumn):
            return found
        if found is not None:
            raise InputError(
                f"{where}the field {path} is {found}",
                "read a field of it by its path, or cast it to a number or text before",
                span=span,
            )
        raise InputError(
            f"{where}the input has no field {path}",
            did_you_mean(path, self.known, f"{hint}the fields are {', '.join(self.known)}"),
            span=span,
        )

    def of(self, text: str) -> Fields:
        """Return the fields for a query."""
        return attrs.evolve(self, text=text)


@attrs.frozen(eq=False)
class Conditions:
    """Makes SQL of conditions on some fields; equal ones are equal trees."""

    fields: Fields
    category: str  # The field with an event's category

    def of(self, filter_: Filter) -> Tree:
        """Return whether an event is of a category and satisfies its condition."""
        condition = self.truth(mapped(filter_.condition, self._present))
        condition = FALSE if condition == NULL else condition
        if filter_.category is None:
            return condition
        column = self.fields.named("category", self.category)
        if column.type not in (STRING, VOID):
            what = f"the category {self.category} is {kind_name(column.type)}, not a text"
            raise InputError(what, 'name the field with the category: category="event.category"')
        is_own = column.has_any(lambda value: op("=", value, Literal(filter_.category)))
        return _joined("and", [is_own, condition])

    def _present(self, tree: Tree) -> Tree:
        """Return a field that may be missing, and is, as null."""
        if isinstance(tree, Column) and self.fields.find(Field.of(tree)) is None:
            return Literal(None, span=tree.span)
        return tree

    def _column(self, column: Column) -> FieldColumn:
        found = self.fields.find(Field.of(column))
        assert found is not None
        return found

    # --- conditions

    def truth(self, tree: Tree) -> Tree:
        """Return a condition; tests of one field against constants are about any of its values."""
        match tree:
            case Operation("and" | "or" as word, operands):
                return _joined(word, map(self.truth, operands))
            case Operation("not", (Operation(operator, operands) as inner,)) if (
                operator in _OPPOSITE
            ):
                return self.truth(attrs.evolve(inner, operator=_OPPOSITE[operator]))
            case Operation("not", (inner,)):
                return negated(self.truth(inner))
            case Column():
                column = self._column(tree)
                if column.type not in (BOOLEAN, VOID):
                    raise self._no_condition(tree, column.type)
                return column.has_any(lambda value: value)
            case Operation(operator, (left, right)):
                if isinstance(left, Literal) and (
                    not isinstance(right, Literal) or left.value is None
                ):
                    operator, left, right = _MIRRORED[operator], right, left
                found = self._comparison(operator, left, right, tree)
                if found is not None:
                    return found
            case Call(name, (Column() as field, *rest)) if (
                name in _TESTS or name in ABOUT_A_FIELD
            ) and all(isinstance(part, Literal) for part in rest):
                column = self._column(field)
                return column.has_any(lambda value: self._tested(tree, value, column.read))
        value, type_ = self.value(tree)
        if type_ not in (BOOLEAN, VOID):
            raise self._no_condition(tree, type_)
        return value

    def _tested(self, tree: Call, value: Tree, type_: SqlType) -> Tree:
        """Return a test of a value against constants."""
        rest = [self.value(part) for part in tree.operands[1:]]
        if tree.function in _TESTS:
            return self._test(tree, Typed(value, type_), rest).tree
        return self._call(tree, [Typed(value, type_), *rest]).tree

    def _comparison(self, operator: str, left: Tree, right: Tree, whole: Operation) -> Tree | None:
        """Return a comparison with a constant; None for one of values that are computed."""
        if not isinstance(right, Literal):
            return None
        column = self._column(left) if isinstance(left, Column) else None
        if operator in _EQUAL and right.value is None:
            if column is not None:
                has = column.has_value
            elif isinstance(left, Literal):
                has = Literal(left.value is not None)
            else:
                has = op("is not null", self.value(left).tree)
            return negated(has) if operator == "=" else has
        if column is not None and right.value is not None:
            constant = _constant(right)
            if operator in _EQUAL:
                any_ = column.has_any(
                    lambda value: self._same("=", Typed(value, column.read), constant)
                )
                return any_ if operator == "=" else negated(any_)
            return self._ordered_field(column, operator, constant, whole)
        if operator in _EQUAL and isinstance(right.value, bool) and not isinstance(left, Literal):
            found = self.truth(left)
            return found if right.value is (operator == "=") else negated(found)
        return None

    def _ordered_field(
        self, column: FieldColumn, operator: str, constant: Typed, whole: Operation
    ) -> Tree:
        """Return whether any value is on one side of a constant; null without a value."""
        if column.type == VOID:
            return NULL

        def test(value: Tree) -> Tree:
            return self._ordered(operator, Typed(value, column.read), constant, whole)

        if not column.is_array:
            return test(column.converted(column.column))
        return op("case", column.has_value, column.has_any(test))

    # --- values

    def value(self, tree: Tree) -> Typed:
        """Return a value within another: null if an operand is null; of an array the smallest."""
        match tree:
            case Literal():
                return _constant(tree)
            case Column():
                column = self._column(tree)
                if column.type == VOID:
                    return NOTHING
                return Typed(column.smallest, column.read)
            case Operation("and" | "or" | "not" as word, operands):
                parts = [self._condition(part) for part in operands]
                return Typed(negated(parts[0]) if word == "not" else _joined(word, parts), BOOLEAN)
            case Operation(operator, (left, right)):
                nulls = [isinstance(p, Literal) and p.value is None for p in (left, right)]
                if operator in _EQUAL and any(nulls):
                    return Typed(self.truth(tree), BOOLEAN)
                a, b = self.value(left), self.value(right)
                if VOID in (a.type, b.type):
                    return NOTHING
                if operator in _EQUAL:
                    return Typed(self._same(operator, a, b), BOOLEAN)
                return Typed(self._ordered(operator, a, b, tree), BOOLEAN)
            case Call(name, (first, *rest)) if name in _TESTS:
                return self._test(tree, self.value(first), [self.value(part) for part in rest])
        assert isinstance(tree, Call)
        return self._call(tree, [self.value(part) for part in tree.operands])

    def _condition(self, tree: Tree) -> Tree:
        value, type_ = self.value(tree)
        if type_ not in (BOOLEAN, VOID):
            raise self._no_condition(tree, type_)
        return value

    def _call(self, tree: Call, given: list[Typed]) -> Typed:
        def refuse(what: str, hint: str) -> CepError:
            return self._failure(tree, what, hint)

        try:
            return typed(FUNCTIONS[tree.function], given, tree.detail == "~", refuse)
        except CepError as cause:
            if cause.span is not None:
                raise
            raise refuse(cause.message, cause.hint or "") from cause

    def _test(self, tree: Call, value: Typed, rest: list[Typed]) -> Typed:
        """Return whether a value is one of others, or fits patterns."""
        if value.type == VOID:
            return NOTHING
        name, ignore_case = tree.function, tree.function.endswith("~") or tree.function == ":"
        if name in ("in", "in~"):
            return Typed(self._among(value, rest, ignore_case), BOOLEAN)
        if value.type != STRING:
            raise self._failure(
                tree,
                f"{name}: expected a text, got {kind_name(value.type)}",
                "compare numbers with ==, or write string(…)",
            )
        patterns = [str(part.value) for part, _ in rest if isinstance(part, Literal)]
        fits = fits_regex if name.startswith("regex") else fits_wildcards
        try:
            return Typed(fits(value.tree, patterns, ignore_case), BOOLEAN)
        except CepError as cause:
            raise self._failure(tree, cause.message, cause.hint or "") from cause

    def _among(self, value: Typed, rest: list[Typed], ignore_case: bool) -> Tree:
        tree = value.tree
        items = [p.tree for p in rest if p.type == VOID or are_alike(p.type, value.type)]
        if ignore_case and value.type == STRING:
            tree = without_case(tree)
            items = [item if item == NULL else without_case(item) for item in items]
        items = list(dict.fromkeys(items))
        if not items:
            return op("case", op("is not null", tree), FALSE)
        return op("=" if len(items) == 1 else "in", tree, *items)

    def _same(self, operator: str, a: Typed, b: Typed) -> Tree:
        """Return an equation; values of different kinds are never equal, and null is null."""
        if a.type == VOID:
            return NULL
        if are_alike(a.type, b.type):
            return op(operator, a.tree, b.tree)
        known = [op("is not null", one.tree) for one in (a, b) if not isinstance(one.tree, Literal)]
        return op("case", _joined("and", known or [TRUE]), Literal(operator == "<>"))

    def _ordered(self, operator: str, a: Typed, b: Typed, whole: Tree) -> Tree:
        if BOOLEAN in (a.type, b.type) or not are_alike(a.type, b.type):
            raise self._failure(
                whole,
                f"{kind_name(a.type)} {operator} {kind_name(b.type)}",
                "order numbers, or texts; write string(…) or number(…)",
            )
        return op(operator, a.tree, b.tree)

    # --- errors

    def _failure(self, tree: Tree, what: str, hint: str) -> CepError:
        return failure(self.fields.text, tree.span, what, hint)

    def _no_condition(self, tree: Tree, type_: SqlType) -> CepError:
        what = f"expected a condition, got {kind_name(type_)}"
        return self._failure(tree, what, "compare it with a value")


def _constant(literal: Literal) -> Typed:
    type_ = literal_type(literal)
    assert type_ is not None
    return Typed(Literal(literal.value), type_)


def are_alike(a: SqlType, b: SqlType) -> bool:
    """Whether values of two types may be equal."""
    return a == b or (a.is_number and b.is_number)


def negated(tree: Tree) -> Tree:
    """Return the negation of a condition."""
    if isinstance(tree, Literal):
        return tree if tree.value is None else Literal(not tree.value)
    if isinstance(tree, Operation) and tree.operator == "not":
        return tree.operands[0]
    return op("not", tree)


def _joined(word: str, parts: Iterable[Tree]) -> Tree:
    """Return conditions under and or or, without constants that change nothing, each once."""
    decisive = Literal(word == "or")
    kept: dict[Tree, None] = {}
    for part in parts:
        if part == decisive:
            return decisive
        if part != Literal(word == "and"):
            inner = (
                part.operands if isinstance(part, Operation) and part.operator == word else [part]
            )
            kept.update(dict.fromkeys(inner))
    if not kept:
        return Literal(word == "and")
    return next(iter(kept)) if len(kept) == 1 else Operation(word, tuple(kept))
