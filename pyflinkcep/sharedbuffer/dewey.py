# SPDX-License-Identifier: Apache-2.0
"""Dewey numbers: the versions that tell apart the runs sharing one buffer."""

from __future__ import annotations

from pyflinkcep.errors import InvalidArgumentError

__all__ = ["DeweyNumber"]


_new = tuple.__new__


class DeweyNumber(tuple[int, ...]):
    """
    A version such as ``1.0.2``: one digit for each step that a run took.

    Notes
    -----
    Ports ``org.apache.flink.cep.nfa.DeweyNumber`` (Flink 2.3.0). A tuple of its digits, since
    versions are made and compared for every event.

    References
    ----------
    Agrawal, Diao, Gyllstrom, Immerman: Efficient Pattern Matching over Event Streams,
    SIGMOD 2008, section 4.2 (the versioned match buffer of SASE+).

    Examples
    --------
    >>> DeweyNumber.from_string("1.0").increase(2).add_stage()
    DeweyNumber('1.2.0')
    """

    __slots__ = ()

    @classmethod
    def from_string(cls, text: str) -> DeweyNumber:
        """Read ``"1.0.2"``; raise InvalidArgumentError for anything else."""
        try:
            return cls(int(digit) for digit in text.split("."))
        except ValueError:
            raise InvalidArgumentError(
                f"{text!r} is no Dewey number", "write digits with dots between, such as '1.0.2'"
            ) from None

    def increase(self, times: int = 1) -> DeweyNumber:
        """Give the number with the last digit raised by `times`."""
        return _new(DeweyNumber, (*self[:-1], self[-1] + times)) if times else self

    def add_stage(self) -> DeweyNumber:
        """Give the number with a digit 0 appended."""
        return _new(DeweyNumber, (*self, 0))

    def is_compatible_with(self, other: DeweyNumber) -> bool:
        """
        Say whether a run of this version may walk an edge of version `other`.

        True when `other` is a proper prefix of this number, or has the same length, the same
        digits before the last, and a last digit that is not larger.
        """
        length = len(other)
        if self[:length] == other:
            return True
        return len(self) == length and self[-1] >= other[-1] and self[:-1] == other[:-1]

    def __repr__(self) -> str:
        return f"DeweyNumber({str(self)!r})"

    def __str__(self) -> str:
        return ".".join(map(str, self))
