# SPDX-License-Identifier: Apache-2.0
"""A log of rules: a folder of publications, each a file that never changes."""

from __future__ import annotations

import json
import os
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any, Self

import attrs

from pyflinkcep.errors import (
    CepError,
    InputError,
    InvalidArgumentError,
    NotSupportedError,
    suggesting,
)
from pyflinkcep.rules.document import Part
from pyflinkcep.rules.finishing import finishing_time
from pyflinkcep.rules.pattern_reader import registry_of
from pyflinkcep.rules.rule import Rule
from pyflinkcep.rules.rule_file import failures_of, readRules, rule_of
from pyflinkcep.rules.rule_set import rules_of
from pyflinkcep.rules.rule_table import Row, rule_to_document, rules_of_rows, table_rows
from pyflinkcep.rules.rules_in_force import (
    Kind,
    Publication,
    RuleChange,
    RuleInForce,
    RuleProblem,
    RulesInForce,
    in_utc,
)
from pyflinkcep.time import to_milliseconds

_DIGITS, _ENDING = 10, ".json"
_Make = Callable[[RulesInForce], list[RuleChange]]


@attrs.frozen
class _Proposed:
    """A rule to be published, with what the log says of it."""

    rule: Rule
    document: Mapping[str, Any]
    fingerprint: str
    valid_from: datetime | None
    is_paused: bool | None  # None to leave it as it is


