# SPDX-License-Identifier: Apache-2.0
"""The errors of pyflinkcep: one tree under :class:`CepError`, each with a builtin parent."""

from __future__ import annotations

import difflib
import functools
import inspect
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from types import FrameType
from typing import Any, Literal, ParamSpec, TypeVar

import attrs

Contiguity = Literal["next", "followedBy", "followedByAny"]
"""How one pattern follows another."""

Dialect = Literal["flink", "standard"]
"""The meaning of ``MATCH_RECOGNIZE``."""

EvaluationOfPattern = Literal["auto", "nfa", "eventLists", "latest"]
"""How the matches of a pattern are found."""

EvaluationOfQuery = Literal["auto", "nfa", "backtracking", "eventLists"]
"""How the matches of a query are found."""

Field = str | Callable[[Any], Any]
"""The name of a field, or a function of the event."""

KeyFields = Field | Sequence[str]
"""What the key of an event is: a field, several, or a function of the event."""

OnNullKey = Literal["fail", "drop"]
"""What becomes of an event whose key or time is null."""

OnPatternChange = Literal["fail", "restart"]
"""What becomes of a checkpoint of another pattern."""

OnTooManyPartialMatches = Literal["fail", "dropOldest"]
"""What becomes of a key with more partial matches than allowed."""

Output = Literal["all", "onePerStart", "nonOverlapping"]
"""Which matches of a query are returned."""


def nearest_names(name: str, known: Iterable[str], most: int = 1) -> list[str]:
    """
    Return the names closest to one that is unknown, other capitals first.

    Examples
    --------
    >>> nearest_names("prise", ["id", "price"]), nearest_names("ID", ["id", "price"])
    (['price'], ['id'])
    """
    names = list(known)
    by_capitals = [other for other in names if other.casefold() == name.casefold()]
    return by_capitals[:most] or difflib.get_close_matches(name, names, n=most, cutoff=0.5)


