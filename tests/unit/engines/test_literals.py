# SPDX-License-Identifier: Apache-2.0
"""Many literals are found in many texts at once."""

from __future__ import annotations

import random

import numpy as np
import pytest

from pyflinkcep.engines import literals
from pyflinkcep.engines.literals import LiteralTest, literal_hits
from tests.seeds import each_seed


def _encoded(texts: list[str]) -> tuple[bytes, np.ndarray]:
    parts = [text.encode() for text in texts]
    return b"".join(parts), np.cumsum([*map(len, parts)], dtype=np.int64)


@pytest.mark.parametrize("plain", [False, True])
@each_seed(60)
def test_all_that_is_there_is_found(
    seed: int, plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each literal is found in the texts that have it where it has to be, once for each."""
    if plain:
        monkeypatch.setattr(literals, "compiled_module", lambda: None)
    rng = random.Random(seed)
    letters = rng.choice(["ab", "abc", "aé€𝄞"])

    def text(most: int) -> str:
        return "".join(rng.choice(letters) for _ in range(rng.randint(0, most)))

    tests = [LiteralTest(text(4) or "a", rng.random() < 0.4, rng.random() < 0.4) for _ in range(12)]
    texts = [text(9) for _ in range(30)]
    found = literal_hits(tests, *_encoded(texts))

    assert [own.tolist() for own in found] == [
        [n for n, one in enumerate(texts) if test.holds(one)] for test in tests
    ]


def test_nothing_to_find() -> None:
    """Without literals or texts there is nothing."""
    assert literal_hits([], *_encoded(["a"])) == []
    assert [
        own.tolist() for own in literal_hits([LiteralTest("a", False, False)], *_encoded([]))
    ] == [[]]
    empty = literal_hits([LiteralTest("a", False, False)], *_encoded(["", "a", ""]))
    assert [own.tolist() for own in empty] == [[1]]
