# SPDX-License-Identifier: Apache-2.0
"""A clause with Flink's meaning as a pattern: every variable a stage, every condition SQL."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import attrs

from pyflinkcep.conditions import IterativeCondition
from pyflinkcep.errors import CepError, InputError, MalformedPatternException, NotSupportedError
from pyflinkcep.expressions.grammar import Form, Syntax
from pyflinkcep.expressions.parser import condition_of
from pyflinkcep.expressions.tree import WHOLE, Aggregate
from pyflinkcep.match_recognize.expressions import Expression, read_expression
from pyflinkcep.match_recognize.leaves import LeafNames
from pyflinkcep.match_recognize.names import Names
from pyflinkcep.match_recognize.tree import (
    Alternation,
    Clause,
    Concatenation,
    Definition,
    Exclusion,
    Part,
    Permutation,
    Quantified,
    Rows,
    Skip,
    SkipTo,
    Variable,
)
from pyflinkcep.pattern import AfterMatchSkipStrategy, Pattern

_STANDARD = 'use dialect="standard", which accepts it'


@attrs.frozen(eq=False)
class FlinkClause:
    """A parsed clause."""

    clause: Clause  # The clause
    names: Names  # Its names
    pattern: Pattern  # PATTERN, WITHIN, AFTER MATCH and DEFINE
    measures: dict[str, Expression]  # MEASURES by name

    def placed(self, refused: CepError) -> CepError:
        """Return an error about a stage's condition as one about its DEFINE."""
        for definition in self.clause.definitions:
            if definition.variable == refused.stage:
                return self.names.error(
                    definition.condition,
                    f"DEFINE {refused.stage} is not a condition: {refused.problem}",
                    f'{refused.hint or "write a condition"}; or use dialect="standard"',
                    InputError,
                )
        return refused


def read_flink_clause(clause: Clause, names: Names, within_ms: int) -> FlinkClause:
    """Translate a clause."""
    _check_rows(clause, names)
    steps = list(_steps(clause.pattern, names))
    _check_names(clause, names, steps)
    conditions = {
        definition.variable: _condition(definition, names)
        for definition in clause.definitions
        if definition.variable in names.variables
    }
    pattern = _pattern(clause, names, steps, conditions)
    if within_ms:
        pattern = pattern.within(timedelta(milliseconds=within_ms))
    measures = {m.name: read_expression(m.expression, names) for m in clause.measures}
    return FlinkClause(clause, names, pattern, measures)


# --- what Flink refuses


def _check_rows(clause: Clause, names: Names) -> None:
    if clause.rows is not Rows.ONE:
        what = "All rows per match mode is not supported yet."
        raise names.error(clause.rows_span, what, _STANDARD, NotSupportedError)
    if not clause.definitions:
        raise names.error(
            clause.pattern_span, "no DEFINE", f"write DEFINE A AS condition; {_STANDARD}"
        )


_UNSUPPORTED = {Alternation: "branching", Permutation: "PERMUTE", Exclusion: "'{-' '-}'"}


def _steps(part: Part, names: Names) -> Iterator[tuple[Variable, Quantified | None]]:
    """Yield the variables of a linear pattern, each with its quantifier."""
    error = names.error
    if isinstance(part, Variable):
        yield part, None
    elif isinstance(part, Concatenation):
        if not part.parts:
            raise error(part, "an empty pattern", f"name a variable; {_STANDARD}")
        for inner in part.parts:
            yield from _steps(inner, names)
    elif isinstance(part, Quantified):
        if not isinstance(part.part, Variable):
            if not isinstance(part.part, Concatenation | Quantified):
                list(_steps(part.part, names))
            raise _unsupported(names, part, "Group patterns are not supported yet.")
        yield part.part, part
    elif type(part) in _UNSUPPORTED:
        words = f"Currently, CEP doesn't support {_UNSUPPORTED[type(part)]} patterns."
        raise _unsupported(names, part, words)
    else:
        hint = 'dialect="standard" knows it'
        raise error(part, f"{part} is ignored by Flink", hint, NotSupportedError)


