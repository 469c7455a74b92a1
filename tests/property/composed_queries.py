# SPDX-License-Identifier: Apache-2.0
"""
Random composed queries, held to :mod:`tests.property.composed_reference` in every evaluation.

``python -m tests.property.composed_queries SEED COUNT`` checks COUNT of them.
"""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from pyflinkcep import CepError
from pyflinkcep.engines.choice import OUTPUTS
from pyflinkcep.errors import NotSupportedError
from pyflinkcep.sase import SaseQuery, parse
from pyflinkcep.testing import matchSase
from tests.property.composed_reference import Taken, matches

STRATEGIES = (
    "strict_contiguity",
    "partition_contiguity",
    "skip_till_next_match",
    "skip_till_any_match",
)
FEW_WORDS = 12
EVALUATIONS = ("nfa", "backtracking", "eventLists")


class Writer:
    """Writes the text of a random query."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.loops: list[str] = []
        self.singles: list[str] = []
        self.negated: list[str] = []
        self.sequences: list[list[str]] = []
        self.grouped: list[str] = []
        self.depth = 0

    def query(self) -> str:
        """Return the text of a query, which may be refused."""
        chance = self.chance
        pattern = self.group("SEQ", 2) if chance.random() < 0.85 else self.group("AND", 2)
        strategy = chance.choice(STRATEGIES)
        if not self.loops and chance.random() < 0.3:
            names = [*self.singles, *self.negated]
            parts = [names[: len(names) // 2], names[len(names) // 2 :]]
            strategy = " AND ".join(
                f"{chance.choice(STRATEGIES)}({', '.join(own)}) {{ }}" for own in parts if own
            )
        items = ["[k]"] if "partition_contiguity" in strategy or chance.random() < 0.3 else []
        items += [self.condition() for _ in range(chance.randrange(4))]
        if chance.random() < 0.1:
            items.append("[m = 1]")
        joined = "".join(f" AND {item}" for item in items)
        unit = chance.choice(["", "", "", " EVENTS"])
        if ")+" in pattern or ")*" in pattern:
            unit = " EVENTS"
        within = f" WITHIN {chance.randrange(2, 12)}{unit}" if chance.random() < 0.8 else ""
        return f"PATTERN {pattern} WHERE {strategy}{joined}{within}"

    def group(self, word: str, depth: int) -> str:
        """Return a sequence, or parts in any order."""
        most = 4 if word == "SEQ" else 2 if depth < 2 else 3
        parts = [self.part(depth) for _ in range(self.chance.randrange(2, most + 1))]
        return f"{word}({', '.join(parts)})"

    def part(self, depth: int) -> str:
        """Return a part of a sequence."""
        kind = self.chance.random()
        if kind < 0.55 or not depth:
            return self.component()
        if kind < 0.65:
            return self.negation()
        if kind < 0.8:
            inner = " | ".join(self.part(depth - 1) for _ in range(self.chance.randrange(2, 4)))
            return f"({inner}){self.chance.choice(['', '?'])}"
        word = self.chance.choice(["SEQ", "AND"])
        if kind < 0.9:
            return f"{self.group(word, depth - 1)}{self.chance.choice(['', '?'])}"
        self.depth += 1
        known = len(self.singles)
        inner = self.group(word, depth - 1)
        self.depth -= 1
        self.grouped += self.singles[known:]
        return f"{inner}{self.chance.choice(['+', '*', '{2}', '{1,2}', '{0,3}', '{2,3}'])}"

    def negation(self) -> str:
        """Return a negated component or sequence."""
        size = self.chance.choice([1, 1, 1, 2, 2, 3])
        parts = [f"{self.type()} {self.name(self.negated)}" for _ in range(size)]
        self.sequences += [self.negated[-size:]] if size > 1 else []
        return f"~({parts[0]})" if size == 1 else f"~(SEQ({', '.join(parts)}))"

    def component(self) -> str:
        """Return a component, which may be optional or a loop."""
        mark = self.chance.choice(["", "", "", "?", "?", "+", "*", "{2}", "{1,2}", "{0,2}", "{2,}"])
        if mark in ("", "?"):
            return f"{self.type()}{mark} {self.name(self.singles)}"
        return f"{self.type()}{mark} {self.name(self.loops)}[]"

    def type(self) -> str:
        """Return a type of event."""
        return self.chance.choice("ABC")

    def name(self, kind: list[str]) -> str:
        """Return a new variable."""
        name = f"v{len(self.loops) + len(self.singles) + len(self.negated)}"
        kind.append(name)
        return name

    def condition(self) -> str:
        """Return a condition."""
        chance = self.chance
        operator = chance.choice(["<", "<=", ">", "=", "<>"])
        kind = chance.random()
        if kind < 0.1:
            flag = f"{self.event()}.flag"
            forms = [flag, f"NOT {flag}", f"{flag} = TRUE", f"{flag} IS NOT TRUE"]
            return chance.choice(forms)
        if kind < 0.2:
            return f"abs({self.value()} - {self.value()}) {operator} {chance.randrange(3)}"
        if kind < 0.25:
            return f"coalesce({self.value()}, {self.value()}, 9) {operator} {self.value()}"
        if kind < 0.3:
            test = f"{self.event()}.flag OR {self.value()} {operator} 1"
            return f"CASE WHEN {test} THEN {self.value()} ELSE {self.value()} END > 1"
        left, right = self.value(), chance.choice([self.value(), str(chance.randrange(4))])
        if chance.random() < 0.2:
            return f"({left} {operator} {right} OR {self.value()} > {chance.randrange(3)})"
        return f"{left} {operator} {right}"

    def value(self) -> str:
        """Return a value of an event."""
        chance = self.chance
        variable = chance.choice([*self.singles, *self.singles, *self.loops, *self.negated])
        if variable in self.loops and chance.random() < 0.4:
            over = ["max({}[].x)", "count({}[])", "sum({}[..i-1].x)"]
            return chance.choice(over).format(variable)
        return f"{self.event(variable)}.{chance.choice(['x', 'x', 'p.y'])}"

    def event(self, variable: str = "") -> str:
        """Return one event of a variable."""
        variable = variable or self.chance.choice([*self.singles, *self.loops, *self.negated])
        if variable not in self.loops:
            is_before = variable in self.grouped and self.chance.random() < 0.3
            return f"{variable}[i-1]" if is_before else variable
        return f"{variable}{self.chance.choice(['[1]', '[i]', '[i-1]', '[LEN]', '[]'])}"


class ManyNegations(Writer):
    """Writes queries most of which have negated components, and conditions about these."""

    def part(self, depth: int) -> str:
        """Return a part of a sequence."""
        return self.negation() if self.chance.random() < 0.3 else super().part(depth)

    def condition(self) -> str:
        """Return a condition."""
        if self.chance.random() < 0.5 and self.sequences:
            one, other, *_ = self.chance.sample(self.chance.choice(self.sequences), 2)
            third = self.chance.choice(["0", "1", "0", self.value()])
            return f"{one}.x {self.chance.choice(['<', '=', '>'])} {other}.x + {third}"
        return super().condition()


class SinglesOnly(Writer):
    """Writes queries without loops, mostly under one strategy: these may be patterns."""

    def query(self) -> str:
        """Return the text of a query."""
        text = super().query()
        for strategy in STRATEGIES:
            text = text.replace(f"WHERE {strategy}", "WHERE skip_till_any_match")
        return text

    def component(self) -> str:
        """Return a component, which may be optional."""
        return f"{self.type()}{self.chance.choice(['', '', '?'])} {self.name(self.singles)}"


def events(chance: random.Random, size: int) -> list[dict[str, Any]]:
    """Return random events in order of time."""
    time, rows = 0, []
    for number in range(size):
        time += chance.choice([0, 1, 1, 2])
        rows.append(
            {
                "id": number, "ts": time, "type": chance.choice("AABBCCD"),
                "k": chance.choice([0, 0, 1, None]), "x": chance.choice([None, 0, 1, 2, 3]),
                "m": chance.choice([1, 1, 1, 0]), "flag": chance.choice([True, False, None]),
                "p": chance.choice([None, {"y": chance.randrange(4)}]),
            }
        )  # fmt: skip
    return rows


def queries(chance: random.Random, writer: type[Writer] = Writer) -> Iterator[SaseQuery]:
    """Yield random queries that are not refused."""
    while True:
        text = writer(chance).query()
        try:
            query = parse(text)
        except CepError:
            continue
        assert parse(repr(query)) == query, text
        if len(query.words()) > FEW_WORDS and chance.random() < 0.9:
            continue  # the cost of a query is that of all its words
        yield query


def taken(found: list[dict[str, Any]]) -> Counter[Taken]:
    """Return matches as the reference has them."""
    return Counter(_taken(match) for match in found)


def _taken(match: dict[str, Any]) -> Taken:
    own = [(name, tuple(e["id"] for e in part)) for name, part in match.items() if part]
    return tuple(sorted(own, key=lambda part: part[1]))


def check(query: SaseQuery, rows: list[dict[str, Any]]) -> int:
    """Hold a query to the reference in every evaluation; return how many matches it has."""
    expected = Counter(matches(query, rows))
    for evaluation in EVALUATIONS:
        try:
            found = matchSase(query, rows, "ts", evaluation=evaluation)
        except NotSupportedError:
            assert evaluation == "eventLists"
            continue
        assert taken(found) == expected, (evaluation, query, rows, taken(found), expected)
    compressed = matchSase(query, rows, "ts", compressed=True)
    assert compressed.count() == sum(expected.values()), (query, rows)
    assert taken(compressed.unpack()) == expected, (query, rows)
    check_firsts(query, rows, set(expected))
    name = query.variables[0]
    total = sum(
        rows[at]["x"] or 0 for match in expected for v, own in match if v == name for at in own
    )
    assert (compressed.aggregate(f"sum({name}.x) AS s")["s"] or 0) == total, (query, rows)
    check_windows(query, rows, set(expected))
    return sum(expected.values())


def orders(query: SaseQuery, rows: list[dict[str, Any]]) -> dict[str, list[Taken]]:
    """
    Return the matches of each evaluation and output, whose order is one on lists and on tables.

    That of matches that merged runs list at one event depends on who merges: these are sorted.
    """
    found = {}
    table = pa.table({name: [row[name] for row in rows] for name in rows[0]})
    for evaluation in ("auto", *EVALUATIONS):
        for output in OUTPUTS:
            how: dict[str, Any] = {"evaluation": evaluation, "output": output}
            try:
                listed = list(map(_taken, matchSase(query, rows, "ts", **how)))
            except NotSupportedError:
                assert evaluation == "eventLists"
                continue
            for threads in (1, 2):
                own = list(map(_taken, matchSase(query, table, "ts", threads=threads, **how)))
                assert own == listed, (how, threads, query, rows, own, listed)
            is_merged = (evaluation, output) == ("nfa", "all")
            found[f"{evaluation} {output}"] = sorted(listed) if is_merged else listed
    return found


def check_windows(query: SaseQuery, rows: list[dict[str, Any]], expected: set[Taken]) -> None:
    """Hold the totals of windows to the matches of the reference."""
    if query.most_events is not None or query.window is None or query.looks_back:
        return
    if query.looks_ahead:
        return
    name, slide = query.variables[-1], 1 + query.window // 2
    wanted: dict[Any, list[int]] = {}
    for match in expected:
        times = [rows[at]["ts"] for _, own in match for at in own]
        first = rows[match[0][1][0]]
        key = () if query.is_global else tuple(first[attribute] for attribute in query.equal)
        own = [rows[at]["x"] or 0 for v, positions in match if v == name for at in positions]
        for start in range(-query.window, max(times) + 1):
            if start % slide == 0 and start <= min(times) and max(times) < start + query.window:
                total = wanted.setdefault((start, key), [0, 0])
                total[0] += 1
                total[1] += sum(own)
    text = f"{query!r} SLIDE {slide} RETURN sum({name}.x) AS s"
    found = {
        (row["windowStart"], tuple(row[n] for n in ([] if query.is_global else query.equal))): [
            row["count"], row["s"] or 0,
        ]
        for row in matchSase(text, rows, "ts")
    }  # fmt: skip
    assert found == wanted, (text, rows, found, wanted)


def check_firsts(query: SaseQuery, rows: list[dict[str, Any]], expected: set[Taken]) -> None:
    """Hold the outputs with one match of a start to the matches of the reference."""
    known: set[tuple[Taken, ...]] = set()
    for evaluation in EVALUATIONS[1:]:
        try:
            firsts = taken(
                matchSase(query, rows, "ts", evaluation=evaluation, output="onePerStart")
            )
            apart = taken(
                matchSase(query, rows, "ts", evaluation=evaluation, output="nonOverlapping")
            )
        except NotSupportedError:
            assert evaluation == "eventLists"
            continue
        starts = Counter(match[0][1][0] for match in firsts)
        known.add(tuple(sorted(firsts)))
        assert len(known) == 1, (evaluation, query, rows)
        assert set(firsts) <= expected, (evaluation, query, rows)
        assert starts == Counter({match[0][1][0] for match in expected}), (evaluation, query, rows)
        ended: dict[Any, int] = {}
        wanted = []
        for match in sorted(firsts, key=lambda match: match[0][1][0]):
            key = () if query.is_global else tuple(rows[match[0][1][0]][n] for n in query.equal)
            if match[0][1][0] > ended.get(key, -1) or None in key:
                wanted.append(match)
                ended[key] = max(own[-1] for _, own in match)
        assert apart == Counter(wanted), (evaluation, query, rows)


def main(seed: int, count: int) -> None:
    """Check many queries, in the kernel and without it by turns."""
    chance = random.Random(seed)
    writers = [queries(chance), queries(chance, ManyNegations)]
    answered = composed = 0
    for number in range(count):
        os.environ["PYFLINKCEP_KERNEL"] = str(number % 2)
        query = next(writers[number // 2 % 2])
        composed += query.is_composed
        answered += check(query, events(chance, chance.randrange(4, 10))) > 0
    print(f"{count} queries agree, {composed} of them composed, {answered} with matches")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
