# SPDX-License-Identifier: Apache-2.0
"""Changes of rules, and the rules in force after them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Literal, get_args

import attrs

from pyflinkcep.errors import CepError, InvalidArgumentError, did_you_mean
from pyflinkcep.rules.document import Part
from pyflinkcep.rules.pattern_reader import registry_of
from pyflinkcep.rules.rule import DROP, Rule
from pyflinkcep.rules.rule_file import rule_of

FORMAT = 1
Kind = Literal["publish", "pause", "resume", "remove"]


@attrs.frozen(slots=False)
class RuleChange:
    """
    A change of a rule in a log.

    Parameters
    ----------
    number : int
        The number of the publication that it is part of.
    published : datetime
        When that was.
    change : {'publish', 'pause', 'resume', 'remove'}
        What it does.
    name : str
        The rule.
    version : int
        Its version.
    validFrom : datetime, optional
        The time of the first events that the version is for; all by default.
    """

    number: int
    published: datetime
    change: Kind
    name: str
    version: int
    validFrom: datetime | None = None
    document: Mapping[str, Any] | None = attrs.field(default=None, repr=False, eq=False)
    fingerprint: str | None = attrs.field(default=None, repr=False)

    @cached_property
    def rule(self) -> Rule:
        """The rule that is published; CepError if its document cannot be read."""
        return rule_of(Part(self.document), registry_of(None))

    @property
    def whenReplaced(self) -> str:
        """What becomes of its partial matches."""
        return str((self.document or {}).get("whenReplaced", DROP))

    def to_json(self) -> dict[str, Any]:
        """Return it as a publication has it."""
        known = {
            "change": self.change,
            "rule": self.name,
            "version": self.version,
            "validFrom": None if self.validFrom is None else self.validFrom.isoformat(),
            "fingerprint": self.fingerprint,
            "document": self.document,
        }
        return {name: value for name, value in known.items() if value is not None}


@attrs.frozen
class RuleProblem:
    """What is wrong with a publication in a log, or with a rule in it."""

    number: int
    rule: str | None
    problem: str
    hint: str | None = None

    @classmethod
    def of(cls, change: RuleChange, error: CepError) -> RuleProblem:
        """Return what an error says of a change."""
        return cls(change.number, change.name, error.message, error.hint)


@attrs.frozen
class Publication:
    """Changes that were made together."""

    number: int
    changes: Sequence[RuleChange]
    problems: Sequence[RuleProblem] = ()

    @classmethod
    def of(cls, number: int, text: str | bytes) -> Publication:
        """Read a publication; what cannot be read is among its problems."""
        try:
            given = Part(json.loads(text))
            if given["format"].whole() != FORMAT:
                found = f"format {given['format'].value} is not known"
                raise given.refused(found, "read it with the release that wrote it")
            published = time_of(given["published"])
            parts = list(given["changes"].items())
        except (CepError, ValueError, RecursionError) as cause:
            return cls(number, (), (RuleProblem(number, None, f"it cannot be read: {cause}"),))
        changes: list[RuleChange] = []
        problems: list[RuleProblem] = []
        for part in parts:
            try:
                changes.append(change_of(number, published, part))
            except CepError as error:
                problems.append(RuleProblem(number, _name(part), error.message, error.hint))
        return cls(number, changes, problems)

    def to_json(self) -> str:
        """Return it as text."""
        changes = [change.to_json() for change in self.changes]
        published = self.changes[0].published.isoformat()
        facts = {"format": FORMAT, "published": published, "changes": changes}
        return json.dumps(facts, ensure_ascii=False, indent=1) + "\n"


def change_of(number: int, published: datetime, part: Part) -> RuleChange:
    """Read a change; DocumentError if that fails."""
    kinds: dict[str, Kind] = {kind: kind for kind in get_args(Kind)}
    kind = kinds[part["change"].choice(kinds)]
    name, version = part["rule"].text(), part["version"].whole()
    document = part["document"].mapping() if kind == "publish" else None
    if document is not None and (document.get("rule"), document.get("version", 1)) != (
        name,
        version,
    ):
        raise part["document"].refused("it is another rule or version", "publish it by RuleLog")
    return RuleChange(
        number,
        published,
        kind,
        name,
        version,
        None if part["validFrom"].is_none else time_of(part["validFrom"]),
        document,
        None if part["fingerprint"].is_none else part["fingerprint"].text(),
    )


def time_of(part: Part) -> datetime:
    """Return a time in UTC."""
    try:
        return in_utc(datetime.fromisoformat(part.text()))
    except ValueError as cause:
        if isinstance(cause, CepError):
            raise
        raise part.refused(
            f"{part.value!r} is no time", "write 2026-12-01T00:00:00+00:00"
        ) from None


def _name(part: Part) -> str | None:
    name = part.value.get("rule") if isinstance(part.value, Mapping) else None
    return name if isinstance(name, str) else None


def in_utc(time: datetime) -> datetime:
    """Return a time in UTC, which is what one without a zone is in."""
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


@attrs.frozen
class RuleInForce:
    """
    A rule of a log.

    Parameters
    ----------
    change : RuleChange
        The publication of its version.
    since : int
        The number of the publication from which on it is in force: a later one if it was resumed.
    isPaused : bool
        Whether it is paused.
    """

    change: RuleChange
    since: int
    isPaused: bool = False
    is_removed: bool = attrs.field(default=False, repr=False)

    @property
    def rule(self) -> Rule:
        """The rule itself."""
        return self.change.rule


class RulesInForce:
    """The rules in force after some publications, and those that were."""

    def __init__(self) -> None:
        self.number = 0
        self.known: dict[str, RuleInForce] = {}  # Removed ones too: their versions do not return

    def __iter__(self) -> Iterator[RuleInForce]:
        """Yield the rules that are not removed, by name."""
        return (rule for _, rule in sorted(self.known.items()) if not rule.is_removed)

    def apply(
        self, publication: Publication, check: Callable[[RuleChange], object] | None = None
    ) -> tuple[list[RuleChange], list[RuleProblem]]:
        """
        Apply the next publication; return what is applied, and what is wrong with the rest.

        `check` raises for what is published, or resumed, and cannot be used.
        """
        assert publication.number == self.number + 1
        applied: list[RuleChange] = []
        problems = list(publication.problems)
        for change in publication.changes:
            try:
                self.refuse(change)
                if check is not None and change.change in ("publish", "resume"):
                    check(change if change.document else self.known[change.name].change)
            except CepError as error:
                problems.append(RuleProblem.of(change, error))
                continue
            self._apply(change)
            applied.append(change)
        self.number = publication.number
        return applied, problems

    def refuse(self, change: RuleChange) -> None:
        """Raise for a change that cannot follow on those before."""
        known = self.known.get(change.name)
        if change.change == "publish":
            if known is None:
                return
            last = known.change
            same = last.version == change.version and last.fingerprint == change.fingerprint
            if change.version < last.version or (change.version == last.version and not same):
                relation = "is another" if change.version == last.version else "is older than"
                raise InvalidArgumentError(
                    f"its version {change.version} {relation} version {last.version} of the log",
                    f"give it version {last.version + 1}",
                )
        elif known is None or known.is_removed:
            names = [rule.change.name for rule in self]
            hint = did_you_mean(change.name, names, "name a rule of log.rules()")
            raise InvalidArgumentError(f"{change.change}: there is no rule {change.name!r}", hint)

    def _apply(self, change: RuleChange) -> None:
        if change.change == "publish":
            self.known[change.name] = RuleInForce(change, change.number)
            return
        known = self.known[change.name]
        if change.change == "resume" and known.isPaused:
            known = RuleInForce(known.change, change.number)
        elif change.change == "pause":
            known = attrs.evolve(known, isPaused=True)
        elif change.change == "remove":
            known = attrs.evolve(known, is_removed=True)
        self.known[change.name] = known
