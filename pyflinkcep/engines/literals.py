# SPDX-License-Identifier: Apache-2.0
"""
Which of many literals are in which of many texts: all of them at once.

Specifies ``kernel/src/base/literals.c``; change them together.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from pyflinkcep.kernel.module import compiled_module, naming_memory_errors

Shorts = np.ndarray[Any, np.dtype[np.int32]]


class LiteralTest(NamedTuple):
    """Whether a text has a literal, which is not empty: somewhere, at its ends, or as a whole."""

    literal: str
    begins: bool  # Whether it has to be at the beginning
    ends: bool  # Whether it has to be at the end

    def holds(self, text: str) -> bool:
        """Whether a text has the literal."""
        if self.begins and self.ends:
            return text == self.literal
        if self.begins:
            return text.startswith(self.literal)
        return text.endswith(self.literal) if self.ends else self.literal in text


def literal_hits(
    tests: Sequence[LiteralTest], data: bytes | memoryview, ends: np.ndarray[Any, Any]
) -> list[Shorts]:
    """
    Return for each test the numbers of the texts for which it holds, in order.

    The texts are in UTF-8, one after another; `ends` says where each ends.
    """
    module = compiled_module()
    if module is not None:
        with naming_memory_errors("literals are looked for"):
            found = module.literals(
                data,
                np.ascontiguousarray(ends, np.int64),
                tuple(test.literal.encode(errors="surrogatepass") for test in tests),
                bytes(test.begins + 2 * test.ends for test in tests),
            )
        if found is not None:
            bounds, values = np.frombuffer(found[0], np.int64), np.frombuffer(found[1], np.int32)
            return np.split(values, bounds[:-1]) if tests else []
    starts = [0, *ends.tolist()]
    texts = [bytes(data[begin:end]).decode() for begin, end in pairwise(starts)]
    return [
        np.array([number for number, text in enumerate(texts) if test.holds(text)], np.int32)
        for test in tests
    ]