def counted(number: int, noun: str, several: str = "") -> str:
    """
    Return a number of things.

    Examples
    --------
    >>> counted(1, "argument"), counted(2, "argument"), counted(3, "match", "matches")
    ('1 argument', '2 arguments', '3 matches')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {several or f'{noun}s'}"


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """
    Return the hint for an unknown name.

    Examples
    --------
    >>> did_you_mean("prise", ["id", "price"], "name a column")
    "did you mean 'price'?"
    """
    near = nearest_names(name, known)
    return f"did you mean {near[0]!r}?" if near else otherwise


_P = ParamSpec("_P")
_R = TypeVar("_R")


def suggesting(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Return a function of the user's that names the nearest argument to one that it lacks."""
    known = [name for name in inspect.signature(function).parameters if name != "self"]

    @functools.wraps(function)
    def checked(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        for name in kwargs:
            if name not in known:
                raise InvalidArgumentError(
                    f"{function.__name__}: unknown argument {name!r}",
                    did_you_mean(name, known, f"the arguments are {', '.join(known)}"),
                )
        return function(*args, **kwargs)

    return checked


class CepError(Exception):
    """
    Base of every error that pyflinkcep raises on purpose.

    Parameters
    ----------
    message : str
        What was requested and what is wrong. If Flink raises too, Flink's own text.
    hint : str, optional
        What to write instead; shown below the message after a blank line.
    problem : str, optional
        What is wrong, without where it is; by default the message.
    part : str, optional
        The part of the condition at fault.
    stage : str, optional
        The stage of the pattern at fault.
    condition : str, optional
        The condition at fault, as it was written.
    span : (int, int), optional
        Where the part at fault begins and ends in the text that was read.

    Examples
    --------
    >>> print(CepError("times(3) after times(2)", "quantify a stage once"))
    times(3) after times(2)
    <BLANKLINE>
    Hint: quantify a stage once
    """

    def __init__(
        self,
        message: str,
        hint: str | None = None,
        *,
        problem: str | None = None,
        part: str | None = None,
        stage: str | None = None,
        condition: str | None = None,
        span: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint
        self.problem = message if problem is None else problem
        self.part = part
        self.stage = stage
        self.condition = condition
        self.span = span

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\n\nHint: {self.hint}"


class MalformedPatternException(CepError, ValueError):
    """A pattern that Flink refuses, or that would hang or crash Flink at run time."""


class InvalidArgumentError(CepError, ValueError):
    """An argument out of its range, for which Flink raises ``IllegalArgumentException``."""


class MissingConditionError(CepError, TypeError):
    """A required argument is None or unusable; Flink's null check."""


class NotSupportedError(CepError, NotImplementedError):
    """Refused by Flink with ``UnsupportedOperationException``, or not supported here."""


class InputError(CepError, ValueError):
    """A DataFrame that does not fit the job: a missing column, a wrong type, a null event time."""


class StateFormatError(CepError, ValueError):
    """Snapshot bytes that are damaged or of a format version this release cannot read."""


class PatternChangedError(CepError, ValueError):
    """A checkpoint that holds partial matches of another pattern than the one now running."""


class CepRuntimeError(CepError, RuntimeError):
    """
    A failure while events are matched; the message itself tells where.

    Parameters
    ----------
    message : str
        What went wrong.
    hint : str, optional
        What to write instead.
    stage : str, optional
        The stage of the pattern at fault.
    key : str, optional
        The key of the current event, as text; unknown below the keyed operator.
    timestamp_ms : int, optional
        The event's time, epoch milliseconds.
    pattern : str, optional
        The pattern on one line; unknown below the engine.
    """

    def __init__(
        self,
        message: str,
        hint: str | None = None,
        stage: str | None = None,
        key: str | None = None,
        timestamp_ms: int | None = None,
        pattern: str | None = None,
    ) -> None:
        super().__init__(message, hint)
        self.args = (message, hint, stage, key, timestamp_ms, pattern)
        self.stage = stage
        self.key = key
        self.timestamp_ms = timestamp_ms
        self.pattern = pattern

    def __str__(self) -> str:
        facts = [
            f"pattern {self.pattern}" if self.pattern is not None else "",
            f"stage {self.stage!r}" if self.stage is not None else "",
            f"key {self.key}" if self.key is not None else "",
            f"event time {self.timestamp_ms} ms" if self.timestamp_ms is not None else "",
        ]
        where = ", ".join(fact for fact in facts if fact)
        text = f"{self.message} ({where})" if where else self.message
        return text if self.hint is None else f"{text}\n\nHint: {self.hint}"

    def at_key(self, key: Any) -> CepRuntimeError:
        """Return the same error with the key filled in; None, for unkeyed events, is left out."""
        return self if key is None else self._with("key", repr(key))

    def at_time(self, timestamp_ms: int) -> CepRuntimeError:
        """Return the same error with the event's time filled in."""
        return self._with("timestamp_ms", timestamp_ms)

    def in_pattern(self, pattern: str) -> CepRuntimeError:
        """Return the same error with the pattern filled in."""
        return self._with("pattern", pattern)

    def _with(self, fact: str, value: Any) -> CepRuntimeError:
        """Return the same error with a fact that it does not have yet."""
        if getattr(self, fact) is not None:
            return self
        known = {"key": self.key, "timestamp_ms": self.timestamp_ms, "pattern": self.pattern}
        error = type(self)(self.message, self.hint, self.stage, **{**known, fact: value})
        error.__cause__ = self.__cause__
        return error


class ConditionError(CepRuntimeError):
    """A condition raised, or returned something other than a bool."""


class SkipError(CepRuntimeError):
    """A throwing after-match skip strategy found no event to skip to."""


class FunctionError(CepRuntimeError):
    """A user's select, flatSelect, process or timeout function raised or returned a wrong row."""


class OutOfMemoryError(CepRuntimeError, MemoryError):
    """The compiled kernel ran out of memory while it matched the events of a key."""


class StateLimitError(CepRuntimeError):
    """A key has more partial matches than ``maxPartialMatches`` allows."""


class UnusedResultWarning(UserWarning):
    """
    The result of a pattern's method was discarded, and the pattern used without it.

    In Flink ``start.where(condition)`` changes `start`, so it can stand on a line of its own. Here
    patterns are immutable: write ``start = start.where(condition)``.
    """


class TimeUnitWarning(UserWarning):
    """
    Whole numbers that are read as epoch milliseconds look like another unit.

    Epoch seconds, read as milliseconds, all lie in January 1970, so that a window of five minutes
    spans three and a half days. Convert the column first.
    """


class MicroBatchWarning(UserWarning):
    """
    A pattern is applied to a micro-batch, in a function for ``foreachBatch``.

    It finds no match that spans two micro-batches. Apply the pattern to the stream, and use
    ``foreachBatch`` on its result.
    """


def check_columns(function: str, **names: object) -> None:
    """Refuse what is no name of a column; None is none."""
    for argument, name in names.items():
        if name is not None and not isinstance(name, str):
            what = f"{function}: expected the name of a column as {argument}, got {name!r}"
            field = getattr(name, "field", None)  # of textTime, whose table has times in it
            of_texts = f"{argument}={field!r}, and textTime({field!r}).table(events) as events"
            own = of_texts if isinstance(field, str) else f"{argument}='…'"
            raise InvalidArgumentError(what, f"write {own}")


def check_choice(name: str, given: object, choices: Iterable[object], hint: str = "") -> None:
    """
    Refuse an argument that is none of some values; arrays and Series are not compared with them.

    Examples
    --------
    >>> check_choice("output", "al", ("all", "onePerStart"))
    Traceback (most recent call last):
    ...
    pyflinkcep.errors.InvalidArgumentError: output: expected 'all' or 'onePerStart', got 'al'
    <BLANKLINE>
    Hint: write output='all'
    """
    known = list(choices)
    if any(isinstance(given, type(one)) and given == one for one in known):
        return
    is_short = given is None or isinstance(given, str | int | float)
    *most, last = map(repr, known)
    raise InvalidArgumentError(
        f"{name}: expected {', '.join(most)} or {last}, got "
        f"{f'{given!r:.80}' if is_short else type(given).__name__}",
        hint or f"write {name}={known[0]!r}",
    )


@attrs.frozen
class Place:
    """A line of the user's code, where a warning is shown."""

    file: str  # The file
    line: int  # The line, from 1
    module: str  # The module, for warning filters

    @classmethod
    def here(cls) -> Place:
        """Return the line that called this package."""
        frame = caller()
        if frame is None:
            return cls("<unknown>", 1, "<unknown>")
        module = str(frame.f_globals.get("__name__", "<unknown>"))
        return cls(frame.f_code.co_filename, frame.f_lineno, module)

    def warn(self, text: str, category: type[Warning]) -> None:
        """Show a warning, once for this line under Python's default filters."""
        module = sys.modules.get(self.module)
        registry = {} if module is None else vars(module).setdefault("__warningregistry__", {})
        warnings.warn_explicit(text, category, self.file, self.line, self.module, registry)


def caller() -> FrameType | None:
    """Return the nearest frame outside this package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_ours(frame):
        frame = frame.f_back
    return frame


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).split(".", 1)[0] == "pyflinkcep"
