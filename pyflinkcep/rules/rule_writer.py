# SPDX-License-Identifier: Apache-2.0
"""Writes rules as documents of JSON, without their descriptions and tests."""

from __future__ import annotations

from typing import Any

from pyflinkcep.eql import Eql
from pyflinkcep.errors import NotSupportedError
from pyflinkcep.pattern import Pattern
from pyflinkcep.rules.pattern_writer import pattern_to_json
from pyflinkcep.rules.rule import DROP, Definition, Rule
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
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value
