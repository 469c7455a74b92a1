# SPDX-License-Identifier: Apache-2.0
"""Rules as documents of JSON, and tables with a row for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any

import attrs

from pyflinkcep.eql import Eql
from pyflinkcep.errors import (
    CepError,
    InputError,
    InvalidArgumentError,
    NotSupportedError,
    did_you_mean,
)
from pyflinkcep.pattern import Pattern
from pyflinkcep.rules.pattern_reader import registry_of
from pyflinkcep.rules.pattern_writer import pattern_to_json
from pyflinkcep.rules.rule import DROP, Definition, Rule
from pyflinkcep.rules.rule_file import document_of, rule_in
from pyflinkcep.rules.rules_in_force import RuleProblem
from pyflinkcep.rules.sigma_correlation import SigmaCorrelation
from pyflinkcep.sase.text import query_text


def rule_to_document(rule: Rule) -> dict[str, Any]:
    """
    Return what a rule does, as files of rules say it.

    Examples
    --------
    >>> rule_to_document(Rule("jump", Eql("sequence by user [low where true] [high where true]")))
    {'rule': 'jump', 'eql': 'sequence by user [low where true] [high where true]'}
    """
    if rule.select is not None:
        raise NotSupportedError(
            "a document has no place for a function, such as select", "leave select out"
        )
    document: dict[str, Any] = {"rule": rule.name}
    if rule.version != 1:
        document["version"] = rule.version
    if rule.key:
        document["key"] = list(rule.key)
    for name, value in (("timestamp", rule.timestamp), ("type", rule.type)):
        if value != name:
            document[name] = value
    if rule.whenReplaced != DROP:
        document["whenReplaced"] = rule.whenReplaced
    return {**document, **_definition(rule.definition)}


def _definition(definition: Definition) -> dict[str, Any]:
    if isinstance(definition, Pattern):
        return {"pattern": pattern_to_json(definition)}
    if isinstance(definition, Eql):
        return {"eql": definition.text}
    if isinstance(definition, SigmaCorrelation):
        for name, condition in definition.conditions():
            if not isinstance(condition, str):
                raise NotSupportedError(
                    f"the condition {name!r} is a function, and no data", "write it as SQL"
                )
        rules = {name: _plain(one) for name, one in definition.rules.items()}
        return {"correlation": _plain(definition.correlation), "conditions": rules}
    return {"query": query_text(definition)}


def _plain(value: Any) -> Any:
    """Return a document of any kind of mappings and lists as JSON has it."""
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, date):  # which files of Sigma have
        return value.isoformat()
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


DOCUMENT, ENABLED, VALID_FROM = "document", "enabled", "validFrom"


@attrs.frozen
class Row:
    """A rule, and what stands beside it."""

    rule: Rule
    valid_from: datetime | None = None
    is_paused: bool | None = None


def table_rows(given: Any) -> list[Mapping[str, Any]] | None:
    """Return the rows of a table of any library; None of what is no table."""
    if isinstance(given, Sequence) and not isinstance(given, str):
        are_rows = bool(given) and all(isinstance(one, Mapping) for one in given)
        return list(given) if are_rows else None
    if hasattr(given, "toArrow"):  # Spark's
        return list(given.toArrow().to_pylist())
    if not hasattr(given, "columns"):
        return None
    from pyflinkcep.tables.given import columns_of  # which loads Arrow

    table = columns_of(given)
    if isinstance(table, dict):
        return [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    return None if table is None else list(table.to_pylist())


def rules_of_rows(rows: Iterable[Mapping[str, Any]]) -> tuple[list[Row], list[RuleProblem]]:
    """Return the rules of rows, and what is wrong with others."""
    found: dict[str, Row] = {}
    problems: list[RuleProblem] = []
    for number, row in enumerate(rows, 1):
        name = None
        try:
            document, source = document_of(_text(row, f"row {number}"), f"row {number}")
            name = document.get("rule") if isinstance(document, Mapping) else None
            rule = rule_in(document, source, registry_of(None))
            if rule.name in found:
                raise InvalidArgumentError("it is the name of several rows", "give each its own")
            found[rule.name] = Row(rule, _valid_from(row), _is_paused(row))
        except CepError as error:
            known = name if isinstance(name, str) else None
            problems.append(RuleProblem(0, known, error.message, error.hint))
    return list(found.values()), problems


def _text(row: Mapping[str, Any], what: str) -> str | Mapping[str, Any]:
    text = _value(row, DOCUMENT)
    if isinstance(text, str | Mapping):
        return text
    if text is None:
        hint = did_you_mean(DOCUMENT, row, "name the column with rules as YAML or JSON so")
        raise InputError(f"{what}: expected a column {DOCUMENT!r}, got {list(row)}", hint)
    raise InputError(f"{what}: expected a rule as text, got {text!r:.60}", "write YAML or JSON")


def _valid_from(row: Mapping[str, Any]) -> datetime | None:
    found = _value(row, VALID_FROM)
    if not isinstance(found, datetime | None):
        what = f"expected a time as {VALID_FROM}, got {found!r}"
        raise InputError(what, "use a column of timestamps")
    return found


def _is_paused(row: Mapping[str, Any]) -> bool | None:
    found = _value(row, ENABLED)
    if not isinstance(found, bool | None):
        what = f"expected true or false as {ENABLED}, got {found!r}"
        raise InputError(what, "use a column of booleans")
    return None if found is None else not found


def _value(row: Mapping[str, Any], name: str) -> Any:
    """Return a value by the name of its column, whose capitals databases fold."""
    return next((own for given, own in row.items() if given.casefold() == name.casefold()), None)