class RuleLog:
    """
    Rules that change: a folder to which each publication adds a file.

    Any number of processes may publish at the same time: each publication has a number of its own
    and is decided on all before it. It is in the folder whole or not at all, even if its process is
    killed. Files are never changed, so that the rules in force after any number of publications can
    be read again.

    Parameters
    ----------
    path : str or Path
        The folder, on a local disk or one that is mounted; it is made by the first publication.

    Raises
    ------
    InvalidArgumentError
        If the path is none.
    NotSupportedError
        If the path has a scheme other than ``file``.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> from pyflinkcep import Pattern
    >>> from pyflinkcep.rules import Rule, RuleLog
    >>> log = RuleLog(mkdtemp())
    >>> high = Pattern.begin("high").where("n > 7")
    >>> log.publish({"high": high, "low": Pattern.begin("low").where("n < 3")})
    1
    >>> log.pause("low")
    2
    >>> higher = Rule("high", Pattern.begin("high").where("n > 8"), version=2)
    >>> log.publish([higher], validFrom=datetime(2026, 12, 1))
    3
    >>> [(one.rule.name, one.rule.version, one.isPaused) for one in log.rules()]
    [('high', 2, False), ('low', 1, True)]
    >>> [one.rule.version for one in log.rules(at=1)]
    [1, 1]
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        if not isinstance(path, str | PathLike):
            raise InvalidArgumentError(
                f"RuleLog: expected the path of a folder, got {path!r}", "pass 'rules.log'"
            )
        self._folder = Path(_local(os.fspath(path)))

    def __repr__(self) -> str:
        """Return the path."""
        return f"RuleLog({str(self._folder)!r})"

    @property
    def path(self) -> Path:
        """The folder."""
        return self._folder

    # --- what is in it

    @property
    def number(self) -> int:
        """The number of the last publication; 0 if there is none."""
        try:
            names = [entry.name for entry in os.scandir(self._folder)]
        except FileNotFoundError:
            return 0
        return max((_number_of(name) for name in names), default=0)

    def publications(self, first: int = 1, last: int | None = None) -> Iterator[Publication]:
        """Yield the publications of some numbers; all by default."""
        for number in range(first, (self.number if last is None else last) + 1):
            try:
                data = self._file(number).read_bytes()
            except FileNotFoundError:
                raise InputError(
                    f"{self!r}: there is no publication {number}",
                    "name one up to log.number, and delete none from the folder",
                ) from None
            yield Publication.of(number, data)

    def rules(self, at: int | None = None) -> list[RuleInForce]:
        """
        Return the rules in force, and those that are paused.

        Parameters
        ----------
        at : int, optional
            The number of a publication: after this one; after the last by default.

        Returns
        -------
        list of RuleInForce
            By name. A rule that cannot be read, since something other than :meth:`publish` wrote
            it, is left out.

        Raises
        ------
        InputError
            If the log has no such publication.
        """
        found = RulesInForce()
        for publication in self.publications(last=at):
            found.apply(publication, lambda change: change.rule)
        return list(found)

    def history(self) -> list[RuleChange]:
        """Return all changes, oldest first."""
        return [change for one in self.publications() for change in one.changes]

    # --- publishing

    @suggesting
    def publish(
        self,
        rules: Any,
        validFrom: datetime | None = None,
        onlyThese: bool = False,
    ) -> int:
        """
        Add rules, or replace those of the same names: all of them in one publication, or none.

        A rule is known by its name. One that means something else needs a higher version; one that
        is in the log as it is, is left alone, also if it is paused.

        Parameters
        ----------
        rules : str, Path, dict, iterable of Rule, or table
            The path of a file or folder of rules; rules as for :func:`pyflinkcep.matchMany`; or a
            DataFrame of Spark, pandas or polars, an Arrow table or a list of dicts, with a row for
            each rule: the column ``document`` has its text in YAML or JSON, ``enabled`` may be
            false to pause it, and ``validFrom`` may have a time.
        validFrom : datetime, optional
            The time of the first events that new versions are for, UTC if it has no zone: those
            before are for the old versions. All events by default.
        onlyThese : bool
            Whether all other rules of the log are removed.

        Returns
        -------
        int
            The number of the publication; of the last one if nothing is new.

        Raises
        ------
        CepError
            If a rule cannot be read or written as data, does not find what its tests say, or has a
            version that is taken; nothing is published then, and the message names each such rule.
        """
        proposed, problems, _ = self._proposed(rules, validFrom)
        if problems:
            raise _refused(problems)

        def changes(now: RulesInForce) -> list[RuleChange]:
            refused: list[RuleProblem] = []
            made = _changes(now, proposed, refused)
            if refused:
                raise _refused(refused)
            return made + (_removals(now, {one.rule.name for one in proposed}) if onlyThese else [])

        return self._append(changes)

    def pause(self, *names: str) -> int:
        """Pause rules until they are resumed, or replaced; return the publication's number."""
        return self._change("pause", names, lambda rule: not rule.isPaused)

    def resume(self, *names: str) -> int:
        """Resume paused rules, which start anew; return the publication's number."""
        return self._change("resume", names, lambda rule: rule.isPaused)

    def remove(self, *names: str) -> int:
        """Remove rules; return the publication's number."""
        return self._change("remove", names, lambda _: True)

    def follow(self, source: Any, every: timedelta) -> Following:
        """
        Publish what changes in a table or folder, until it is told to stop.

        The log has the rules of the source and no others. A bad rule is left out: the version of it
        that is in the log stays, and :attr:`Following.problems` says what is wrong.

        Parameters
        ----------
        source : DataFrame, str, Path or callable
            What :meth:`publish` takes, read anew each time, such as a DataFrame of Spark that reads
            a database; or a function that returns it.
        every : timedelta
            How long to wait between two looks, at least a millisecond.

        Returns
        -------
        Following
            What looks, in a thread of its own.

        Examples
        --------
        >>> from tempfile import mkdtemp
        >>> rules = [{"document": "{rule: high, pattern: [{begin: high, where: n > 7}]}"}]
        >>> log = RuleLog(mkdtemp())
        >>> with log.follow(lambda: rules, every=timedelta(seconds=1)) as following:
        ...     following.look()
        >>> log.rules()[0].rule
        Rule(name='high', definition=Pattern(high), key=(), version=1)
        """
        if to_milliseconds(every, "follow: every") < 1:
            raise InvalidArgumentError(
                f"follow: expected a time longer than zero, got {every!r}",
                "write every=timedelta(minutes=1)",
            )
        return Following(self, source, every)

    # --- inside

    def _change(
        self, kind: Kind, names: tuple[str, ...], is_new: Callable[[RuleInForce], bool]
    ) -> int:
        def changes(now: RulesInForce) -> list[RuleChange]:
            made: list[RuleChange] = []
            for name in dict.fromkeys(names):
                known = now.known.get(name)
                change = _change(now, kind, name, 0 if known is None else known.change.version)
                now.refuse(change)
                if known is not None and is_new(known):
                    made.append(change)
            return made

        return self._append(changes)

    def _append(self, make: _Make) -> int:
        """Publish changes that are decided on all before them; return the number."""
        now = RulesInForce()
        while True:
            for publication in self.publications(first=now.number + 1):
                now.apply(publication)
            changes = make(now)
            if not changes:
                return now.number
            number = now.number + 1
            if self._create(number, Publication(number, changes).to_json()):
                return number

    def _create(self, number: int, text: str) -> bool:
        """Create the file of a number, whole; return whether no other process was faster."""
        self._folder.mkdir(parents=True, exist_ok=True)
        # Readers see no name that begins with a dot; that of a killed process stays and is no harm.
        hidden = self._folder / f".{uuid.uuid4().hex}"
        try:
            with hidden.open("x", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.link(hidden, self._file(number))
        except FileExistsError:
            return False
        finally:
            with suppress(FileNotFoundError):
                hidden.unlink()
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return True

    def _file(self, number: int) -> Path:
        return self._folder / _name_of(number)

    def _proposed(
        self, given: Any, valid_from: datetime | None
    ) -> tuple[list[_Proposed], list[RuleProblem], bool]:
        """Return good rules, what is wrong with others, and whether all names are known."""
        if valid_from is not None and not isinstance(valid_from, datetime):
            raise InvalidArgumentError(
                f"publish: expected a datetime as validFrom, got {valid_from!r}",
                "write datetime(2026, 12, 1, tzinfo=UTC)",
            )
        rows, problems = _rows(given)
        has_names = all(problem.rule is not None for problem in problems)
        proposed: list[_Proposed] = []
        for row in rows:
            try:
                proposed.append(_checked(row, valid_from))
            except CepError as error:
                problems.append(RuleProblem(0, row.rule.name, error.message, error.hint))
        return proposed, problems, has_names

    def _follow(self, given: Any) -> list[RuleProblem]:
        """Publish what a source has that is new; return what is wrong with the rest."""
        proposed, problems, has_names = self._proposed(given, None)
        named = {one.rule.name for one in proposed} | {one.rule for one in problems if one.rule}
        refused: list[RuleProblem] = []

        def changes(now: RulesInForce) -> list[RuleChange]:
            refused.clear()
            # What has a problem without a name may be any rule of the log.
            return _changes(now, proposed, refused) + (_removals(now, named) if has_names else [])

        self._append(changes)
        return problems + refused


class Following:
    """
    Looks at a table or folder, and publishes what is new; made by :meth:`RuleLog.follow`.

    It is a context manager, which stops it at its end.
    """

    def __init__(self, log: RuleLog, source: Any, every: timedelta) -> None:
        self._log = log
        self._source = source
        self._looking = threading.Lock()
        self._stopped = threading.Event()
        self._problems: tuple[RuleProblem, ...] = ()
        seconds = every.total_seconds()
        self._thread = threading.Thread(target=self._run, args=(seconds,), daemon=True)
        self._thread.start()

    @property
    def problems(self) -> tuple[RuleProblem, ...]:
        """What was wrong at the last look: with rules, or with the source."""
        return self._problems

    def look(self) -> None:
        """Look now."""
        with self._looking:
            try:
                given = self._source() if callable(self._source) else self._source
                found = self._log._follow(given)
            # A source that cannot be read now, such as a database, is asked again.
            except Exception as cause:
                hint = cause.hint if isinstance(cause, CepError) else None
                problem = f"{type(cause).__name__}: {cause}"
                found = [RuleProblem(self._log.number, None, problem, hint)]
            self._problems = tuple(found)

    def stop(self) -> None:
        """Stop, after the look that is under way."""
        self._stopped.set()
        self._thread.join()

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self.stop()

    def _run(self, seconds: float) -> None:
        while not self._stopped.is_set():
            self.look()
            self._stopped.wait(seconds)


def texts_of(log: RuleLog, after: int = 0) -> tuple[str, ...]:
    """Return the publications after one as texts, up to the last that all others precede."""
    found: list[str] = []
    folder = os.fspath(log.path)
    with suppress(OSError):
        while True:
            path = os.path.join(folder, _name_of(after + len(found) + 1))
            now = os.stat(path)
            found.append(_text_of(path, now.st_ino, now.st_mtime_ns, now.st_size))
    return tuple(found)


@lru_cache(maxsize=1 << 14)
def _text_of(path: str, *_: int) -> str:
    """Return the text of a file that is what numbers say: files do not change."""
    return Path(path).read_bytes().decode(errors="replace")


def _local(path: str) -> str:
    scheme, colon, rest = path.partition(":")
    if not colon or "/" in scheme or len(scheme) == 1:  # a drive
        return path
    if scheme != "file":
        raise NotSupportedError(
            f"RuleLog: publications are files of a local disk, got {path!r}",
            "mount the folder, and pass its path",
        )
    return "/" + rest.lstrip("/")


def _name_of(number: int) -> str:
    return f"{number:0{_DIGITS}d}{_ENDING}"


def _number_of(name: str) -> int:
    """Return the number of the publication that a file is; 0 of one beside them, as a copy is."""
    stem = name.removesuffix(_ENDING)
    is_one = len(stem) == _DIGITS and stem.isascii() and stem.isdigit()
    return int(stem) if is_one and stem != name else 0


def _rows(given: Any) -> tuple[list[Row], list[RuleProblem]]:
    """Return rules in any form, and what cannot be read."""
    if isinstance(given, str | PathLike):
        return [Row(rule) for rule in readRules(Path(given))], []
    rows = table_rows(given)
    if rows is not None:
        return rules_of_rows(rows)
    return [Row(rule) for rule in rules_of(given, "publish")], []


def _checked(row: Row, valid_from: datetime | None) -> _Proposed:
    """Return a rule as the log has it; raise if it cannot be read from there, or a test fails."""
    rule = row.rule
    for _, failure, hint in failures_of(rule):
        raise InvalidArgumentError(failure, hint or "mend the rule, or the test")
    finishing_time(rule)
    document = rule_to_document(rule)
    _check_texts(rule.name, document)
    fingerprint = rule_of(Part(document), registry_of(None)).fingerprint
    own = row.valid_from or valid_from
    moment = None if own is None else in_utc(own)
    return _Proposed(rule, document, fingerprint, moment, row.is_paused)


def _check_texts(*given: Any) -> None:
    """Refuse half of a pair of UTF-16, which no file has."""
    text = json.dumps(given, ensure_ascii=False)
    half = next((char for char in text if "\ud800" <= char < "\ue000"), None)
    if half is not None:
        raise InvalidArgumentError(f"{half!r} is no character", "write the whole character")


def _changes(
    now: RulesInForce, proposed: Iterable[_Proposed], refused: list[RuleProblem]
) -> list[RuleChange]:
    """Return what is new; note what the log refuses."""
    made: list[RuleChange] = []
    for one in proposed:
        name, version = one.rule.name, one.rule.version
        known = now.known.get(name)
        last = None if known is None or known.is_removed else known
        if last is not None and _is_as_it_was(last.change, one):
            if one.is_paused is not None and one.is_paused != last.isPaused:
                made.append(_change(now, "pause" if one.is_paused else "resume", name, version))
            continue
        change = _change(now, "publish", name, version)
        change = attrs.evolve(change, validFrom=one.valid_from, document=one.document,
                              fingerprint=one.fingerprint)  # fmt: skip
        try:
            now.refuse(change)
            if last is not None and last.change.version == version:
                raise InvalidArgumentError(
                    f"its version {version} has another validFrom or whenReplaced in the log",
                    f"give it version {version + 1}",
                )
        except CepError as error:
            refused.append(RuleProblem.of(change, error))
            continue
        made.append(change)
        if one.is_paused:
            made.append(_change(now, "pause", name, version))
    return made


def _is_as_it_was(last: RuleChange, one: _Proposed) -> bool:
    """Whether a version of the log is the one that is proposed."""
    return (
        (last.version, last.fingerprint) == (one.rule.version, one.fingerprint)
        and last.whenReplaced == one.rule.whenReplaced
        and one.valid_from in (None, last.validFrom)
    )


def _removals(now: RulesInForce, names: set[str]) -> list[RuleChange]:
    """Return the removal of all rules that are not among some."""
    return [
        _change(now, "remove", rule.change.name, rule.change.version)
        for rule in now
        if rule.change.name not in names
    ]


def _change(now: RulesInForce, kind: Kind, name: str, version: int) -> RuleChange:
    return RuleChange(now.number + 1, datetime.now(UTC), kind, name, version)


def _refused(problems: list[RuleProblem]) -> InvalidArgumentError:
    told = [
        problem.problem if problem.rule is None else f"rule {problem.rule!r}: {problem.problem}"
        for problem in problems
    ]
    what = f"publish: nothing was published: {'; '.join(told)}"
    return InvalidArgumentError(what, next((one.hint for one in problems if one.hint), None))
