# SPDX-License-Identifier: Apache-2.0
"""Operator state as bytes: complete, versioned, and refused where it does not fit."""

from __future__ import annotations

import gzip
import json
import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pyflinkcep import AfterMatchSkipStrategy as Skip
from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.engines.flink.operator import CepOperator, KeyedCepOperator
from pyflinkcep.engines.flink.stored_state import STATE_FORMAT, pack, restore, snapshot, unpack
from pyflinkcep.errors import CepError, PatternChangedError, StateFormatError
from pyflinkcep.time import MAX_WATERMARK
from tests.conformance.cases import expected_rows, load
from tests.kernel_harness import KernelOperator, needs_kernel
from tests.shorthand import braces, parse
from tests.state import FOLDERS
from tests.state.operators import CaseOperator, half


class Json:
    """Events and keys as JSON."""

    def dumps(self, objects: Sequence[Any]) -> bytes:
        """Write."""
        return json.dumps(list(objects)).encode()

    def loads(self, data: bytes) -> Sequence[Any]:
        """Read."""
        loaded: list[Any] = json.loads(data)
        return loaded


class Collect:
    """An output that keeps results as text."""

    def __init__(self) -> None:
        self.results: list[str] = []

    def match(self, key: Any, timestamp: int, match: Any) -> None:
        """Keep a match."""
        self.results.append(f"{key} {timestamp} {braces(match)}")

    def timeout(self, key: Any, timestamp: int, match: Any) -> None:
        """Keep a timeout."""
        self.results.append(f"{key} {timestamp} timeout {braces(match)}")

    def late(self, key: Any, event: Any) -> None:
        """Keep a late event."""
        self.results.append(f"{key} late {event}")


def operator_for(text: str, skip: Skip | None = None) -> KeyedCepOperator:
    """Make an operator whose results are collected."""
    return KeyedCepOperator(CepOperator(NFACompiler.compile(parse(text, skip), True)), Collect())


def results(operator: KeyedCepOperator) -> list[str]:
    """Return what was collected."""
    assert isinstance(operator.output, Collect)
    return operator.output.results


def save(operator: KeyedCepOperator) -> bytes:
    """Return the state as bytes."""
    return snapshot(operator, Json(), Json())


def restored(operator: KeyedCepOperator, data: bytes) -> KeyedCepOperator:
    """Fill a new operator."""
    restore(operator, data, Json(), Json())
    return operator


PATTERN = "a -> b+ -> c within[50]"


def empty() -> KeyedCepOperator:
    """Make an operator that has seen nothing."""
    return operator_for(PATTERN, Skip.skipToFirst("a"))


def filled() -> KeyedCepOperator:
    """Make an operator with queued events, partial matches, and a match that is held back."""
    operator = empty()
    for position, event in enumerate(["a1", "a2", "b1", "c1", "x", "b2"], 1):
        operator.process_element("k", event, position)
        operator.process_element("j", event, position + 1)
    operator.advance_watermark(5)
    operator.process_element("late", "a", 2)
    return operator


def test_a_restored_operator_goes_on_as_the_old_one() -> None:
    """Queue, partial matches, waiting matches, watermark and late count are all in the bytes."""
    old = filled()
    new = restored(empty(), save(old))
    facts = (new.watermark, new.late_dropped, list(new.keys))
    results(old).clear()
    for operator in (old, new):
        operator.process_element("k", "c2", 7)
        operator.advance_watermark(MAX_WATERMARK)
    expected = [
        "k 7 {a1 b1 b2 c2}",
        f"k {MAX_WATERMARK} {{a2 b1 b2 c2}}",
        f"k {MAX_WATERMARK} {{a2 b1 c1}}",
        "k 51 timeout {a1 b1 b2}",
        "k 52 timeout {a2 b1 b2}",
        f"j {MAX_WATERMARK} {{a2 b1 c1}}",
        "j 52 timeout {a1 b1 b2}",
        "j 53 timeout {a2 b1 b2}",
    ]

    assert (facts, results(new), results(old)) == ((5, 1, ["k", "j"]), expected, expected)


def test_a_snapshot_changes_nothing() -> None:
    """Two snapshots of one operator are equal, and so is that of the restored one."""
    operator = filled()
    data = save(operator)
    copy = restored(empty(), data)

    assert (save(operator), save(copy)) == (data, data)


def test_an_empty_operator() -> None:
    """An operator that has seen nothing gives bytes that restore to nothing."""
    copy = restored(operator_for("a -> b"), save(operator_for("a -> b")))

    assert (copy.keys, copy.watermark) == ({}, -(2**63))


