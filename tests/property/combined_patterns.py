# SPDX-License-Identifier: Apache-2.0
"""
Random patterns with ``oneOf`` and ``allOf``, held to the patterns that they stand for.

Each alternative, each order and each choice of each repetition is written out in the place of the
group; the matches are those of all these patterns together, each as often.
``python -m tests.property.combined_patterns SEED COUNT`` checks COUNT of them.
"""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise, permutations, product

import attrs
import numpy as np

from pyflinkcep import AfterMatchSkipStrategy, CepError, Pattern
from pyflinkcep.engines.compressed.patterns import (
    CompressiblePattern,
    EventViews,
    KeyedEvents,
    PatternMatches,
)
from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.engines.flink.nfa.analysis import Relevance
from pyflinkcep.testing import NFATestHarness, OperatorTestHarness
from tests.kernel_harness import HAS_KERNEL, KernelNFAHarness
from tests.shorthand import parse

MOST_WRITTEN_OUT = 60
SKIPS = (AfterMatchSkipStrategy.skipPastLastEvent(), AfterMatchSkipStrategy.skipToNext())
ARROWS = ("->", "->", "->>", ">>")
AND = {"&": "->", "&>>": ">>", "&->>": "->>"}
HEAD = "^"
NOTS = (("!->", "!>>"), ("!>>",))
DEPTH = 2
BETWEEN = {"": "->", ":cons": ">>", ":any": "->>"}
Match = frozenset[tuple[str, tuple[str, ...]]]


@attrs.frozen
class Single:
    """A stage: its name, the letters of its events, and the calls on it."""

    name: str
    letters: str
    calls: str = ""

    def text(self, number: str = "") -> str:
        """Write it; a number tells its repetitions apart."""
        return f"{self.name}{number}[{'|'.join(self.letters)}]{self.calls}"


@attrs.frozen
class Choice:
    """A group of patterns; `bar` says how they are combined, `times` how often and how joined."""

    bar: str
    parts: tuple[Chain, ...]
    times: tuple[int, int, str] = (1, 1, "")

    def text(self) -> str:
        """Write it as one group."""
        fewest, most, between = self.times
        calls = "" if most == 1 else f"{{{most}}}{between}"
        calls += "?" if fewest == 0 else ""
        return f"({self.bar} {f' {self.bar} '.join(map(whole, self.parts))}){calls}"


Chain = tuple[tuple[str, Single | Choice], ...]
"""Stages and groups, each with the arrow before it."""


def whole(chain: Chain) -> str:
    """Write a chain with its groups."""
    return _joined([(arrow, item.text()) for arrow, item in chain])


def _joined(items: Sequence[tuple[str, str]]) -> str:
    return " ".join(f"{arrow} {text}" if n else text for n, (arrow, text) in enumerate(items))


Written = tuple[tuple[str, Single], ...]


def written_out(chain: Chain) -> Iterator[Written]:
    """Yield the chains without groups that it stands for."""
    most = MOST_WRITTEN_OUT + 1
    ways = [
        list(islice(_ways(arrow if n else HEAD, item), most))
        for n, (arrow, item) in enumerate(chain)
    ]
    for chosen in product(*ways):
        yield tuple(stage for part in chosen for stage in part)


def _ways(arrow: str, item: Single | Choice) -> Iterator[Written]:
    if isinstance(item, Single):
        yield ((arrow, item),)
        return
    fewest, most, between = item.times
    if fewest == 0:
        yield ()
    once = list(islice(_once(item), MOST_WRITTEN_OUT + 1))
    for chosen in product(once, repeat=most):
        found: list[tuple[str, Single]] = []
        for number, part in enumerate(chosen):
            found += _led_by(BETWEEN[between] if number else arrow, part)
        yield tuple(found)


def _once(item: Choice) -> Iterator[Written]:
    inner = [list(islice(written_out(part), MOST_WRITTEN_OUT + 1)) for part in item.parts]
    if item.bar == "|":
        for part in inner:
            yield from part
        return
    for order in permutations(inner):
        for chosen in product(*order):
            found: list[tuple[str, Single]] = []
            for number, part in enumerate(chosen):
                found += _led_by(AND[item.bar], part) if number else part
            yield tuple(found)


def _led_by(arrow: str, part: Written) -> Written:
    """Return a part after another one; what is left if its head is missing has its own arrow."""
    return ((arrow, part[0][1]), *part[1:]) if part and part[0][0] == HEAD else part


