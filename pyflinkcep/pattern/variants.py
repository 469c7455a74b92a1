# SPDX-License-Identifier: Apache-2.0
"""What a pattern could have been: other contiguities, quantifiers and skip strategies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Literal

import attrs

from pyflinkcep.errors import CepError
from pyflinkcep.pattern.aftermatch import AfterMatchSkipStrategy
from pyflinkcep.pattern.display import SHOWN, one_line
from pyflinkcep.pattern.pattern import GroupPattern, Pattern, stages_of
from pyflinkcep.pattern.stage import ConsumingStrategy, Quantifier, QuantifierProperty, Stage

Variation = Literal["contiguity", "quantifiers", "skip"]
"""What is varied of a pattern."""

_Named = Iterator[tuple[str, Stage]]
_FOLLOWING = (
    (ConsumingStrategy.NOT_NEXT, ConsumingStrategy.NOT_FOLLOW),
    (
        ConsumingStrategy.STRICT,
        ConsumingStrategy.SKIP_TILL_NEXT,
        ConsumingStrategy.SKIP_TILL_ANY,
    ),
)
_BETWEEN = {
    ConsumingStrategy.STRICT: "consecutive()",
    ConsumingStrategy.SKIP_TILL_NEXT: "",
    ConsumingStrategy.SKIP_TILL_ANY: "allowCombinations()",
}


def variants(pattern: Pattern, what: Variation) -> Iterator[tuple[str, Pattern]]:
    """
    Yield the patterns that differ in one thing, each with what is written instead.

    Those inside of ``oneOf`` and ``allOf`` stay; some may be refused when they are compiled.

    Examples
    --------
    >>> pattern = Pattern.begin("a").followedBy("b")
    >>> [(name, repr(made)) for name, made in variants(pattern, "contiguity")]
    [("next('b')", 'Pattern(a ⇒ b)'), ("followedByAny('b')", 'Pattern(a ⇢ b)')]
    """
    if what == "skip":
        yield from _with_other_skips(pattern)
    else:
        yield from _with_other_stages(
            pattern, _contiguities if what == "contiguity" else _quantifiers
        )


def _with_other_stages(
    pattern: Pattern, change: Callable[[Stage, Stage | None], _Named]
) -> Iterator[tuple[str, Pattern]]:
    parts = pattern.stages()
    before = None
    for at, part in enumerate(parts):
        own = part._stage
        made = [(name, attrs.evolve(part, stage=stage)) for name, stage in change(own, before)]
        if isinstance(part, GroupPattern) and part.combination is None:
            for name, inner in _with_other_stages(part.getParts()[0], change):
                stage = attrs.evolve(own, inside=stages_of(inner))
                made.append((name, attrs.evolve(part, stage=stage, parts=(inner,))))
        for name, one in made:
            if not parts[at + 1 :] or _may_follow(parts[at + 1]._stage, one._stage):
                yield name, _joined([*parts[:at], one, *parts[at + 1 :]])
        before = own


def _may_follow(stage: Stage, before: Stage) -> bool:
    """Whether the methods of a pattern would let a stage follow another."""
    with suppress(CepError):
        if stage.is_absent:
            before.check_absence_may_follow(stage.name)
        if stage.quantifier.hasProperty(QuantifierProperty.OPTIONAL):
            stage.check_optional(before)
        return True
    return False


def _joined(parts: list[Pattern], **changes: Any) -> Pattern:
    """Return the pattern of stages, each linked to the one before it."""
    made = None
    for part in parts:
        made = attrs.evolve(part, previous=made, **changes)
    assert made is not None
    return made


def _name(stage: Stage) -> str:
    return one_line([stage]) if stage.inside else repr(stage.name)


def _contiguities(stage: Stage, before: Stage | None) -> _Named:
    """Yield a stage that follows another in each other way."""
    quantifier = stage.quantifier
    for other in () if before is None else _FOLLOWING[not stage.is_absent]:
        if other is not quantifier.consumingStrategy:
            changed = attrs.evolve(quantifier, consumingStrategy=other)
            yield f"{SHOWN[other].method}({_name(stage)})", attrs.evolve(stage, quantifier=changed)


def _quantifiers(stage: Stage, before: Stage | None) -> _Named:
    """Yield a stage with each other quantifier that may stand on it."""
    for words, change in () if stage.is_absent else _changes(stage, before):
        with suppress(CepError):
            yield f"{words} on {_name(stage)}", change()


def _changes(stage: Stage, before: Stage | None) -> Iterator[tuple[str, Callable[[], Stage]]]:
    quantifier = stage.quantifier
    is_optional = quantifier.hasProperty(QuantifierProperty.OPTIONAL)

    def kept(changed: Stage) -> Stage:
        """Return a stage as optional if it was."""
        properties = changed.quantifier.properties | {QuantifierProperty.OPTIONAL}
        own = attrs.evolve(changed.quantifier, properties=properties)
        return attrs.evolve(changed, quantifier=own) if is_optional else changed

    def without(property_: QuantifierProperty) -> Stage:
        own = attrs.evolve(quantifier, properties=quantifier.properties - {property_})
        return attrs.evolve(stage, quantifier=own)

    if stage.times is None:
        yield "oneOrMore()", lambda: kept(stage.looping(1, None, "oneOrMore"))
    else:
        once = Quantifier.one(quantifier.consumingStrategy)
        yield "once", lambda: kept(attrs.evolve(stage, quantifier=once, times=None, until=None))
        if quantifier.hasProperty(QuantifierProperty.GREEDY):
            yield "without greedy()", lambda: without(QuantifierProperty.GREEDY)
        else:
            yield "greedy()", stage.greedy
        usual = attrs.evolve(quantifier, innerConsumingStrategy=ConsumingStrategy.SKIP_TILL_NEXT)
        plain = attrs.evolve(stage, quantifier=usual)
        inner = quantifier.innerConsumingStrategy
        if _BETWEEN[inner]:
            yield f"without {_BETWEEN[inner]}", lambda: plain
        if inner is not ConsumingStrategy.STRICT:
            yield "consecutive()", plain.consecutive
        is_greedy = quantifier.hasProperty(QuantifierProperty.GREEDY)
        if inner is not ConsumingStrategy.SKIP_TILL_ANY and not is_greedy:
            yield "allowCombinations()", plain.combining
    if stage.until is not None:
        yield "without until()", lambda: attrs.evolve(stage, until=None)
    if is_optional:
        yield "without optional()", lambda: without(QuantifierProperty.OPTIONAL)
    else:
        yield "optional()", lambda: stage.optional(before)


def _with_other_skips(pattern: Pattern) -> Iterator[tuple[str, Pattern]]:
    skip = AfterMatchSkipStrategy
    made: list[tuple[str, AfterMatchSkipStrategy]] = [
        ("noSkip()", skip.noSkip()),
        ("skipToNext()", skip.skipToNext()),
        ("skipPastLastEvent()", skip.skipPastLastEvent()),
    ]
    for single in (single for stage in stages_of(pattern) for single in stage.singles()):
        if not single.is_absent:
            made.append((f"skipToFirst({single.name!r})", skip.skipToFirst(single.name)))
            if single.times is not None:
                made.append((f"skipToLast({single.name!r})", skip.skipToLast(single.name)))
    for name, strategy in made:
        if strategy != pattern.getAfterMatchSkipStrategy():
            yield name, _joined(pattern.stages(), skip=strategy)
