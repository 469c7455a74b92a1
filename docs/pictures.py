# SPDX-License-Identifier: Apache-2.0
"""Draws the pictures of the manual from its pages' own examples: ``make pictures``."""

from __future__ import annotations

import contextlib
import doctest
import io
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PICTURES = {
    "why.md": {
        "why-pattern.svg": lambda names: names["wrong"].diagram(),
        "why-trace.svg": lambda names: names["second_found"].diagram(),
        "why-not.svg": lambda names: names["why"].diagram(),
        "why-mended.svg": lambda names: names["mended_found"].diagram(),
    },
    "funnel.md": {"funnel.svg": lambda names: names["bought"].diagram()},
}


def drawn() -> dict[str, str]:
    """Return the pictures by the names of their files."""
    found = {}
    for page, pictures in PICTURES.items():
        names: dict[str, Any] = {}
        text = (HERE / page).read_text(encoding="utf-8")
        with contextlib.redirect_stdout(io.StringIO()):
            for example in doctest.DocTestParser().get_examples(text):
                exec(compile(example.source, page, "single"), names)
        found |= {name: f"{picture(names).svg}\n" for name, picture in pictures.items()}
    return found


if __name__ == "__main__":
    for file, svg in drawn().items():
        (HERE / file).write_text(svg, encoding="utf-8")
