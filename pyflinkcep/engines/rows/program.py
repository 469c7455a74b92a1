# SPDX-License-Identifier: Apache-2.0
"""
PATTERN as a program for a machine that tries alternatives in order of preference.

The machine has a position in the program and a row. It continues with the next instruction unless
told otherwise; if an instruction fails, it goes back to the last SPLIT with an untried alternative.

========================  =====================================================================
TAKE variable, hidden     map the row to the variable if its condition holds, and go to the next
                          row; else fail. `hidden` rows are left out of ALL ROWS PER MATCH.
SPLIT preferred, other    go on at `preferred`, and if that fails at `other`
JUMP target               go on at `target`
START, END                fail unless the row is the first of the partition, or after its last
MARK loop                 a round of a loop begins
CHECK loop, target        if no row was taken since MARK, go on at `target`, or fail if it is -1
ACCEPT                    a match
========================  =====================================================================

A quantifier is expanded: ``A{2,4}`` is *A A (A (A)?)?*. MARK and CHECK are only around parts that
may match no row, since such a round is the last one: it ends a loop with a greatest number of
rounds, and within the least number it counts for all of them; beyond it, ``*`` and ``+`` fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from itertools import permutations
from math import factorial

import attrs

from pyflinkcep.errors import NotSupportedError
from pyflinkcep.match_recognize.tokens import Source
from pyflinkcep.match_recognize.tree import (
    Alternation,
    Anchor,
    Concatenation,
    Exclusion,
    Part,
    Permutation,
    Quantified,
    Variable,
    parts,
)

_MOST_INSTRUCTIONS = 100_000


class Op(IntEnum):
    """The operation of an instruction."""

    TAKE = 0
    SPLIT = 1
    JUMP = 2
    START = 3
    END = 4
    MARK = 5
    CHECK = 6
    ACCEPT = 7


Instruction = tuple[Op, int, int]
"""An opcode and its two operands; 0 for unused ones."""


@attrs.frozen(eq=False)
class Program:
    """A pattern, compiled."""

    code: tuple[Instruction, ...]  # The instructions; variables are numbers
    variables: tuple[str, ...]  # The variables by number
    loops: int  # The greatest nesting of loops with MARK and CHECK


def compile_pattern(
    pattern: Part, variables: Sequence[str], source: Source, span: tuple[int, int]
) -> Program:
    """Compile a pattern."""
    _check_bounds(pattern, source)
    size = _size(pattern)
    if size > _MOST_INSTRUCTIONS:
        raise source.error(
            f"PATTERN has {size} steps when quantifiers and PERMUTE are expanded, "
            f"more than {_MOST_INSTRUCTIONS}",
            "use smaller numbers, or * with a condition on COUNT",
            *span,
            NotSupportedError,
        )
    compiler = _Compiler({name: number for number, name in enumerate(variables)})
    compiler.part(pattern)
    compiler.add(Op.ACCEPT)
    return Program(tuple(compiler.code), tuple(variables), compiler.deepest)


def _check_bounds(pattern: Part, source: Source) -> None:
    for part in parts(pattern):
        if isinstance(part, Quantified) and part.high == 0:
            raise source.error(
                f"{part.part}{part.written}: expected at least 1 as the greatest number of times",
                "leave it out of PATTERN, or write ? for none or one",
                *part.span,
            )


def _size(part: Part) -> int:
    """Return the approximate number of instructions of a part."""
    if isinstance(part, Variable | Anchor):
        return 1
    if isinstance(part, Exclusion):
        return _size(part.part)
    if isinstance(part, Quantified):
        rounds = max(part.low + 1, part.high or 0)
        return rounds * (_size(part.part) + 4)
    inner = sum(map(_size, part.parts)) + 2 * len(part.parts)
    return inner * factorial(len(part.parts)) if isinstance(part, Permutation) else inner


def _may_be_empty(part: Part) -> bool:
    """Whether a part may match no row."""
    if isinstance(part, Variable):
        return False
    if isinstance(part, Anchor):
        return True
    if isinstance(part, Exclusion):
        return _may_be_empty(part.part)
    if isinstance(part, Quantified):
        return part.low == 0 or _may_be_empty(part.part)
    return (any if isinstance(part, Alternation) else all)(map(_may_be_empty, part.parts))


class _Compiler:
    def __init__(self, numbers: dict[str, int]) -> None:
        self.code: list[Instruction] = []
        self.deepest = 0
        self._numbers = numbers
        self._loops = 0
        self._hidden = 0

    def add(self, op: Op, first: int = 0, second: int = 0) -> int:
        """Add an instruction; return its index."""
        self.code.append((op, first, second))
        return len(self.code) - 1

    def part(self, part: Part) -> None:
        """Add the instructions of a part."""
        if isinstance(part, Variable):
            self.add(Op.TAKE, self._numbers[part.name], int(self._hidden > 0))
        elif isinstance(part, Anchor):
            self.add(Op.END if part.is_end else Op.START)
        elif isinstance(part, Concatenation):
            for inner in part.parts:
                self.part(inner)
        elif isinstance(part, Alternation):
            self._one_of(part.parts)
        elif isinstance(part, Permutation):
            self._one_of([Concatenation(order) for order in permutations(part.parts)])
        elif isinstance(part, Exclusion):
            self._hidden += 1
            self.part(part.part)
            self._hidden -= 1
        else:
            self._repeated(part)

    def _one_of(self, parts: Sequence[Part]) -> None:
        jumps = []
        for inner in parts[:-1]:
            split = self.add(Op.SPLIT)
            self.part(inner)
            jumps.append(self.add(Op.JUMP))
            self.code[split] = (Op.SPLIT, split + 1, len(self.code))
        self.part(parts[-1])
        for jump in jumps:
            self.code[jump] = (Op.JUMP, len(self.code), 0)

    # --- loops

    def _repeated(self, part: Quantified) -> None:
        checks, exits = [], []
        for _ in range(part.low):
            checks += self._round(part.part)
        if part.high is None:
            begin = self.add(Op.SPLIT)
            self._round(part.part)
            self.add(Op.JUMP, begin)
            exits.append(begin)
        else:
            for _ in range(part.high - part.low):
                exits.append(self.add(Op.SPLIT))
                checks += self._round(part.part)
        end = len(self.code)
        for split in exits:
            ways = (split + 1, end) if part.greedy else (end, split + 1)
            self.code[split] = (Op.SPLIT, *ways)
        for check in checks:
            self.code[check] = (Op.CHECK, self.code[check][1], end)

    def _round(self, inner: Part) -> list[int]:
        """Add a round of a loop; return the index of the CHECK that it has taken a row."""
        if not _may_be_empty(inner):
            self.part(inner)
            return []
        loop = self._loops
        self._loops += 1
        self.deepest = max(self.deepest, self._loops)
        self.add(Op.MARK, loop)
        self.part(inner)
        self._loops -= 1
        return [self.add(Op.CHECK, loop, -1)]
