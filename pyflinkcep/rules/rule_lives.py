# SPDX-License-Identifier: Apache-2.0
"""The lives of rules on a stream: from which publication on each version sees which events."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs

from pyflinkcep.errors import StateFormatError
from pyflinkcep.rules.document import Part
from pyflinkcep.rules.rules_in_force import (
    Publication,
    RuleChange,
    RuleInForce,
    RuleProblem,
    RulesInForce,
    change_of,
    time_of,
)
from pyflinkcep.time import MIN_WATERMARK

_FORMAT = 3  # The first has no codes of lives, the second no delay
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _as_tuple(given: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if given is None else tuple(given)


@attrs.frozen
class RuleLife:
    """A version of a rule from when it came into force until no event waits for it."""

    name: str
    since: int  # The number of the publication; what makes a life unlike others of its version
    document: str  # The rule, as JSON
    begin: int | None = None  # The time of the first events that it sees; None for all
    # The time of the first events that it no longer sees, of those that arrive from now on; None
    # while it is in force.
    end: int | None = None
    # When nothing more comes of it: at this watermark; None while it is in force. Buckets, which
    # may differ by it, compile the same.
    last: int | None = attrs.field(default=None, eq=False)
    # How long its partial matches go on after its last event, in milliseconds; None to drop them.
    finishes: int | None = None
    # The route of its events, which it keeps whatever others there are when the query starts again.
    sent_by: tuple[str, ...] | None = attrs.field(default=None, converter=_as_tuple)
    # What its state, and the conditions of events that wait, are known by in the release that
    # made it; None of one that did not say.
    code: int | None = None

    def ended(self, end: int, latest: int) -> RuleLife:
        """Return the life with an end, unless it has an earlier one."""
        if self.end is not None:
            end = min(end, self.end)
        last = max(latest, end) + (self.finishes or 0)
        return attrs.evolve(self, end=end, last=last if self.last is None else max(last, self.last))

    def is_over(self, watermark: int) -> bool:
        """Whether its last event has been processed."""
        return self.last is not None and self.last <= watermark

    @property
    def takes_events(self) -> bool:
        """Whether it sees some of the events that arrive from now on."""
        return self.end is None or self.end > MIN_WATERMARK or self.finishes is not None


Check = Callable[[RuleChange], tuple[int | None, tuple[str, ...], int]]
"""
Returns how long a rule goes on when it ends, in milliseconds, its route, and what its state is
known by; raises if it cannot be used.
"""


class RuleLives:
    """The publications that a stream has read, and the lives of rules; mutable."""

    def __init__(self) -> None:
        self._in_force = RulesInForce()
        self.lives: dict[tuple[str, int], RuleLife] = {}
        # Publications that were seen before one with a lower number, since folders are listed
        # while files are made.
        self._waiting: dict[int, str] = {}
        # How far events that wait may be ahead of the watermark: the longest delay of the stream so
        # far, which may start again with another. None if it is unknown.
        self.delay_ms: int | None = 0
        # What stands for the texts of the publications so far; None if some are not known.
        self.digest: str | None = digest_of(())

    @property
    def number(self) -> int:
        """The number of the last publication that was applied."""
        return self._in_force.number

    def apply(
        self, texts: Mapping[int, str], check: Check, latest: Callable[[], int]
    ) -> tuple[list[RuleChange], list[RuleProblem]]:
        """
        Apply publications; return what is applied, and what is wrong with the rest.

        `latest` returns the latest time of the events that wait to be processed.
        """
        now = self._in_force
        applied: list[RuleChange] = []
        problems: list[RuleProblem] = []
        problems += self._others({n: text for n, text in texts.items() if n <= now.number})
        self._waiting |= {n: text for n, text in texts.items() if n > now.number}
        places: dict[str, list[tuple[str, int]]] = {}
        for place in self.lives:
            places.setdefault(place[0], []).append(place)
        while now.number + 1 in self._waiting:
            number, text = now.number + 1, self._waiting.pop(now.number + 1)
            publication = Publication.of(number, text)
            self.digest = None if self.digest is None else digest_of([text], self.digest)
            names = dict.fromkeys(change.name for change in publication.changes)
            before = {name: now.known.get(name) for name in names}
            own = now.apply(publication, check)
            applied += own[0]
            problems += own[1]
            for name in names:
                known = now.known.get(name)
                if known is not None and known != before[name]:
                    self._change(known, places.get(name, ()), check, latest)
                    if (name, known.since) in self.lives:
                        places.setdefault(name, []).append((name, known.since))
        if texts and self._waiting:
            problems.append(
                RuleProblem(
                    min(self._waiting),
                    None,
                    f"it waits for publication {now.number + 1}, which has not come",
                    "if its file was deleted, put it back",
                )
            )
        return applied, problems

    def _others(self, again: Mapping[int, str]) -> Iterator[RuleProblem]:
        """Yield what is wrong with publications that come again, as from a folder that moved."""
        own = {known.change.number: known.change for known in self._in_force.known.values()}
        for number, text in sorted(again.items()):
            applied = own.get(number)
            if applied is not None and applied not in Publication.of(number, text).changes:
                yield RuleProblem(
                    number,
                    applied.name,
                    "it is another publication than the one of this number that was applied",
                    "start a new checkpoint for another log",
                )

    def _change(
        self,
        known: RuleInForce,
        places: Iterable[tuple[str, int]],
        check: Check,
        latest: Callable[[], int],
    ) -> None:
        """Begin a life, and end others of the rule."""
        change = known.change
        is_off = known.isPaused or known.is_removed
        begin = None if change.validFrom is None else _ms(change.validFrom)
        end = MIN_WATERMARK if is_off or begin is None else begin
        for place in places:
            life = self.lives[place]
            if life.end is None or end < life.end:
                self.lives[place] = life.ended(end, latest())
        if not is_off:
            finishes, sent_by, code = check(change)
            life = RuleLife(
                change.name, known.since, document_of(change), begin, finishes=finishes,
                sent_by=sent_by, code=code,
            )  # fmt: skip
            self.lives[life.name, life.since] = life

    def retire(self, watermark: int) -> bool:
        """Forget lives whose last events are processed; return whether there were some."""
        over = [place for place, life in self.lives.items() if life.is_over(watermark)]
        for place in over:
            del self.lives[place]
        return bool(over)

    def needed(self, texts: Iterable[str]) -> Iterator[str]:
        """Yield the rules that may see what arrives, if publications of some texts come, too."""
        yield from (life.document for life in self.lives.values() if life.takes_events)
        for change in changes_of((*self._waiting.values(), *texts)):
            known = self._in_force.known.get(change.name)
            if change.change == "publish":
                yield document_of(change)
            elif change.change == "resume" and known is not None:
                yield document_of(known.change)

    def to_bytes(self) -> bytes:
        """Return them as bytes."""
        now = self._in_force
        facts = {
            "format": _FORMAT,
            "number": now.number,
            "known": [_written(known) for known in now.known.values()],
            "lives": [attrs.asdict(life) for life in self.lives.values()],
            "waiting": {str(number): text for number, text in self._waiting.items()},
            "delay": self.delay_ms,
            "digest": self.digest,
        }
        return zlib.compress(json.dumps(facts, ensure_ascii=False).encode(), 1)

    def copy(self) -> RuleLives:
        """Return a copy that changes by itself."""
        found = RuleLives()
        found._in_force.number = self._in_force.number
        found._in_force.known = dict(self._in_force.known)
        found.lives, found._waiting = dict(self.lives), dict(self._waiting)
        found.delay_ms, found.digest = self.delay_ms, self.digest
        return found

    @classmethod
    def of(cls, data: bytes | None) -> RuleLives:
        """Read what :meth:`to_bytes` wrote; None is nothing."""
        found = cls()
        if data is not None:
            facts = json.loads(zlib.decompress(data))
            if not 1 <= facts["format"] <= _FORMAT:
                raise StateFormatError(
                    f"rules in force in format {facts['format']}, "
                    f"this release reads formats 1 to {_FORMAT}",
                    "restore with the release that wrote them, or start from empty state",
                )
            found._in_force.number = facts["number"]
            known = map(_read, facts["known"])
            found._in_force.known = {one.change.name: one for one in known}
            lives = [RuleLife(**life) for life in facts["lives"]]
            found.lives = {(life.name, life.since): life for life in lives}
            found._waiting = {int(number): text for number, text in facts["waiting"].items()}
            found.delay_ms, found.digest = facts.get("delay"), facts.get("digest")
        return found


def digest_of(texts: Iterable[str], before: str = "") -> str:
    """Return what stands for the texts of publications, given it for those before them."""
    for text in texts:
        data = f"{before}{text}".encode(errors="surrogatepass")
        before = hashlib.blake2b(data, digest_size=16).hexdigest()
    return before


def changes_of(texts: Iterable[str]) -> Iterator[RuleChange]:
    """Yield the changes that publications bring, which may be refused."""
    return (change for text in texts for change in Publication.of(0, text).changes)


def document_of(change: RuleChange) -> str:
    """Return the document of a rule as text."""
    return json.dumps(change.document, sort_keys=True, ensure_ascii=False)


@attrs.frozen(eq=False)
class StoredLives:
    """Lives as they are stored, which other buckets and the next micro-batch read again."""

    data: bytes | None
    _read: RuleLives  # Nobody changes it
    lives: tuple[RuleLife, ...]

    @classmethod
    def of(cls, data: bytes | None) -> StoredLives:
        """Read what is stored, unless a process knows it."""
        return _stored.get(data) or cls._known(data, RuleLives.of(data))

    @classmethod
    def _known(cls, data: bytes | None, read: RuleLives) -> StoredLives:
        while len(_stored) >= _MOST_STORED:
            _stored.pop(next(iter(_stored)), None)  # the oldest
        found = _stored[data] = cls(data, read, tuple(read.lives.values()))
        return found

    @property
    def delay_ms(self) -> int | None:
        """The longest delay; see :class:`RuleLives`."""
        return self._read.delay_ms

    @property
    def applied(self) -> tuple[int, str | None]:
        """The number of the last publication, and what stands for all."""
        return self._read.number, self._read.digest

    def needed(self, texts: Iterable[str]) -> Iterator[str]:
        """Yield the rules that may see what arrives; see :meth:`RuleLives.needed`."""
        return self._read.needed(texts)

    def changed(self, change: Callable[[RuleLives], None]) -> StoredLives:
        """Return them after a change."""
        own = self._read.copy()
        change(own)
        return self._known(own.to_bytes(), own)


_MOST_STORED = 32
_stored: dict[bytes | None, StoredLives] = {}


def _written(known: RuleInForce) -> dict[str, Any]:
    change = known.change
    return {
        **change.to_json(),
        "number": change.number,
        "published": change.published.isoformat(),
        "since": known.since,
        "isPaused": known.isPaused,
        "isRemoved": known.is_removed,
    }


def _read(facts: Mapping[str, Any]) -> RuleInForce:
    change = change_of(facts["number"], time_of(Part(facts)["published"]), Part(facts))
    return RuleInForce(change, facts["since"], facts["isPaused"], facts["isRemoved"])


def _ms(time: datetime) -> int:
    return (time - _EPOCH) // timedelta(milliseconds=1)
