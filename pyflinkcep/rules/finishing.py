# SPDX-License-Identifier: Apache-2.0
"""Rules whose partial matches go on while no new ones begin."""

from __future__ import annotations

from pyflinkcep.conditions import ExpressionCondition, IterativeCondition, RichAndCondition
from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.eql import Eql
from pyflinkcep.errors import NotSupportedError
from pyflinkcep.matching.held_back import HeldBack
from pyflinkcep.pattern import Pattern
from pyflinkcep.pattern.pattern import stages_of
from pyflinkcep.pattern.stage import QuantifierProperty, Stage
from pyflinkcep.rules.rule import DROP, Rule

_HINT = "leave whenReplaced out, or write such a rule"


def finishing_time(rule: Rule) -> int | None:
    """
    Return how long a rule goes on after an event that begins a match, in milliseconds.

    None if its partial matches are dropped. NotSupportedError if they may go on for ever, or if
    what begins a match may also continue one.
    """
    definition = rule.definition
    if rule.whenReplaced == DROP:
        return None
    if isinstance(definition, Eql):
        model = definition.model
        first = model.steps[0]
        begins_once = first.runs == 1 and not first.is_missing
        longest = model.maxspan if model.is_sequence else 0
    elif isinstance(definition, Pattern):
        begins_once = _begins_once(stages_of(definition)[0])
        longest = HeldBack.by_pattern(NFACompiler.compile(definition)).events_ms
    else:
        begins_once, longest = False, None
    if not begins_once:
        raise NotSupportedError(
            "whenReplaced: finish is for patterns and EQL whose first stage is one event, with SQL",
            _HINT,
        )
    if longest is None:
        raise NotSupportedError("whenReplaced: finish needs a window, or it never ends", _HINT)
    return longest


def begin_of(definition: Pattern) -> str:
    """Return the name of the stage that begins matches."""
    return stages_of(definition)[0].name


def _begins_once(stage: Stage) -> bool:
    is_one = stage.quantifier.properties == {QuantifierProperty.SINGLE} and not stage.inside
    return is_one and _is_sql(stage.condition)


def _is_sql(condition: IterativeCondition | None) -> bool:
    """Whether a condition does not hold if none of its parts does."""
    if isinstance(condition, RichAndCondition):
        return all(map(_is_sql, condition.nestedConditions))
    return isinstance(condition, ExpressionCondition) and isinstance(condition.expression, str)
