# SPDX-License-Identifier: Apache-2.0
"""Conditions on events in memory, which satisfy them: in Python, or by a running Spark."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from pyflinkcep.conditions import (
    BooleanConditions,
    Evaluated,
    ExpressionCondition,
    IterativeCondition,
    RichAndCondition,
    RichNotCondition,
    RichOrCondition,
    single_conditions,
)
from pyflinkcep.engines.flink.nfa import NFA, EventEvaluation, Expressions, NFACompiler
from pyflinkcep.engines.flink.nfa.atoms import atom_of
from pyflinkcep.errors import CepError, ConditionError, InvalidArgumentError, NotSupportedError
from pyflinkcep.expressions.codegen import generated
from pyflinkcep.expressions.evaluator import event_condition, local_expressions
from pyflinkcep.expressions.tokens import SqlSyntaxError, slip
from pyflinkcep.expressions.tree import MatchExpression
from pyflinkcep.functions import RuntimeContext
from pyflinkcep.pattern import Pattern


def evaluated_here(pattern: Pattern, examples: Sequence[Any] = ()) -> Pattern:
    """Return the pattern with SQL and Columns about one event as Python functions."""
    if not isinstance(pattern, Pattern):
        raise InvalidArgumentError(
            f"expected a Pattern, got {pattern!r}", "pass what Pattern.begin(...) returns"
        )
    return evaluated_by(pattern, lambda condition: _evaluated(condition, examples))


def evaluated_by(
    pattern: Pattern, evaluated: Callable[[ExpressionCondition], IterativeCondition]
) -> Pattern:
    """Return the pattern with each SQL condition and Column about one event replaced."""
    return pattern.with_conditions(_Replacing(evaluated).changed)


@attrs.frozen(eq=False)
class _Replacing:
    """Replaces SQL and Columns in conditions, each condition once."""

    # Not nested functions, which would keep each other, and a table, until Python looks for cycles.

    evaluated: Callable[[ExpressionCondition], IterativeCondition]
    done: dict[int, IterativeCondition] = attrs.field(factory=dict)

    def changed(self, condition: IterativeCondition) -> IterativeCondition:
        """Return a condition with its parts replaced."""
        if id(condition) not in self.done:
            self.done[id(condition)] = self._made(condition)
        return self.done[id(condition)]

    def _made(self, condition: IterativeCondition) -> IterativeCondition:
        if isinstance(condition, RichAndCondition | RichOrCondition):
            left, right = map(self.changed, condition.getNestedConditions())
            return type(condition)(left, right)
        if isinstance(condition, RichNotCondition):
            return RichNotCondition(self.changed(condition.getNestedConditions()[0]))
        if isinstance(condition, ExpressionCondition):
            return self.evaluated(condition)
        return condition


def _evaluated(condition: ExpressionCondition, examples: Sequence[Any]) -> IterativeCondition:
    hint = ""
    try:
        if isinstance(condition.expression, str):
            return Evaluated(condition.text, event_condition(condition.text))
        reason = f"the Column {condition.text} can only be evaluated by Spark"
    except SqlSyntaxError as cause:
        if slip(condition.text) is not None:
            raise InvalidArgumentError(f"the condition {cause.message}", cause.hint) from None
        reason, hint = f"the condition {cause.message}", f"{cause.hint}; if it is SQL of Spark, "
    except CepError as cause:
        reason = cause.message
    session = _running_session()
    if session is None:
        raise NotSupportedError(
            reason,
            f"{hint}start a SparkSession first, or write the condition as a function of the event",
        )
    return Evaluated(condition.text, _asked_of(session, condition.expression, examples))


def sql_of(pattern: Pattern) -> str | None:
    """Return the text of all SQL of a pattern; None if a condition is no SQL."""
    texts: list[Any] = []

    def see(condition: IterativeCondition) -> IterativeCondition:
        for one in single_conditions(condition):
            of_stages = isinstance(one, MatchExpression)
            texts.append(getattr(one, "text" if of_stages else "expression", None))
        return condition

    pattern.with_conditions(see)
    return "\n".join(texts) if all(isinstance(text, str) for text in texts) else None


def over_stages(nfa: NFA) -> list[tuple[str, MatchExpression]]:
    """Return the pattern's SQL over stages, each with the name of its stage."""
    return [
        (f"stage {atom.stage!r}", atom.condition)
        for atom in nfa.atoms
        if isinstance(atom.condition, MatchExpression)
    ]


