# SPDX-License-Identifier: Apache-2.0
"""
Dewey numbers: the versions that distinguish the runs sharing one buffer.

Specifies ``kernel/src/flink/version.c``; they must be changed together.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from pyflinkcep.errors import InvalidArgumentError


@attrs.define(eq=False, repr=False)
class DeweyNumber:
    """
    A version such as ``1.0.2``: one digit for each step that a run took.

    Immutable. Make one with :meth:`of`, and derive others from it.

    Ports ``org.apache.flink.cep.nfa.DeweyNumber`` (Flink 2.3.0).
    Differs from Flink: numbers share their prefixes instead of copying them, so a loop over `n`
    events holds `n` digits instead of `n²`.

    Agrawal, Diao, Gyllstrom, Immerman: Efficient Pattern Matching over Event Streams,
    SIGMOD 2008, section 4.2 (the versioned match buffer of SASE+).

    >>> DeweyNumber.of([1, 0]).increase(2).add_stage()
    DeweyNumber('1.2.0')
    """

    parent: DeweyNumber | None  # The number without its last digit; None for a number of one digit
    digit: int  # The last digit
    length: int  # The number of digits
    code: int  # A hash of all digits
    root: int  # The first digit, different for each start of a match

    @classmethod
    def of(cls, digits: Iterable[int]) -> DeweyNumber:
        """Make a number from its digits, at least one."""
        number: DeweyNumber | None = None
        for digit in digits:
            number = cls.following(number, digit)
        if number is None:
            raise InvalidArgumentError("a Dewey number without digits", "pass at least one digit")
        return number

    @classmethod
    def following(cls, parent: DeweyNumber | None, digit: int) -> DeweyNumber:
        """Make the number with one more digit than `parent`."""
        if parent is None:
            return cls(None, digit, 1, hash((0, digit)), digit)
        return cls(parent, digit, parent.length + 1, hash((parent.code, digit)), parent.root)

    @property
    def digits(self) -> tuple[int, ...]:
        """The digits, first to last."""
        found = []
        number: DeweyNumber | None = self
        while number is not None:
            found.append(number.digit)
            number = number.parent
        return tuple(reversed(found))

    def increase(self, times: int = 1) -> DeweyNumber:
        """Return the number with the last digit raised by `times`."""
        return self.following(self.parent, self.digit + times) if times else self

    def add_stage(self) -> DeweyNumber:
        """Return the number with a digit 0 appended."""
        return self.following(self, 0)

    def is_compatible_with(self, other: DeweyNumber) -> bool:
        """
        Whether a run of this version may walk an edge of version `other`.

        True if `other` is a proper prefix of this number, or has the same length, the same digits
        before the last, and a last digit that is not larger.
        """
        number: Any = self.parent
        if number is other:  # by far the most frequent case
            return True
        longer = self.length - other.length
        if longer <= 0:
            return longer == 0 and self.digit >= other.digit and _same(number, other.parent)
        for _ in range(longer - 1):
            number = number.parent
        return number.code == other.code and _same(number, other)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeweyNumber) and _same(self, other)

    def __hash__(self) -> int:
        return self.code

    def __reduce__(self) -> tuple[Any, ...]:
        return DeweyNumber.of, (self.digits,)

    def __repr__(self) -> str:
        return f"DeweyNumber({str(self)!r})"

    def __str__(self) -> str:
        return ".".join(map(str, self.digits))


def _same(left: DeweyNumber | None, right: DeweyNumber | None) -> bool:
    """Compare two numbers from the end, until they differ or share the rest."""
    while left is not right:
        if left is None or right is None or left.code != right.code or left.digit != right.digit:
            return False
        left, right = left.parent, right.parent
    return True
