# SPDX-License-Identifier: Apache-2.0
"""What became of events in memory, and of the partial matches that they began."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, TypeVar, get_args

import attrs

from pyflinkcep.engines.flink.nfa import EventMatch
from pyflinkcep.engines.flink.nfa.observer import StageObserver
from pyflinkcep.engines.flink.operator import CepOperator, KeyedCepOperator, PartialMatchLimit
from pyflinkcep.errors import (
    CepError,
    Field,
    InvalidArgumentError,
    KeyFields,
    OnTooManyPartialMatches,
    check_choice,
    suggesting,
)
from pyflinkcep.matching.threads import usable_cores
from pyflinkcep.pattern import Pattern
from pyflinkcep.pattern.variants import Variation, variants
from pyflinkcep.sase.model import Query
from pyflinkcep.tables.events import Table
from pyflinkcep.tables.match import Run
from pyflinkcep.tables.rows import has_columns, rows_of, table_or_rest
from pyflinkcep.tables.values import field_getter, grouping_key, has_time
from pyflinkcep.traces.comparison import Comparison, Outcome
from pyflinkcep.traces.funnel import (
    Count,
    Funnel,
    FunnelSettings,
    FunnelStep,
    counted_funnel,
    funnel_steps,
)
from pyflinkcep.traces.recorder import over_numbers, watched
from pyflinkcep.traces.result import Trace
from pyflinkcep.traces.why import WhyNot, explained


@suggesting
def trace(
    pattern: Pattern,
    events: Table | Iterable[Any],
    timestamp: str | Callable[[Any], Any] | None = None,
    key: str | Sequence[str] | Callable[[Any], Any] | None = None,
    delayThreshold: timedelta | None = None,
    maxPartialMatches: int | None = None,
    onTooManyPartialMatches: OnTooManyPartialMatches = "fail",
) -> Trace:
    """
    Return what a pattern did with events in memory, event by event.

    The matches are those of :func:`match`: the same code finds them, while it is watched.

    Parameters
    ----------
    pattern, events, timestamp, key, delayThreshold
        As for :func:`match`.
    maxPartialMatches, onTooManyPartialMatches
        As for :class:`OperatorTestHarness`.

    Returns
    -------
    Trace
        What became of each event and partial match: as text, which says for each event that could
        begin a match how far it got and what failed there; as a picture (``diagram()``), which
        notebooks show; and as data (``events``, ``partials``, ``found``). ``text(full=True)`` tells
        all that each event did.

    Raises
    ------
    CepError
        As :func:`match`.

    Notes
    -----
    Cost: each event is recorded for each partial match that it passes by, so trace few events.

    Examples
    --------
    >>> pattern = Pattern.begin("low").where("n < 3").next("high").where("n > 7")
    >>> trace(pattern, [{"n": 1}, {"n": 5}, {"n": 2}, {"n": 9}])
    low ⇒ high: 4 events, 1 match
    <BLANKLINE>
    event 0 at 0: n=1
      got to 'low', stage 1 of 2: low 0
      ended by event 1: 'high' had to follow directly
        high: n > 7 was false for event 1: n = 5
    <BLANKLINE>
    event 2 at 2: n=2
      match 0: low 2, high 3
    <BLANKLINE>
    2 events could not begin a match
      low: n < 3 was false 2 times, last for event 3: n = 9
    """
    given = rows_of(checked("trace", pattern, events))
    run = Run.of(pattern, given, timestamp, key, delayThreshold)
    limit = PartialMatchLimit.of(maxPartialMatches, onTooManyPartialMatches)
    return watched(run, limit)[0]


@suggesting
def whyNot(
    pattern: Pattern,
    events: Table | Iterable[Any],
    timestamp: str | Callable[[Any], Any] | None = None,
    key: str | Sequence[str] | Callable[[Any], Any] | None = None,
    delayThreshold: timedelta | None = None,
) -> WhyNot:
    """
    Return why a pattern matches what it matches in events in memory, and not more.

    Parameters
    ----------
    pattern, events, timestamp, key, delayThreshold
        As for :func:`match`; events without a time are counted and left out.

    Returns
    -------
    WhyNot
        How many of the events that could begin a match reached each stage, and how the others
        ended, by reason with an example each; the closest; how often each condition holds; and
        advice. As text, as a picture (``diagram()``), and as ``rows``.

    Raises
    ------
    CepError
        As :func:`match`.

    Examples
    --------
    >>> pattern = Pattern.begin("low").where("n < 3").next("high").where("n > 70")
    >>> why = whyNot(pattern, [{"n": 1}, {"n": 5}, {"n": 2}, {"n": 9}])
    >>> print(why.advice[0])  # doctest: +ELLIPSIS
    No event satisfies 'n > 70' of 'high'. The most frequent values of n: 1 (1), ...
    >>> why  # doctest: +ELLIPSIS
    low ⇒ high: 0 matches, 4 events
    <BLANKLINE>
    Beginnings that reached
      low   2 of 2
      high  0 of 2
    <BLANKLINE>
    How the others ended
      after 'low', an event came that did not fit and may not be skipped: 2
        ended by event 1: 'high' had to follow directly
        high: n > 70 was false for event 1: n = 5
    <BLANKLINE>
    The closest
      event 0 at 0: n=1, 1 event taken
        ended by event 1: 'high' had to follow directly
        high: n > 70 was false for event 1: n = 5
      event 2 at 2: n=2, 1 event taken
        ended by event 3: 'high' had to follow directly
        high: n > 70 was false for event 3: n = 9
    <BLANKLINE>
    Conditions
      low: n < 3: true for 2 of 4 events
      high: n > 70: true for 0 of 4 events  (never)
    ...
    """
    given = rows_of(checked("whyNot", pattern, events))
    timed = given if timestamp is None else [e for e in given if has_time(e, timestamp)]
    run = Run.of(pattern, timed, timestamp, key, delayThreshold)
    more = {
        "without a time": len(given) - len(timed),
        "without a key": sum(map(_is_missing, run.given.keys)) if key is not None else 0,
        "out of order": sum(later < time for time, later in itertools.pairwise(run.given.times)),
    }
    return explained(run, None, more, has_key=key is not None)


_VARIATIONS: tuple[Variation, ...] = get_args(Variation)
_STEPS = 10_000
"""After how many steps of partial matches a variant is left."""


@suggesting
def compare(
    pattern: Pattern | Mapping[str, Pattern],
    events: Table | Iterable[Any],
    timestamp: str | Callable[[Any], Any] | None = None,
    key: str | Sequence[str] | Callable[[Any], Any] | None = None,
    delayThreshold: timedelta | None = None,
    vary: Variation | Sequence[Variation] = _VARIATIONS,
) -> Comparison:
    """
    Return what other contiguities, quantifiers and skip strategies make of the same events.

    Parameters
    ----------
    pattern : Pattern or dict of str to Pattern
        The pattern, of which the variants are made; or patterns by name, which are compared with
        the first.
    events, timestamp, key, delayThreshold
        As for :func:`match`.
    vary : {"contiguity", "quantifiers", "skip"} or list of them
        What is varied, one thing at a time: how each stage follows (``next``, ``followedBy``,
        ``followedByAny``; ``notNext``, ``notFollowedBy``); how often it matches (``oneOrMore``,
        ``optional``, ``greedy``, ``consecutive``, ``allowCombinations``, without ``until``); the
        strategy after a match.

    Returns
    -------
    Comparison
        The matches that each variant has in addition, or lacks; with which event a match comes out,
        also on a stream. As text, as a picture of the events and the matches (``diagram()``), which
        notebooks show with a table, as ``rows``, and with the trace of each variant in
        ``outcomes``.

    Raises
    ------
    CepError
        As :func:`match`; variants that cannot run are left out.

    Notes
    -----
    Cost: that of a :func:`trace` for each variant, so compare few events. A variant that makes very
    many partial matches is stopped, which is told.

    Examples
    --------
    >>> pattern = Pattern.begin("a").where("x = 'a'").followedBy("b").where("x = 'b'")
    >>> compare(pattern, [{"x": letter} for letter in "acbb"], vary=["contiguity", "skip"])
    a → b: 4 events, 1 match
      match 0: a 0, b 2; on a stream once event 3 has come
    <BLANKLINE>
    Contiguity
      next('b')           0 matches: without a 0, b 2
      followedByAny('b')  2 matches: also a 0, b 3
    <BLANKLINE>
    Skip strategy
      the same with skipToNext(), skipPastLastEvent(), skipToFirst('a'), skipToFirst('b')
    """
    wanted = [vary] if isinstance(vary, str) else vary
    if not isinstance(wanted, list | tuple):
        raise InvalidArgumentError(
            f"compare: expected vary to be names, got {vary!r}", "write vary='contiguity'"
        )
    for what in wanted:
        check_choice("vary", what, _VARIATIONS)
    named = pattern if isinstance(pattern, Mapping) else {"as written": pattern}
    if not named or not all(isinstance(name, str) for name in named):
        raise InvalidArgumentError(
            f"compare: expected patterns by name, got {pattern!r}",
            "write compare({'strict': a.next('b'), 'relaxed': a.followedBy('b')}, events)",
        )
    name, base = next(iter(named.items()))
    run = Run.of(checked("compare", base, base), rows_of(events), timestamp, key, delayThreshold)
    outcomes = [_outcome("given", name, run)]
    for other, own in list(named.items())[1:]:
        compiled = Run.compiled(checked("compare", own, own), run.given)
        outcomes.append(_outcome("given", other, compiled))
    if not isinstance(pattern, Mapping):
        outcomes += (
            _outcome(what, name, made)
            for what in wanted
            for name, made in _variants(run, base, what)
        )
    return Comparison(tuple(outcomes), run.given.delay or 0)


def _variants(run: Run, pattern: Pattern, what: Variation) -> Iterator[tuple[str, Run]]:
    """Yield the variants that can run."""
    for name, variant in variants(pattern, what):
        with suppress(CepError):
            yield name, Run.compiled(variant, run.given)


def _outcome(what: str, name: str, run: Run) -> Outcome:
    trace, recorder = watched(run, None, 0, most_steps=_STEPS)
    return Outcome(what, name, trace, recorder.steps <= _STEPS)


def _is_missing(key: Any) -> bool:
    """Whether a key is null, or null in all of its columns."""
    return key is None or (isinstance(key, tuple) and set(key) == {None})


_T = TypeVar("_T")


def checked(name: str, pattern: Pattern, events: _T) -> _T:
    """Return the events, if they stand behind a pattern."""
    if isinstance(pattern, Pattern):
        return events
    hint = f"write {name}(pattern, events, ...)"
    if isinstance(pattern, Query):
        hint = f"write {name}(query.asPattern(), events, ...)"
    elif isinstance(pattern, str):
        hint += ": a clause of MATCH_RECOGNIZE must be written as a Pattern, and a query as "
        hint += "parse(text).asPattern()"
    raise InvalidArgumentError(f"{name}: expected a Pattern, got {pattern!r}", hint)


@suggesting
def funnel(
    pattern: Pattern,
    events: Table | Iterable[Any],
    timestamp: str | Callable[[Any], Any] | None = None,
    key: str | Sequence[str] | Callable[[Any], Any] | None = None,
    delayThreshold: timedelta | None = None,
    by: str | Sequence[str] = (),
    quantiles: float | Sequence[float] = (0.5, 0.9),
    threads: int | None = None,
) -> Funnel:
    """
    Return how many keys reached each stage in events in memory, and how long it took.

    Parameters
    ----------
    pattern, events, timestamp, key, delayThreshold
        As for :func:`match`.
    by : str or list of str
        The fields to group by; a partial match is in the group of its first event.
    quantiles : float or list of float, from 0 to 1
        Which quantiles of the time to return.
    threads : int, at least 1, optional
        On how many cores keys of large tables are counted at most, as for :func:`match`.

    Returns
    -------
    Funnel
        A row for each group and stage, in ``rows``, with the columns of
        :meth:`pyflinkcep.PatternStream.funnel`; as text; and as a picture (``diagram()``), which
        notebooks show.

    Raises
    ------
    CepError
        As :func:`match`; or if `by` or `quantiles` are of the wrong kind.

    Examples
    --------
    >>> pattern = Pattern.begin("view").where("x = 'v'").followedBy("buy").where("x = 'b'")
    >>> log = [("ann", 0, "v"), ("bob", 10, "v"), ("ann", 60, "b"), ("cid", 70, "b")]
    >>> events = [{"user": user, "ts": ts, "x": x} for user, ts, x in log]
    >>> funnel(pattern, events, timestamp="ts", key="user")
    view → buy
      view  2 keys, 2 partial matches
      buy   1 key, 1 partial match, 50% of the first, 50% of the one before, p50 60 ms, p90 60 ms
    """
    settings, count = FunnelSettings.of("funnel", by, quantiles), usable_cores(threads)
    steps = funnel_steps(pattern) if isinstance(pattern, Pattern) else ()
    checked("funnel", pattern, events)
    found = None
    if delayThreshold is None:
        found = _reached_in_columns(pattern, events, timestamp, key, settings, steps, count)
    if found is None:
        found = _reached_one_by_one(
            pattern, events, timestamp, key, delayThreshold, settings, steps
        )
    name, groups = found
    return counted_funnel(name, steps, _sorted(groups), settings, has_key=key is not None)


_Groups = list[tuple[tuple[Any, ...], Mapping[int, Count]]]


def _reached_in_columns(
    pattern: Pattern,
    events: Any,
    timestamp: Field | None,
    key: KeyFields | None,
    settings: FunnelSettings,
    steps: Sequence[FunnelStep],
    threads: int,
) -> tuple[str, _Groups] | None:
    """Return the pattern, and what reached its steps by group; None for what is no table."""
    if not has_columns(events):
        return None
    from pyflinkcep.tables.column_funnel import reached_groups  # which loads Arrow
    from pyflinkcep.tables.column_match import ColumnMatch
    from pyflinkcep.tables.row_sql import OnlyByRow
    from pyflinkcep.tables.stored import StoredEvents

    with suppress(OnlyByRow):
        job: ColumnMatch | None = None
        if isinstance(events, str | os.PathLike):
            stored = StoredEvents.of_pattern(events, pattern, timestamp, key, settings.by)
            job = stored.analysed(pattern, timestamp, key, keeps=bool(settings.by))
            events = events if job is not None else stored.whole()
        if job is None:
            table, _ = table_or_rest(events)
            if table is None:
                return None
            job = ColumnMatch.analysed(pattern, table, timestamp, key)
        if set(settings.by) <= set(job.table.column_names):
            found = reached_groups(job, steps, settings, threads)
            return job.nfa.description, list(found.items())
    return None


def _reached_one_by_one(
    pattern: Pattern,
    events: Any,
    timestamp: Field | None,
    key: KeyFields | None,
    delay: timedelta | None,
    settings: FunnelSettings,
    steps: Sequence[FunnelStep],
) -> tuple[str, _Groups]:
    """Return the pattern, and what reached its steps by group, as the plain path finds it."""
    given = rows_of(events)
    run = Run.of(pattern, given, timestamp, key, delay)
    output = _Output(run.given.times, {step.stage: step.number for step in steps})
    operator = CepOperator(
        attrs.evolve(run.nfa, observer=StageObserver(output.reached)),
        given.__getitem__,
        expressions=over_numbers(run.expressions, given),
        by_windows=True,
    )
    run.given.feed(KeyedCepOperator(operator, output, run.given.order_of_numbers))
    getters = [field_getter(name, "by") for name in settings.by]
    groups: dict[tuple[Any, ...], dict[int, list[tuple[Any, int | None]]]] = {}
    if not getters:
        groups[()] = {}
    for first, step, since in output.found:
        group = tuple(grouping_key(get(given[first])) for get in getters)
        reached = groups.setdefault(group, {})
        for number in (step, 0) if since is None else (step,):
            reached.setdefault(number, []).append((run.given.keys[first], since))
    return run.nfa.description, [
        (group, {number: _count(found) for number, found in reached.items()})
        for group, reached in groups.items()
    ]


def _count(reached: list[tuple[Any, int | None]]) -> Count:
    since = sorted(time for _, time in reached if time is not None)
    return Count(len({key for key, _ in reached}), len(reached), since)


def _sorted(groups: _Groups) -> _Groups:
    """Sort by group, nulls first; by its text if values of a field cannot be compared."""
    try:
        return sorted(groups, key=lambda one: [(v is not None, v or 0) for v in one[0]])
    except TypeError:
        return sorted(groups, key=lambda one: repr(one[0]))


@attrs.define(eq=False)
class _Output:
    """Collects the stages reached: the first event, the step, and the time since the one before."""

    times: Sequence[int]
    steps: dict[str, int]
    found: list[tuple[int, int, int | None]] = attrs.field(factory=list)

    def reached(self, timestamp: int, taken: EventMatch) -> None:
        before = [number for numbers in taken.values() for number in numbers][:-1]
        newest = max((self.times[number] for number in before), default=None)
        since = None if newest is None else timestamp - newest
        stage = next(reversed(taken))
        first = next(iter(taken.values()))[0]
        self.found.append((first, self.steps[stage], since))

    def match(self, key: Any, timestamp: int, match: EventMatch) -> None:
        """Ignore a match."""

    timeout = match

    def dropped(self, key: Any, count: int) -> None:
        """Ignore that partial matches were dropped."""

    def late(self, key: Any, event: Any) -> None:
        """Ignore a late event."""