def _unsupported(names: Names, part: Part, words: str) -> CepError:
    shown = names.source.shown(*part.span)
    return names.error(
        part, f"Expression not supported: {shown} {words}", _STANDARD, NotSupportedError
    )


def _check_names(
    clause: Clause, names: Names, steps: list[tuple[Variable, Quantified | None]]
) -> None:
    seen = set()
    for variable, _ in steps:
        if variable.name in seen:
            what = "Pattern variables must be unique. That might change in the future."
            raise names.error(variable, what, _STANDARD, NotSupportedError)
        seen.add(variable.name)
    _check_skip(clause.skip, clause, names)
    for subset in clause.subsets:
        what = f"SUBSET {subset.name} is ignored by Flink"
        raise names.error(subset, what, 'dialect="standard" knows it', NotSupportedError)


def _check_skip(skip: Skip | None, clause: Clause, names: Names) -> None:
    if skip is None or skip.variable is None or skip.variable in names.variables:
        return
    known = {*names.subsets, *(definition.variable for definition in clause.definitions)}
    if skip.variable in known:
        raise names.error(
            skip,
            "The pattern name specified in AfterMatchSkipStrategy can not be found in the given "
            "Pattern",
            f"skip to one of {', '.join(names.variables)}",
            MalformedPatternException,
        )
    raise names.unknown(
        skip.variable, f"AFTER MATCH SKIP TO {skip.variable}: no such variable", skip.span
    )


# --- the pattern


def _condition(definition: Definition, names: Names) -> IterativeCondition:
    variable = definition.variable
    expression = read_expression(definition.condition, names, variable)
    try:
        return flink_condition(expression, variable)
    except CepError as refused:
        what = refused.problem
        what = f"DEFINE {variable}: {what}"
        hint = f"{refused.hint}; {_STANDARD}" if refused.hint else _STANDARD
        raise names.error(definition.condition, what, hint, type(refused)) from refused


def _pattern(
    clause: Clause,
    names: Names,
    steps: list[tuple[Variable, Quantified | None]],
    conditions: dict[str, IterativeCondition],
) -> Pattern:
    last = steps[-1][1]
    pattern: Pattern | None = None
    for variable, quantifier in steps:
        if pattern is None:
            pattern = Pattern.begin(variable.name, _strategy(clause.skip))
        else:
            pattern = pattern.next(variable.name)
        condition = conditions.get(variable.name)
        try:
            if condition is not None:
                pattern = pattern.where(condition)
            if quantifier is not None:
                pattern = _quantified(pattern, quantifier, names)
        except CepError as refused:
            if refused.span is not None:
                raise
            span = variable.span if quantifier is None else quantifier.span
            hint = refused.hint or _STANDARD
            if isinstance(refused, MalformedPatternException):
                hint = f"make the variable before it reluctant, as in A+?; {_STANDARD}"
            raise names.error(span, refused.message, hint, type(refused)) from refused
    assert pattern is not None
    if all(quantifier is not None and quantifier.low == 0 for _, quantifier in steps):
        raise names.error(
            clause.pattern_span,
            "Patterns that can produce empty matches are not supported. There must be at least "
            "one non-optional state.",
            f"make one variable mandatory; {_STANDARD}",
            NotSupportedError,
        )
    if last is not None and last.greedy and last.high not in (1, last.low):
        raise names.error(
            last,
            "Greedy quantifiers are not allowed as the last element of a Pattern yet. Finish "
            "your pattern with either a simple variable or reluctant quantifier.",
            f'write {last.part}{last.written}?, or dialect="standard", where {last} takes the '
            "longest",
            NotSupportedError,
        )
    return pattern


