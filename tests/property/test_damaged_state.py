# SPDX-License-Identifier: Apache-2.0
"""Damaged state of a stream ends in a clear error, whatever is damaged and whoever reads it."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from pyflinkcep import Pattern
from pyflinkcep.errors import CepError
from pyflinkcep.spark.state import bucket_state
from pyflinkcep.spark.state.pages import seal, unseal
from tests.unit.spark.worker.buckets import Bucket, SpyStorage, name_is

pytestmark = pytest.mark.usefixtures("each_path")

FLIPS = int(os.environ.get("DAMAGED_STATES", "240")) // 4

Value = tuple[bytes, Callable[[SpyStorage, bytes], None]]
"""A value of state, and what replaces it."""


def bucket(storage: SpyStorage | None = None) -> Bucket:
    """Return a bucket with a pattern whose partial matches grow."""
    pattern = Pattern.begin("a").where(name_is("a")).followedBy("b").where(name_is("b")).oneOrMore()
    pattern = pattern.followedBy("c").where(name_is("c")).within(timedelta(milliseconds=500))
    return Bucket(pattern, storage=storage or SpyStorage(), delay_ms=20)


def filled(monkeypatch: pytest.MonkeyPatch, is_small: bool) -> SpyStorage:
    """Return state of many keys: in the index alone, or in pages and segments of their own."""
    if not is_small:
        for limit in ("_LARGE_PAGE", "_LARGE_COMMON", "_LARGE_RECENT"):
            monkeypatch.setattr(bucket_state, limit, 1500)
        monkeypatch.setattr(bucket_state, "_SMALL_COMMON", 100)
    written = bucket()
    choose = random.Random(5)
    for at in range(0, 200, 40):
        written.batch(
            [
                {
                    "key": f"k{choose.randrange(12)}",
                    "ts": at + n,
                    "id": n,
                    "name": choose.choice("abbd"),
                }
                for n in range(40)
            ]
        )
    return written.storage


def values(storage: SpyStorage) -> Iterator[Value]:
    """Return each value of state, and how to replace it."""
    index = storage.read_index()
    assert index is not None
    yield index, lambda to, data: to.write_index(data)
    for page, data in storage.all_pages().items():
        yield data, lambda to, data, page=page: to.write_page(page, data)  # type: ignore[misc]
    for number, data in storage.all_segments().items():
        yield data, lambda to, data, number=number: to.write_segment(number, data)  # type: ignore[misc]


def damage(data: bytes, choose: random.Random) -> bytes:
    """Return bytes with some of them changed, left out or put in."""
    start = choose.randrange(len(data))
    kind = choose.randrange(4)
    if kind == 0:
        return data[:start]
    if kind == 1:
        return data[:start] + choose.randbytes(choose.randrange(1, 9)) + data[start:]
    end = start + (1 if kind == 2 else choose.randrange(1, 20))
    return data[:start] + choose.randbytes(len(data[start:end])) + data[end:]


def outcome(storage: SpyStorage) -> str | None:
    """Read all of the state; return the error's text, None if there is none."""
    try:
        read = bucket(storage)
        read.batch([{"key": f"k{n}", "ts": 400 + n, "id": n, "name": "b"} for n in range(12)])
        read.close()
    except CepError as error:
        return str(error)
    return None


@pytest.mark.parametrize("is_small", [True, False], ids=["index", "pages"])
def test_sealed_state_is_refused_whatever_is_damaged(
    monkeypatch: pytest.MonkeyPatch, is_small: bool
) -> None:
    """A damaged value is an error with the pattern, the key groups and what to do."""
    storage, choose = filled(monkeypatch, is_small), random.Random(1)
    found = list(values(storage))
    assert (len(found) > 4) is not is_small
    assert outcome(storage.copy()) is None
    for _ in range(FLIPS):
        data, replace = choose.choice(found)
        changed = damage(data, choose)
        if changed == data:
            continue
        copy = storage.copy()
        replace(copy, changed)
        said = outcome(copy)

        assert said is not None
        assert said.startswith("pattern a → b+ → c, ")
        assert "key group" in said
        assert "Hint: " in said


@pytest.mark.parametrize("is_small", [True, False], ids=["index", "pages"])
def test_forged_state_ends_the_job_at_worst(
    monkeypatch: pytest.MonkeyPatch, is_small: bool
) -> None:
    """Values damaged before they were sealed give a clear error or an answer: no crash, no hang."""
    storage, choose = filled(monkeypatch, is_small), random.Random(2)
    refused = 0
    for _ in range(FLIPS):
        data, replace = choose.choice(list(values(storage)))
        copy = storage.copy()
        replace(copy, seal(damage(unseal(data), choose)))
        refused += outcome(copy) is not None

    assert refused > FLIPS / 3
