# SPDX-License-Identifier: Apache-2.0
"""The names in a condition: columns of the current event, or of events of a stage."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from pyflinkcep.errors import InvalidArgumentError, counted
from pyflinkcep.expressions.syntax import Form, Syntax
from pyflinkcep.expressions.tree import AGGREGATES, WHOLE, Aggregate

__all__ = ["Names", "Scope"]

_MOST_FIRST, _MOST_LAST = (1 << 31) - 1, 10_000
"""The greatest offsets of first() and last()."""


@attrs.frozen
class Scope:
    """
    The meaning of names if the stages are known while a condition is read, as in MATCH_RECOGNIZE.

    Then ``A.price`` outside an aggregate is ``last(A.price)``, and a column without a stage is the
    current event's; inside an aggregate it covers all events of the match.

    Attributes
    ----------
    stages : frozenset of str
        The stages; names are case-insensitive.
    own : str
        The stage whose condition is read: its events, and those of the match, include the current
        event.
    """

    stages: frozenset[str]
    own: str

    def stage(self, name: str) -> str | None:
        """Return the stage of this name; None if there is none."""
        return next((s for s in sorted(self.stages) if s.casefold() == name.casefold()), None)


class Names:
    """
    Reads the names of one condition.

    Parameters
    ----------
    text : str
        The condition.
    stage : str
        Its stage, for errors.
    scope : Scope or None
        The meaning of names; None for the fluent API, in which a name before a column is a stage
        inside an aggregate and nothing outside.

    Attributes
    ----------
    stage : str
        The stage.
    """

    shifts_inside = True
    """Whether an interval is added to a stage's time by Spark, inside the aggregate."""

    def __init__(self, text: str, stage: str, scope: Scope | None) -> None:
        self.stage = stage
        self._where = f"stage {stage!r}: " if stage else ""
        self._text = text
        self._scope = scope

    def refused(self, what: str, hint: str) -> InvalidArgumentError:
        """Make the error for something unsupported."""
        return InvalidArgumentError(
            f"{self._where}the condition {self._text!r}: {what}",
            hint,
            problem=what,
            stage=self.stage or None,
            condition=self._text,
        )

    def between(self, start: int, end: int) -> str:
        """Return the text between two positions, in the language of conditions over stages."""
        return self._text[start:end]

    def written(self, part: Syntax) -> str:
        """Return the text of a part."""
        return self.between(part.start, part.end)

    @property
    def text(self) -> str:
        """The text of the condition."""
        return self.between(0, len(self._text))

    # --- the events that parts read

    def aggregates(self, part: Syntax) -> Iterator[Syntax]:
        """Yield the outermost parts that are about the match, in the order of the text."""
        if self._is_aggregate(part):
            yield part
            return
        for operand in part.operands:
            yield from self.aggregates(operand)

    def is_about_event(self, part: Syntax) -> bool:
        """Whether a part reads only the current event."""
        if any(node.form is Form.OPAQUE and node.detail for node in part.walk()):
            return False  # such as first(a.x) IGNORE NULLS
        return all(self._is_the_event(found) for found in self.aggregates(part))

    def _is_the_event(self, part: Syntax) -> bool:
        """Whether an aggregate is the value of the current event, like last(own.x)."""
        aggregate = self.aggregate(part)
        return (aggregate.function, aggregate.offset, aggregate.with_event) == ("last", 0, True)

    def is_aggregate(self, call: Syntax) -> bool:
        """Whether a function is an aggregate."""
        return call.value in AGGREGATES

    def _is_aggregate(self, part: Syntax) -> bool:
        if part.form is Form.CALL:
            return self.is_aggregate(part)
        if self._scope is None or part.form is not Form.COLUMN:
            return False
        return self._stage_of(part) is not None

    def _stage_of(self, column: Syntax) -> str | None:
        """Return the stage that a column names; None if it names none."""
        if len(column.value) < 2:
            return None
        return column.value[0] if self._scope is None else self._scope.stage(column.value[0])

    def owners(self, part: Syntax) -> Iterator[str]:
        """Yield the first names of qualified columns outside aggregates."""
        if self._is_aggregate(part):
            return
        if part.form is Form.COLUMN and len(part.value) > 1:
            yield part.value[0]
        for operand in part.operands:
            yield from self.owners(operand)

    def event_sql(self, part: Syntax) -> str:
        """
        Return a part about the event in Spark's form.

        That is without stage names, and with x for last(own.x), since Spark's last differs.
        """
        if self._scope is None:
            return self.written(part)
        pieces, at = [], part.start
        for node in self._event_values(part, frozenset()):
            pieces.append(self.between(at, node.start))
            if node.form is Form.CALL:
                value = self.value_inside(node)
                inner = self.event_sql(value)
                pieces.append(inner if value.form is Form.COLUMN else f"({inner})")
                at = node.end
            else:
                at = node.inner
        return "".join(pieces) + self.between(at, part.end)

    def value_inside(self, call: Syntax) -> Syntax:
        """Return what an aggregate is the value of."""
        return call.operands[0].bare()

    def _event_values(self, part: Syntax, bound: frozenset[str]) -> Iterator[Syntax]:
        """Yield the aggregates, and the columns with a stage's name, in the order of the text."""
        if part.form is Form.CALL and self.is_aggregate(part):
            yield part
            return
        if part.form is Form.COLUMN and part.value[0] not in bound and self._stage_of(part):
            yield part
        if part.form is Form.LAMBDA:
            bound |= frozenset(part.value)
        for operand in part.operands:
            yield from self._event_values(operand, bound)

    def _without_stages(self, part: Syntax, columns: list[Syntax]) -> str:
        pieces, at = [], part.start
        for column in columns:
            pieces.append(self.between(at, column.start))
            at = column.inner
        return "".join(pieces) + self.between(at, part.end)

    # --- aggregates

    def aggregate(self, part: Syntax) -> Aggregate:
        """Return the operand of an aggregate, or of a column that means one."""
        text = self.written(part)
        if part.form is Form.COLUMN:
            return self.last(part, text)
        function, operands = part.value, part.operands
        if part.detail:
            hint = "count distinct values in a Python function"
            raise self.refused(f"DISTINCT in {text!r}", hint)
        offset = self._offset(function, operands, text)
        if not operands:
            raise self.refused(f"{text!r} has 0 arguments", self._example(function))
        argument = operands[0].bare()
        if function == "count":
            whole = self._counted(argument)
            if whole is not None:
                return Aggregate(function, whole, None, text, 0, self._counts_event(whole))
        if any(self._is_nested(node) for node in argument.walk()):
            raise self.refused(
                f"{text!r} has an aggregate or a query inside",
                "write an expression over the columns of one stage",
            )
        return self._over(function, argument, text, offset)

    def inner(self, aggregate: Aggregate) -> str | None:
        """Return the argument of an aggregate for a function of it."""
        return aggregate.argument

    def last(self, argument: Syntax, text: str) -> Aggregate:
        """Return the last value of columns; `text` is how it is shown."""
        return self._over("last", argument, text, 0)

    @staticmethod
    def _is_nested(node: Syntax) -> bool:
        return node.form is Form.OPAQUE or (node.form is Form.CALL and node.value in AGGREGATES)

    def _offset(self, function: str, operands: tuple[Syntax, ...], text: str) -> int:
        if len(operands) < 2:
            return 0
        if function not in ("first", "last") or len(operands) > 2:
            raise self.refused(
                f"{text!r} has {counted(len(operands), 'argument')}", self._example(function)
            )
        written = self.written(operands[1])
        if not written.isdecimal():
            meant = "second" if function == "first" else "last but one"
            raise self.refused(
                f"{text!r}: expected a whole number as offset, got {written!r}",
                f"write {function}(stage.column, 1) for the {meant}",
            )
        # last() keeps the value at each offset up to its own, for every partial match.
        most = _MOST_LAST if function == "last" else _MOST_FIRST
        if len(written) > len(str(most)) or int(written) > most:
            raise self.refused(
                f"{text!r}: expected an offset of at most {most}",
                "compare count(...) instead, or look at the events in a Python function",
            )
        return int(written)

    def _counted(self, argument: Syntax) -> str | None:
        """Return the stage whose events are counted; None if values are counted."""
        if argument.form is Form.STAR and not argument.value:
            return WHOLE if self._scope is not None else None
        if argument.form is Form.STAR and len(argument.value) == 1:
            name: str = argument.value[0]
            return name if self._scope is None else self._scope.stage(name)
        if self._scope is None and argument.form is Form.COLUMN and len(argument.value) == 1:
            return str(argument.value[0])
        return None

    def _over(self, function: str, argument: Syntax, text: str, offset: int) -> Aggregate:
        columns = list(_columns(argument, frozenset()))
        if any(node.form is Form.STAR and node.value for node in argument.walk()):
            raise self.refused(f"{text!r}: * is for count", self._example(function))
        found = [self._stage_of(column) for column in columns]
        stages = list(dict.fromkeys(found))
        if self._scope is None and (not stages or None in stages):
            raise self.refused(
                f"{text!r} does not say which stage it is over", self._example(function)
            )
        if len(stages) > 1:
            said = [stage if stage is not None else "(any)" for stage in stages]
            raise self.refused(
                f"{text!r} is over the stages {said}",
                "combine two aggregates, as in avg(a.x) + avg(b.x)",
            )
        stage = (stages[0] if stages else None) or WHOLE
        sql = self._without_stages(
            argument, [c for c, s in zip(columns, found, strict=True) if s is not None]
        )
        return Aggregate(function, stage, sql, text, offset, self._counts_event(stage))

    def _counts_event(self, stage: str) -> bool:
        scope = self._scope
        if scope is None:
            return False
        return stage == WHOLE or stage == scope.stage(scope.own)

    @staticmethod
    def _example(function: str) -> str:
        return f"write {function}(stage.column), with the name of a stage"


def _columns(part: Syntax, bound: frozenset[str]) -> Iterator[Syntax]:
    """Yield the columns of a part, excluding variables of lambdas."""
    if part.form is Form.COLUMN and part.value[0] not in bound:
        yield part
    if part.form is Form.LAMBDA:
        bound |= frozenset(part.value)
    for operand in part.operands:
        yield from _columns(operand, bound)