def _quantified(pattern: Pattern, quantifier: Quantified, names: Names) -> Pattern:
    low, high = quantifier.low, quantifier.high
    if quantifier.written.replace(" ", "").startswith("{,"):
        what = "The from should be a positive number greater than 0."
        hint = f"write {{0,{'' if high is None else high}}}; {_STANDARD}"
        raise names.error(quantifier, what, hint)
    if high == 0:
        what = "The to should be a number greater than or equal to from: 1."
        raise names.error(quantifier, what, f"leave the variable out; {_STANDARD}")
    if (low, high) == (0, 1):
        if not quantifier.greedy:
            what = "Reluctant optional variables are not supported yet."
            raise names.error(quantifier, what, _STANDARD, NotSupportedError)
        return pattern.optional()
    if high is None:
        looping = pattern.oneOrMore() if low < 2 else pattern.timesOrMore(low)
        looping = looping.optional() if low == 0 else looping
        pattern = looping.consecutive()
    else:
        pattern = pattern.times(low, high).consecutive()
    return pattern.greedy() if quantifier.greedy and high != low else pattern


def _strategy(skip: Skip | None) -> AfterMatchSkipStrategy:
    if skip is None or skip.to is SkipTo.NEXT_ROW:
        return AfterMatchSkipStrategy.skipToNext()
    if skip.to is SkipTo.PAST_LAST_ROW:
        return AfterMatchSkipStrategy.skipPastLastEvent()
    assert skip.variable is not None
    if skip.to is SkipTo.FIRST:
        return AfterMatchSkipStrategy.skipToFirst(skip.variable).throwExceptionOnMiss()
    return AfterMatchSkipStrategy.skipToLast(skip.variable).throwExceptionOnMiss()


_MOVES = ("prev", "next")
_ENDS = ("first", "last")


def flink_condition(expression: Expression, variable: str) -> IterativeCondition:
    """Return a condition of a variable over stages; PREV and NEXT, at offset 0, are no moves."""
    return condition_of(expression.syntax, _Stages(expression, variable))


class _Stages(LeafNames):
    """
    Reads leaves as what the stages of a partial match have taken.

    The events of the variable whose condition it is, and those of the match, include the current
    one: the last of them is about the event alone.
    """

    shifts_inside = True

    def __init__(self, expression: Expression, stage: str) -> None:
        super().__init__(expression.read, expression.placed, expression.leaves, True, stage)
        self._moves = [
            node for node, _ in expression.placed if node.form is Form.CALL and node.value in _MOVES
        ]

    def between(self, start: int, end: int) -> str:
        """Return the text between two positions, in the language of conditions over stages."""
        return "".join(self._pieces(start, end))

    def _pieces(self, start: int, end: int) -> Iterator[str]:
        for move in self._moves:
            if start <= move.start and move.end <= end:
                inner = move.operands[0].bare()
                shown = self._text[inner.start : inner.end]
                yield self._text[start : move.start]
                yield shown if _is_call(inner, _ENDS) else f"LAST({shown})"
                start = move.end
        yield self._text[start:end]

    def is_about_event(self, part: Syntax) -> bool:
        """Whether a part reads only the current event."""
        read = map(self.aggregate, self.aggregates(part))
        return all((of.function, of.offset, of.with_event) == ("last", 0, True) for of in read)

    def owners(self, part: Syntax) -> Iterator[str]:
        """Yield nothing: all columns are of rows."""
        return iter(())

    def event_sql(self, part: Syntax) -> str:
        """Return a part about the event in Spark's form: x for last(own.x), which it lacks."""
        pieces, at = [], part.start
        for node in self.aggregates(part):
            value = node
            while value.form is Form.PAREN or _is_call(value, (*_MOVES, *_ENDS)):
                value = value.operands[0]
            sql = self.leaf(node).argument or ""
            pieces += [
                self._text[at : node.start],
                sql if value.form is Form.COLUMN else f"({sql})",
            ]
            at = node.end
        return "".join(pieces) + self._text[at : part.end]

    def aggregate(self, part: Syntax) -> Aggregate:
        """Return a leaf as an aggregate of the events that a stage has taken."""
        leaf, text = self.leaf(part), self.written(part)
        stage = leaf.stage or WHOLE
        counts_event = stage in (WHOLE, self.stage)
        return Aggregate(leaf.function, stage, leaf.argument, text, leaf.offset, counts_event)


def _is_call(node: Syntax, functions: tuple[str, ...]) -> bool:
    return node.form is Form.CALL and node.value in functions
