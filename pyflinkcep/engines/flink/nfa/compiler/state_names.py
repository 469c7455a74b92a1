# SPDX-License-Identifier: Apache-2.0
"""Internal state names: the stage's name, and a counter if one stage has several states."""

from __future__ import annotations

from pyflinkcep.errors import MalformedPatternException

__all__ = ["NFAStateNameHandler"]


class NFAStateNameHandler:
    """
    Hands out unique internal names.

    Notes
    -----
    Ports ``org.apache.flink.cep.nfa.compiler.NFAStateNameHandler`` (Flink 2.3.0).
    Differs from Flink: a stage's name may contain a colon. Flink recovers it from the internal
    name, cut at the first colon, so that ``x:y`` and ``x:z`` share the key ``x`` in a match.

    Examples
    --------
    >>> names = NFAStateNameHandler()
    >>> names.unique_internal_name("b"), names.unique_internal_name("b")
    ('b', 'b:0')
    """

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._counters: dict[str, int] = {}  # by base: all smaller counters are taken

    def check_name_uniqueness(self, name: str) -> None:
        """Reserve a user's name; raise MalformedPatternException if it is taken."""
        if name in self._used:
            raise MalformedPatternException(
                f"Duplicate pattern name: {name}. Names must be unique.",
                "give every stage a unique name, also inside groups",
            )
        self._used.add(name)

    def unique_internal_name(self, base: str) -> str:
        """Return `base`, or `base` with the smallest free counter."""
        candidate, counter = base, self._counters.get(base, 0)
        while candidate in self._used:
            candidate = f"{base}:{counter}"
            counter += 1
        self._counters[base] = counter
        self._used.add(candidate)
        return candidate

    def clear(self) -> None:
        """Forget all names."""
        self._used.clear()
        self._counters.clear()
