# SPDX-License-Identifier: Apache-2.0
"""Writes the start page as a notebook: ``make pictures``."""

from __future__ import annotations

import doctest
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAGE, NOTEBOOK = HERE / "start.md", HERE / "start.ipynb"
_BLOCK = re.compile(
    r"```python\n(.*?)```\n(?:\n```text\n.*?```\n)?(?:\n!\[.*?\]\(.*?\)\n)?", re.DOTALL
)
_AT_THE_PROMPT = "at the prompt or [in a notebook](start.ipynb)"


def notebook() -> str:
    """Return the notebook's text, without outputs."""
    about = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    book = {"cells": list(_cells()), "metadata": about, "nbformat": 4, "nbformat_minor": 4}
    return json.dumps(book, indent=1, ensure_ascii=False) + "\n"


def _cells() -> Iterator[dict[str, Any]]:
    parts = _BLOCK.split(PAGE.read_text(encoding="utf-8").replace(f", {_AT_THE_PROMPT}", ""))
    for text, code in zip(parts[::2], [*parts[1::2], ""], strict=True):
        if text.strip():
            yield _cell("markdown", text.strip())
        if code:
            typed = doctest.DocTestParser().get_examples(code)
            source = "".join(example.source for example in typed) or code
            shown = "picture\n" if "picture = " in source else ""
            yield _cell("code", (source + shown).strip(), execution_count=None, outputs=[])


def _cell(kind: str, text: str, **more: Any) -> dict[str, Any]:
    return {"cell_type": kind, "metadata": {}, "source": text.splitlines(keepends=True), **more}


if __name__ == "__main__":
    NOTEBOOK.write_text(notebook(), encoding="utf-8")
