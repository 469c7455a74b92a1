# SPDX-License-Identifier: Apache-2.0
"""Rules in tables: a row for each, with its document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import attrs

from pyflinkcep.errors import CepError, InputError, InvalidArgumentError, did_you_mean
from pyflinkcep.rules.pattern_reader import registry_of
from pyflinkcep.rules.rule import Rule
from pyflinkcep.rules.rule_file import document_of, rule_in
from pyflinkcep.rules.rules_in_force import RuleProblem

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
