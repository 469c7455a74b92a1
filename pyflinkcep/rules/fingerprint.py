# SPDX-License-Identifier: Apache-2.0
"""Fingerprints of rules: the same however a rule is written, another if it means something else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from pyflinkcep.errors import CepError, NotSupportedError
from pyflinkcep.expressions.parser import event_tree, sql_condition
from pyflinkcep.expressions.tokens import tokenized
from pyflinkcep.expressions.tree import Aggregate, Column, Literal, MatchExpression, Tree
from pyflinkcep.rules.aviator import sql_of_aviator


def fingerprint_of(facts: Mapping[str, Any]) -> str:
    """Return 32 hexadecimal digits that stand for what JSON can say of a rule."""
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]


def meaning_of(document: Any) -> Any:
    """Return the document of a pattern with its conditions as trees."""
    if isinstance(document, list):
        return [meaning_of(part) for part in document]
    if not isinstance(document, dict):
        return document
    if document.get("type") in ("AVIATOR", "SQL") and "expression" in document:
        text = document["expression"]
        return meaning_of_sql(sql_of_aviator(text) if document["type"] == "AVIATOR" else text)
    return {key: meaning_of(part) for key, part in document.items()}


def meaning_of_sql(text: Any) -> Any:
    """Return the meaning of SQL; NotSupportedError for a function."""
    if not isinstance(text, str):
        raise NotSupportedError(
            f"fingerprint: the condition {text!r} is Python, and no data", "write it as SQL"
        )
    condition = sql_condition(text)
    if isinstance(condition, MatchExpression):
        return _tree(condition.tree)
    return _of_event(text)


def _of_event(text: str | None) -> Any:
    """Return the meaning of SQL over one event; the text of what only Spark reads."""
    try:
        return None if text is None else _tree(event_tree(text))
    except CepError:
        return _words(text or "")


def _words(text: str) -> str:
    """Return SQL without its layout, which is not that of the texts in it."""
    try:
        return " ".join(text[word.start : word.end] for word in tokenized(text)).strip()
    except CepError:
        return text


def _tree(tree: Tree) -> Any:
    match tree:
        case Literal():
            is_text = isinstance(tree.value, str)
            written = tree.value if is_text else (tree.text or f"{tree.value}").upper()
            return ["literal", type(tree.value).__name__, written]
        case Column(computed=None, sql=sql) if sql is None or sql[:1] == "`":
            return ["column", sql, tree.variable, tree.index]
        case Column():
            return ["of event", _of_event(tree.sql), tree.variable, tree.index]
        case Aggregate():
            over = None if tree.argument is None else _of_event(tree.argument)
            return ["aggregate", tree.function, tree.stage, over, tree.offset, tree.with_event]
    operator = getattr(tree, "operator", "") or getattr(tree, "function", "")
    if not operator:  # what only Spark reads
        return _words(tree.text)
    return [operator, tree.detail, *map(_tree, tree.operands)]