def test_an_unknown_version_is_refused() -> None:
    """Bytes of another format version name both versions and what to do."""
    data = bytearray(save(filled()))
    data[4] += 1
    with pytest.raises(StateFormatError) as caught:
        restored(empty(), bytes(data))

    assert (caught.value.message, bool(caught.value.hint)) == (
        f"state format {STATE_FORMAT + 1}, this release reads format {STATE_FORMAT}",
        True,
    )


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: b"PFCS",
        lambda data: b"something else entirely",
        lambda data: data[:-1],
        lambda data: data + b"x",
        lambda data: data[:20],
        lambda data: data[:12] + b"\xff\xfe" + data[14:],
        lambda data: data[:12] + b"[]" + data[14:],
    ],
    ids=["none", "magic only", "foreign", "cut", "longer", "header cut", "no text", "no JSON"],
)
def test_damaged_bytes_are_refused(damage: Any) -> None:
    """Bytes that are not what a snapshot gave are refused before anything is restored."""
    operator = empty()
    with pytest.raises(StateFormatError) as caught:
        restored(operator, damage(save(filled())))

    assert (operator.keys, bool(caught.value.hint)) == ({}, True)


def test_damaged_numbers_are_refused() -> None:
    """A section of numbers that ends too soon is an error of the format."""
    header, (numbers, events, keys) = unpack(save(filled()))
    data = pack(header, [numbers[:-8], events, keys])

    with pytest.raises(StateFormatError):
        restored(empty(), data)


def test_random_flips_and_cuts() -> None:
    """Whatever is changed, a restore is refused by one error or goes on; it never hangs."""
    data, draw = save(filled()), random.Random(8)
    refused, examples = 0, int(os.environ.get("DAMAGED_STATES", "1000"))
    for _ in range(examples):
        damaged = bytearray(data)
        for _ in range(draw.choice([1, 1, 2, 8])):
            damaged[draw.randrange(len(damaged))] ^= 1 << draw.randrange(8)
        if draw.random() < 0.2:
            del damaged[draw.randrange(len(damaged)) :]
        operator = empty()
        try:
            restored(operator, bytes(damaged))
        except (StateFormatError, PatternChangedError):
            assert operator.keys == {}
            refused += 1
            continue
        try:
            operator.process_element("k", "c2", 7)
            operator.advance_watermark(60)
            assert save(operator)
        except CepError:
            continue

    assert refused > examples // 2


def test_a_header_without_its_fields_is_refused() -> None:
    """A header that lacks what a snapshot writes is an error of the format."""
    _, sections = unpack(save(filled()))

    with pytest.raises(StateFormatError):
        restored(empty(), pack({}, sections))


def test_a_changed_pattern_is_refused() -> None:
    """A pattern that lacks a state the bytes name is an error that shows both, in Flink's words."""
    with pytest.raises(PatternChangedError) as caught:
        restored(operator_for("a -> d+ -> c within[50]"), save(filled()))

    assert (
        caught.value.message.startswith("State b does not exist in the NFA. "),
        caught.value.hint,
    ) == (True, "restore with the pattern that the state was written for")


def test_sections_round_trip() -> None:
    """What was packed is unpacked."""
    header, sections = unpack(pack({"k": [1, None]}, [b"", b"ab", b"\x00" * 9]))

    assert (header, sections) == ({"k": [1, None]}, [b"", b"ab", b"\x00" * 9])


# --- today's code reads the operator snapshots of every state format, and goes on as Flink does


CASES = {case["id"]: case for case in load("operator_cases")}


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
@pytest.mark.parametrize("kernel", [False, pytest.param(True, marks=needs_kernel)])
def test_a_stored_snapshot_goes_on(kernel: bool, folder: Path) -> None:
    """The first half's results and those after the restored snapshot are what Flink recorded."""
    with gzip.open(folder / "operators.jsonl.gz", "rt") as lines:
        snapshots = {row["id"]: bytes.fromhex(row["snapshot"]) for row in map(json.loads, lines)}
    actual, expected = {}, {}

    for name, data in snapshots.items():
        case = CASES[name]
        first, rest = CaseOperator(case), CaseOperator(case)
        first.feed(case["items"][: half(case)])
        rest.restore(data)
        if kernel:
            rules: Any = KernelOperator(rest.operator.operator)
            rest.operator.operator = rules
        rest.feed(case["items"][half(case) :])
        rest.close()
        for kind in ("match", "timeout", "late"):
            rest.found[kind][:0] = first.found[kind]
            actual[name, kind], expected[name, kind] = rest.results(kind), expected_rows(case, kind)

    assert len(snapshots) > 150
    assert actual == expected
