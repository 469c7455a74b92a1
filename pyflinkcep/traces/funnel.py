# SPDX-License-Identifier: Apache-2.0
"""How many keys and partial matches reached each stage of a pattern, and how long it took."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from pyflinkcep.errors import InvalidArgumentError, counted
from pyflinkcep.expressions.aggregates import percentile
from pyflinkcep.pattern import Pattern
from pyflinkcep.pattern.pattern import stages_of
from pyflinkcep.pattern.stage import QuantifierProperty, Stage
from pyflinkcep.show.charts import Chart, funnel_chart, readable
from pyflinkcep.show.diagram import Report

COUNTS = ("stage", "step", "keys", "partialMatches", "ofFirst", "ofPrevious", "dropOff")
"""The columns of a funnel after those of the group, and before the quantiles."""
_REACHED = ("stage", "step", "stageTimestamp", "sincePrevious", "sinceFirst")


@attrs.frozen
class FunnelStep:
    """A stage as a step of a funnel."""

    stage: str  # Its name
    number: int  # Its number, from 1
    # The step before it that may not be passed by, with which it is compared; 0 if there is none:
    # then with what began. Alternatives, and patterns in any order, are each compared with what is
    # before all of them.
    previous: int


def funnel_steps(pattern: Pattern) -> tuple[FunnelStep, ...]:
    """
    Return the stages of a pattern that take events, in order.

    Examples
    --------
    >>> pattern = Pattern.begin("a").followedBy("b").optional().followedBy("c")
    >>> [(step.stage, step.previous) for step in funnel_steps(pattern)]
    [('a', 0), ('b', 1), ('c', 1)]
    """
    steps: list[FunnelStep] = []
    _add_steps(steps, stages_of(pattern), 0)
    return tuple(steps)


def _add_steps(steps: list[FunnelStep], stages: Sequence[Stage], previous: int) -> int:
    """Add the steps of stages; return that with which what follows them is compared."""
    for stage in stages:
        last = previous
        if stage.combination is not None:
            ends = [_add_steps(steps, [part], previous) for part in stage.inside]
            last = ends[-1] if stage.combination.in_any_order else previous
        elif stage.inside:
            last = _add_steps(steps, stage.inside, previous)
        elif not stage.is_absent:
            steps.append(FunnelStep(stage.name, len(steps) + 1, previous))
            last = len(steps)
        if not stage.quantifier.hasProperty(QuantifierProperty.OPTIONAL):
            previous = last
    return previous


@attrs.frozen
class FunnelSettings:
    """What a user asks of a funnel."""

    by: tuple[str, ...]  # The columns of a partial match's first event that form the groups
    quantiles: Mapping[str, float]  # The quantiles of the time, by the names of their columns

    @classmethod
    def of(cls, name: str, by: object, quantiles: object = ()) -> FunnelSettings:
        """Check what a user asks."""
        names = (by,) if isinstance(by, str) else by
        if not isinstance(names, list | tuple) or not all(isinstance(one, str) for one in names):
            raise InvalidArgumentError(
                f"{name}: expected by to be names of columns, got {by!r}",
                "write by='country' or by=['country', 'device']; add a computed one to the events",
            )
        asked = cls(tuple(names), _named_quantiles(name, quantiles))
        own = {column.lower() for column in (*COUNTS, *_REACHED, *asked.quantiles)}
        taken = [one for one in names if one.lower() in own or list(names).count(one) > 1]
        if taken:
            raise InvalidArgumentError(
                f"{name}: by names {taken[0]!r}, and there is another column of that name",
                "name each column once, and rename one that the result has itself: "
                f"{', '.join(dict.fromkeys(own))}",
            )
        return asked


def _named_quantiles(name: str, quantiles: object) -> dict[str, float]:
    given = quantiles if isinstance(quantiles, list | tuple) else (quantiles,)
    found: dict[str, float] = {}
    for one in given:
        if isinstance(one, bool) or not isinstance(one, int | float) or not 0 <= one <= 1:
            raise InvalidArgumentError(
                f"{name}: expected quantiles from 0 to 1, got {one!r}",
                "write quantiles=(0.5, 0.9) for the median and the ninetieth percentile",
            )
        found[f"p{one * 100:.10g}".replace(".", "_") + "Ms"] = float(one)
    return found


@attrs.frozen(eq=False)
class Count:
    """What reached a stage."""

    keys: int  # How many keys
    partials: int  # How many partial matches
    since_ms: Sequence[int]  # The times since the event before, of those that have one, ascending


NOTHING = Count(0, 0, ())


@attrs.frozen(repr=False)
class Funnel(Report):
    """
    How many keys and partial matches reached each stage; made by :func:`pyflinkcep.funnel`.

    Attributes
    ----------
    pattern : str
        The pattern on one line.
    rows : list of dict
        A row for each group and stage, with the columns of :meth:`pyflinkcep.PatternStream.funnel`.
    by : tuple of str
        The columns of the group.
    has_key : bool
        Whether events have keys.
    """

    pattern: str
    rows: list[dict[str, Any]]
    by: tuple[str, ...] = ()
    has_key: bool = True

    def text(self) -> str:
        """Return the funnel as text."""
        lines = [self.pattern]
        group: object = None
        for row in self.rows:
            own = tuple(row[name] for name in self.by)
            if self.by and own != group:
                facts = zip(self.by, own, strict=True)
                lines.append(", ".join(f"{name}={value!r}" for name, value in facts))
                group = own
            lines.append(f"  {self._line(row)}")
        return "\n".join(lines)

    def _line(self, row: Mapping[str, Any]) -> str:
        width = max(len(row["stage"]) for row in self.rows)
        reached = [counted(row["partialMatches"], "partial match", "partial matches")]
        if self.has_key:
            reached.insert(0, counted(row["keys"], "key"))
        shares = [
            f"{row[name]:.0%} of the {words}"
            for name, words in (("ofFirst", "first"), ("ofPrevious", "one before"))
            if row[name] is not None and row["step"] > 1
        ]
        times = [
            f"{name.removesuffix('Ms').replace('_', '.')} {readable(value)}"
            for name, value in row.items()
            if name not in (*COUNTS, *self.by) and value is not None
        ]
        return f"{row['stage']:{width}}  {', '.join([*reached, *shares, *times])}"

    def diagram(self) -> Chart:
        """Return the funnel as a picture, with ``svg`` and ``save(path)``."""
        return funnel_chart(self.rows, title=f"funnel of {self.pattern}", by=self.by)


def counted_funnel(
    pattern: str,
    steps: Sequence[FunnelStep],
    groups: Iterable[tuple[tuple[Any, ...], Mapping[int, Count]]],
    settings: FunnelSettings,
    *,
    has_key: bool,
) -> Funnel:
    """Return the funnel of groups: what reached each step in them, and what began as step 0."""
    rows = [
        {
            **dict(zip(settings.by, group, strict=True)),
            **_row(step, counts, has_key),
            **{
                name: percentile(since, at) if len(since) else None
                for since in [counts.get(step.number, NOTHING).since_ms]
                for name, at in settings.quantiles.items()
            },
        }
        for group, counts in groups
        for step in steps
    ]
    return Funnel(pattern, rows, settings.by, has_key)


def _row(step: FunnelStep, counts: Mapping[int, Count], has_key: bool) -> dict[str, Any]:
    def size(number: int) -> int:
        count = counts.get(number, NOTHING)
        return count.keys if has_key else count.partials

    own, count = size(step.number), counts.get(step.number, NOTHING)
    first, previous = size(0), size(step.previous)
    return {
        "stage": step.stage,
        "step": step.number,
        "keys": count.keys,
        "partialMatches": count.partials,
        "ofFirst": own / first if first else None,
        "ofPrevious": own / previous if previous else None,
        "dropOff": previous - own,
    }
