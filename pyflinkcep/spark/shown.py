# SPDX-License-Identifier: Apache-2.0
"""A pattern or a query on a DataFrame, as prompts and notebooks show it; runs no job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from pyspark.sql import Column, DataFrame

__all__ = ["shown", "shown_in_notebook", "stream_facts"]


def stream_facts(
    pattern: str, events: DataFrame, keys: Sequence[str | Column], time: str
) -> dict[str, str]:
    """Return what to show, by name; what is unknown is empty."""
    columns = ", ".join(f"{name}: {type_}" for name, type_ in events.dtypes)
    return {
        "pattern": pattern,
        "input": f"{'stream' if events.isStreaming else 'bounded'} [{columns}]",
        "key": ", ".join(map(str, keys)),
        "time": time,
    }


def shown(title: str, facts: Mapping[str, str]) -> str:
    """Return the facts on one line."""
    return f"{title}({', '.join(f'{name}: {fact}' for name, fact in facts.items() if fact)})"


def shown_in_notebook(title: str, facts: Mapping[str, str]) -> str:
    """Return the facts as a table in HTML, and what to call next."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{name}</th><td style='text-align:left'>"
        f"<code>{escape(fact) or '–'}</code></td></tr>"
        for name, fact in facts.items()
    )
    return (
        f"<table><caption>{title}</caption>{rows}</table>"
        "<p>Nothing has run: <code>.toDF()</code>, <code>.select(function, schema)</code> or "
        "<code>.process(function, schema)</code> return the matches, <code>.explain()</code> says "
        "how they are found.</p>"
    )
