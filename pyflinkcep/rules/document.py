# SPDX-License-Identifier: Apache-2.0
"""Parts of a document of JSON or YAML, which know their place in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs

from pyflinkcep.errors import InvalidArgumentError, did_you_mean

Path = tuple[str | int, ...]
"""The keys and positions that lead to a part."""


class DocumentError(InvalidArgumentError):
    """
    A document of a pattern, or a file of rules, that cannot be read.

    Parameters
    ----------
    path : tuple of str and int
        The keys and positions that lead to the part at fault.
    problem : str
        What is wrong with it.
    hint : str, optional
        What to write instead.
    """

    def __init__(self, path: Path, problem: str, hint: str | None = None) -> None:
        super().__init__(f"{shown_path(path)}: {problem}", hint, problem=problem)
        self.path = path

    def __reduce__(self) -> tuple[type[DocumentError], tuple[Path, str, str | None]]:
        return type(self), (self.path, self.problem, self.hint)


def shown_path(path: Path) -> str:
    """
    Return a place in a document in words.

    Examples
    --------
    >>> shown_path(("nodes", 1, "quantifier")), shown_path(())
    ('nodes[1].quantifier', 'document')
    """
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".") or "document"


@attrs.frozen
class Part:
    """A value of a document, and its place."""

    value: Any
    path: Path = ()

    def refused(self, problem: str, hint: str | None = None) -> DocumentError:
        """Make the error for this part."""
        return DocumentError(self.path, problem, hint)

    def __getitem__(self, key: str) -> Part:
        """Return what is under a key; a part of None if nothing is."""
        return Part(self.mapping().get(key), (*self.path, key))

    @property
    def is_none(self) -> bool:
        """Whether there is nothing, or null."""
        return self.value is None

    def mapping(self) -> Mapping[str, Any]:
        """Return keys and values."""
        if not isinstance(self.value, Mapping):
            raise self._not("an object")
        return self.value

    def items(self) -> Iterator[Part]:
        """Yield the elements of a list; none of null."""
        if not isinstance(self.value, list | tuple | None):
            raise self._not("a list")
        for number, value in enumerate(self.value or ()):
            yield Part(value, (*self.path, number))

    def text(self) -> str:
        """Return a text, which may not be empty."""
        if not isinstance(self.value, str) or not self.value:
            raise self._not("a text")
        return self.value

    def whole(self) -> int:
        """Return a whole number."""
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            raise self._not("a whole number")
        return self.value

    def choice(self, known: Iterable[str]) -> str:
        """Return a text that is one of some."""
        names = list(known)
        given = self.text()
        if given not in names:
            hint = did_you_mean(given, names, f"write one of {', '.join(names)}")
            raise self.refused(f"{given!r} is not known", hint)
        return given

    def _not(self, wanted: str) -> DocumentError:
        found = "nothing" if self.value is None else f"{self.value!r:.60}"
        return self.refused(f"expected {wanted}, got {found}", f"write {wanted}")