def expressions_over_stages(nfa: NFA, examples: Sequence[Any]) -> Expressions | None:
    """Return the pattern's SQL over stages ready to run; None if it has none."""
    named = over_stages(nfa)
    if not named:
        return None
    if not examples:
        raise NotSupportedError(
            f"{named[0][0]}: the condition {named[0][1]!r} needs the types of its columns",
            "pass some events to the harness: examples=[...]",
        )
    expressions, fields = local_expressions(named, examples)
    return Expressions(generated(expressions), fields)


# --- by Spark


def _running_session() -> Any:
    """Return the active session; None without one. Does not import pyspark."""
    sql = sys.modules.get("pyspark.sql")
    return None if sql is None else sql.SparkSession.getActiveSession()


def _asked_of(session: Any, condition: Any, examples: Sequence[Any]) -> Callable[[Any], bool]:
    """Return a function that has Spark's answers for examples, and queries it for other events."""
    functions = sys.modules["pyspark.sql.functions"]
    column = functions.expr(condition) if isinstance(condition, str) else condition

    def ask(events: Sequence[Any]) -> list[bool]:
        try:
            frame = session.createDataFrame([_fields(event) for event in events])
            answers = frame.select(column.cast("boolean").alias("answer")).collect()
        except Exception as cause:  # of PySpark, whose classes are not known here
            raise ConditionError(
                f"the condition {str(condition)!r}: Spark cannot evaluate it on events: {cause}",
                "write it as a function of the event, or run the pattern on a DataFrame",
            ) from cause
        return [answer[0] is True for answer in answers]

    known: dict[int, bool] = {}
    if examples:
        known = dict(zip(map(id, examples), ask(examples), strict=True))

    def holds(event: Any) -> bool:
        answer = known.get(id(event))
        return ask([event])[0] if answer is None else answer

    return holds


def _fields(event: Any) -> dict[str, Any]:
    """Return the fields of a dict, a Row or named tuple, an attrs or dataclass object."""
    if isinstance(event, Mapping):
        return dict(event)
    for method in ("asDict", "_asdict"):
        if hasattr(event, method):
            return dict(getattr(event, method)())
    names = getattr(type(event), "__dataclass_fields__", None)
    if names is None:
        names = [field.name for field in getattr(type(event), "__attrs_attrs__", ())]
    if not names:
        names = list(getattr(event, "__dict__", ()))
    return {name: getattr(event, name) for name in names}


@attrs.frozen(eq=False)
class EventConditions:
    """Conditions of a compiled pattern on single events, asked of events in memory."""

    nfa: NFA
    events: Sequence[Any]
    times: Sequence[int]
    _evaluation: EventEvaluation = attrs.field(init=False, factory=EventEvaluation)

    def where(self, condition: IterativeCondition) -> list[int]:
        """Return the positions of the events that satisfy a condition."""
        return self._among(condition, list(range(len(self.events))))

    def _among(self, condition: IterativeCondition, positions: list[int]) -> list[int]:
        """Ask of some events only, as the parts of a condition are asked one after another."""
        if isinstance(condition, BooleanConditions):
            return positions if condition.value else []
        if isinstance(condition, RichAndCondition):
            for part in condition.nestedConditions:
                positions = self._among(part, positions)
            return positions
        if isinstance(condition, RichOrCondition):
            left, right = condition.nestedConditions
            found = self._among(left, positions)
            return sorted(found + self._among(right, _without(positions, found)))
        if isinstance(condition, RichNotCondition):
            return _without(positions, self._among(condition.nestedConditions[0], positions))
        atom, found = atom_of(self.nfa.atoms, condition), []
        for at in positions:
            self._evaluation.begin(self.events[at], self.times[at])
            if self._evaluation.holds(atom):
                found.append(at)
        return found


def _without(positions: list[int], found: list[int]) -> list[int]:
    others = set(found)
    return [at for at in positions if at not in others]


def satisfying(
    conditions: Mapping[str, Any], events: Sequence[Any], times: Sequence[int]
) -> dict[str, list[int]]:
    """Return for each condition, by name, the positions of the events that satisfy it."""
    pattern: Pattern | None = None
    for name, condition in conditions.items():
        stage = Pattern.begin(name) if pattern is None else pattern.followedBy(name)
        pattern = stage.where(condition)
    if pattern is None:
        return {}
    here = evaluated_here(pattern, events)
    nfa = NFACompiler.compile(here)
    nfa.open(RuntimeContext())
    for atom in nfa.atoms:
        if not atom.bit:
            raise InvalidArgumentError(
                f"{atom.stage!r}: the condition {atom.condition!r} reads a partial match",
                "write a condition on one event",
            )
    asked = EventConditions(nfa, events, times)
    return {stage.getName(): asked.where(stage.getCondition()) for stage in here.stages()}