def plain_text(written: Written) -> str:
    """Write a chain whose stages may come several times."""
    return _joined([(arrow, stage.text(f"_{n}")) for n, (arrow, stage) in enumerate(written)])


class Writer:
    """Makes random chains."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.names = 0

    def chain(self, depth: int, most: int) -> Chain:
        """Return a chain that begins with no NOT stage."""
        items: list[tuple[str, Single | Choice]] = []
        size = self.chance.randrange(1, most + 1)
        group = self.chance.randrange(size) if depth == DEPTH else -1
        for number in range(size):
            arrow = self.chance.choice((*ARROWS, *NOTS[number + 1 == size]) if number else ARROWS)
            if arrow.startswith("!") and number != group:
                items.append((arrow, self.single(quantified=False)))
                continue
            arrow = arrow.removeprefix("!")
            if number == group or (depth and self.chance.random() < 0.3):
                items.append((arrow, self.choice(depth - 1)))
            else:
                items.append((arrow, self.single()))
        return tuple(items)

    def single(self, quantified: bool = True) -> Single:
        """Return a stage."""
        self.names += 1
        letters = "".join(sorted(self.chance.sample("abc", self.chance.choice([1, 1, 2]))))
        calls = [*[""] * 5, "?", "+", "{2}", "{1,2}", "+:cons", "+:any", "{2}:any", "+:greedy"]
        return Single(f"s{self.names}", letters, self.chance.choice(calls) if quantified else "")

    def choice(self, depth: int) -> Choice:
        """Return a group of patterns."""
        bar = self.chance.choice(["|", "|", "|", *AND])
        parts = tuple(self.chain(depth, 2) for _ in range(self.chance.randrange(1, 4)))
        times = [*[(1, 1, "")] * 4, (0, 1, ""), (2, 2, ""), (2, 2, ":cons"), (2, 2, ":any")]
        return Choice(bar, parts, self.chance.choice(times))


def matches_of(pattern: Pattern, events: str, kernel: bool) -> Counter[Match]:
    """Return the matches on events, a letter and a number each."""
    harness = KernelNFAHarness(pattern) if kernel else NFATestHarness(pattern)
    found: Counter[Match] = Counter()
    for time, event in enumerate(events.split(), 1):
        ready, _ = harness.advanceTime(time)
        for match in [*ready, *harness.process(event, time)]:
            taken: dict[str, list[str]] = {}
            for stage, every in match.items():
                taken.setdefault(stage.split("_")[0], []).extend(every)
            found[frozenset((stage, tuple(every)) for stage, every in taken.items())] += 1
    return found


def disagreement(seed: int) -> str | None:
    """Return what is wrong with a random pattern; an empty text if it is refused."""
    chance = random.Random(seed)
    chain = Writer(chance).chain(DEPTH, 3)
    window = chance.choice(["", "", f" within[{chance.randrange(2, 9)}]"])
    text = whole(chain) + window
    every = list(islice(written_out(chain), MOST_WRITTEN_OUT + 1))
    if len(every) > MOST_WRITTEN_OUT or not all(every) or _is_odd(chain, every):
        return ""
    events = " ".join(f"{chance.choice('aabbccx')}{n}" for n in range(chance.randrange(3, 9)))
    try:
        expected: Counter[Match] = Counter()
        for written in every:
            expected += matches_of(parse(plain_text(written) + window), events, kernel=False)
        pattern = parse(text)
        found = matches_of(pattern, events, kernel=False)
    except CepError as error:
        return "" if os.environ.get("SHOW") is None else f"refused: {text}: {error}"
    if found != expected:
        more, less = found - expected, expected - found
        return f"{seed}: {text} on {events}\n  more {shown(more)}\n  less {shown(less)}"
    skip = chance.choice([None, None, *SKIPS])
    for name, holds in (
        ("the kernel differs", _kernel_agrees),
        ("dropped events matter", _drops_nothing),
        ("the compressed count differs", _counts),
        ("stored state matters", _survives),
    ):
        if not holds(parse(text, skip), events):
            return f"{seed}: {text} {skip} on {events}: {name}"
    return None


def _kernel_agrees(pattern: Pattern, events: str) -> bool:
    if not HAS_KERNEL:
        return True
    answers = []
    for make in (NFATestHarness, KernelNFAHarness):
        harness = make(pattern, True)
        answers.append(
            [
                (harness.advanceTime(time), harness.process(event, time))
                for time, event in enumerate(events.split(), 1)
            ]
        )
    return answers[0] == answers[1]


def _counts(pattern: Pattern, events: str) -> bool:
    """Whether compressed matches are as many; a skip strategy needs them one by one."""
    if pattern.getAfterMatchSkipStrategy().isSkipStrategy():
        return True
    nfa = NFACompiler.compile(pattern)
    counted = CompressiblePattern.of(nfa, None, nfa.stages)
    shown = events.split()
    times = np.arange(1, len(shown) + 1, dtype=np.int64)
    every = KeyedEvents(times, None, np.asarray([0, len(shown)]), watermark=len(shown))
    views = EventViews(shown.__getitem__, lambda at: (), (), lambda: [0] * len(shown))
    wanted = sum(matches_of(pattern, events, kernel=False).values())
    return all(
        sum(count for _, count, _ in PatternMatches(way, every, views).totals_by_event([]))
        == wanted
        for way in (counted, attrs.evolve(counted, counter=None))
    )


def _drops_nothing(pattern: Pattern, events: str) -> bool:
    """Whether the matches are the same without the events that are said to change nothing."""
    nfa = NFACompiler.compile(pattern)
    known = sum(atom.bit for atom in nfa.atoms)
    droppable = Relevance.of(nfa, known, shows_next=True).droppable
    answers = []
    for left_out in (frozenset[int](), droppable):
        harness = OperatorTestHarness(pattern, False)
        for time, event in enumerate(events.split(), 1):
            if sum(a.bit for a in nfa.atoms if a.bit and a.function(event)) not in left_out:
                harness.processElement(event, time)
        harness.close()
        answers.append(harness.matches)
    return answers[0] == answers[1]


def _survives(pattern: Pattern, events: str) -> bool:
    """Whether the answers are the same if the state is stored and read after each event."""
    answers = []
    for stored in (False, True):
        harness = OperatorTestHarness(pattern, True)
        for time, event in enumerate(events.split(), 1):
            harness.processElement(event, time)
            harness.processWatermark(time)
            harness = harness.snapshotAndRestore() if stored else harness
        harness.close()
        answers.append((harness.matches, harness.timeouts))
    return answers[0] == answers[1]


def _is_odd(chain: Chain, every: list[Written]) -> bool:
    """
    Whether Flink does something else where a stage is optional, or repeats, than without it.

    At the end of a pattern a NOT stage looks at later events, unless an optional stage follows; a
    NOT stage after a loop looks at the events of the loop; and a greedy loop lets go of an event
    only for the stage after it.
    """
    if ":greedy" in whole(chain) and ")?" in whole(chain):
        return True
    pairs = pairwise(chain)
    if any(is_twice(item) and arrow == "!->" for (_, item), (arrow, _) in pairs):
        return True
    return may_end_early(chain) and any(written[-1][0][0] == "!" for written in every)


def may_end_early(chain: Chain) -> bool:
    """Whether the last item of a chain may be missing."""
    item = chain[-1][1]
    inner = () if isinstance(item, Single) else item.parts
    return may_be_empty(item) or any(map(may_end_early, inner))


def is_twice(item: Single | Choice) -> bool:
    """Whether an item is a group that repeats, or ends with one."""
    if isinstance(item, Single):
        return False
    return item.times[1] > 1 or any(is_twice(part[-1][1]) for part in item.parts)


def may_be_empty(item: Single | Choice) -> bool:
    """Whether an item may match nothing."""
    if isinstance(item, Single):
        return item.calls == "?"
    empty = (all(may_be_empty(inner) for _, inner in part) for part in item.parts)
    return item.times[0] == 0 or any(empty)


def shown(matches: Counter[Match]) -> str:
    """Return matches as text."""
    return str([(sorted(match), count) for match, count in matches.items()])


def main() -> None:
    """Check many patterns."""
    first, count = map(int, sys.argv[1:])
    refused = wrong = 0
    for seed in range(first, first + count):
        said = disagreement(seed)
        refused += said == ""
        if said:
            wrong += 1
            print(said, flush=True)
    print(f"{count} patterns, {refused} refused or too large, {wrong} disagree")


if __name__ == "__main__":
    main()
