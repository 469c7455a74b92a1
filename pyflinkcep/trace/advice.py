# SPDX-License-Identifier: Apache-2.0
"""What to look at first when a pattern does not match, in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyflinkcep.errors import counted
from pyflinkcep.time import duration_text
from pyflinkcep.trace.model import End
from pyflinkcep.trace.why_facts import Beginning, ConditionCount, Facts
from pyflinkcep.trace.words import quoted

__all__ = ["advised"]


def advised(
    facts: Facts,
    longer_ms: Mapping[tuple[End, str], int],
    too_early: Mapping[tuple[End, str], int],
    missing: str = "",
) -> Iterator[str]:
    """
    Yield advice, what matters most first.

    Parameters
    ----------
    facts : Facts
        What was counted.
    longer_ms : mapping of (End, str) to int, milliseconds
        For a kind of window, and a stage that it kept from being reached, how much later than the
        first event, or the one before, one came that may fit.
    too_early : mapping of (End, str) to int
        For how a beginning ended, and a stage that it waited for, how many such there are before
        which an event came that may fit.
    missing : str
        Why there are no events, if that is known.
    """
    if not facts.input["events"]:
        read = "look at what was read, and at filters before the pattern"
        yield missing or f"There are no events: {read}."
        return
    for condition in facts.conditions:
        if condition.per_event and not condition.holds and condition.of:
            yield _never(condition)
    if not facts.beginnings and all(one.holds for one in facts.conditions):
        first = next(iter(facts.stages))
        yield f"No event satisfies all conditions of {first!r}, with which a match could begin."
    for (stage, kind), ended in facts.ended.items():
        yield from _about(facts, stage, kind, ended, longer_ms)
        names = dict.fromkeys(name for one in ended for name in one.partial.ending.stages)
        for name in names:
            if too_early.get((kind, name)):
                yield (
                    f"An event that may fit {name!r} came before {too_early[kind, name]} of these "
                    f"{len(ended)}: are the stages in the order of the events?"
                )
    for condition in facts.conditions:
        if condition.per_event and condition.verdict == "always":
            yield (
                f"{condition.text!r} of {condition.stage!r} holds for all "
                f"{counted(condition.of, 'event')}: it decides nothing here."
            )
    yield from _about_input(facts)


def _never(condition: ConditionCount) -> str:
    text = f"No event satisfies {condition.text!r} of {condition.stage!r}."
    for name, values in condition.values:
        found = ", ".join(f"{value} ({count})" for value, count in values)
        text += f" The most frequent values of {name}: {found}."
    return text


def _about(
    facts: Facts,
    stage: str,
    kind: End,
    ended: list[Beginning],
    longer_ms: Mapping[tuple[End, str], int],
) -> Iterator[str]:
    """Yield what to do about beginnings that ended at a stage for a reason."""
    count, wanted = counted(len(ended), "beginning"), quoted(ended[0].partial.ending.stages)
    few, is_one = _too_few(facts, stage, ended), len(ended) == 1
    were = "was" if is_one else "were"
    if kind is End.CONTIGUITY:
        text = f"{count} ended after {stage!r} because the very next event had to be {wanted}"
        key = "of the same key" if facts.has_key else "of all (there is no key)"
        if stage in ended[0].partial.ending.stages:
            call, instead = "consecutive() lets", "Without it, events that do not fit are skipped."
        else:
            call, instead = "next() lets", "followedBy() skips events that do not fit."
        yield f"{text}: {call} no event in between, {key}. {few}{instead}"
    elif kind in (End.WINDOW, End.GAP):
        is_gap = kind is End.GAP
        window, since = ("longest gap", "one before") if is_gap else ("window", "first")
        text = f"{count} ended after {stage!r} because the {window} was over. {few}"
        stages = [name for one in ended for name in one.partial.ending.stages]
        reached = [longer_ms[kind, name] for name in stages if (kind, name) in longer_ms]
        if reached:
            came = f"An event that may fit came {duration_text(min(reached))} after the {since}"
            yield f"{text}{came}, outside the window."
        else:
            never = f"No event that fits {quoted(stages)} came later"
            yield f"{text}{never}, so a longer window does not help."
    elif kind is End.NOT:
        yield f"{count} ended after {stage!r} because {wanted} came, which must not."
    elif kind is End.UNTIL:
        yield f"{count} ended after {stage!r} because the condition of until() held."
    elif kind is End.INPUT:
        waits = "waits" if is_one else "wait"
        yield f"{count} still {waits} for {wanted}: no event that fits came. {few}".rstrip()
    elif kind is End.SKIP:
        yield f"{count} {were} dropped by the skip strategy, after a match: noSkip() keeps all."
    elif kind is End.HELD:
        yield (
            f"{count} became a match that is held back: under a skip strategy a match waits for "
            "partial matches that began earlier. A window ends these."
        )
    elif kind is End.LIMIT:
        yield f"{count} {were} dropped because there were too many: see maxPartialMatches."


def _too_few(facts: Facts, stage: str, ended: list[Beginning]) -> str:
    needs = facts.stages[stage]
    most = max(len(one.partial.events[stage]) for one in ended)
    return f"{stage!r} needs {needs} events, the closest had {most}. " if most < needs else ""


def _about_input(facts: Facts) -> Iterator[str]:
    late, nulls = facts.input.get("late", 0), facts.input.get("without a time", 0)
    if late:
        yield f"{counted(late, 'event')} came too late, behind the watermark, and took no part."
    if nulls:
        yield f"{counted(nulls, 'event')} without a time: left out."
    keyless = facts.input.get("without a key", 0)
    if keyless:
        yield f"{counted(keyless, 'event')} with a null key, which is a key like others."
    if not facts.has_key and facts.ended:
        yield "There is no key, so all events are one sequence: is one per user or device meant?"
