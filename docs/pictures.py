# SPDX-License-Identifier: Apache-2.0
"""
Draws the pictures of the manual from its pages' own examples: ``make pictures``.

Most pages name their picture ``picture``; ``PICTURES`` has those with several, or none.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PICTURES: dict[str, dict[str, Callable[[dict[str, Any]], Any]]] = {
    "../README.md": {
        "readme-why-not.svg": lambda names: names["counted"],
        "readme-trace.svg": lambda names: names["traced"],
    },
    "why.md": {
        "why-pattern.svg": lambda names: names["wrong"].diagram(),
        "why-trace.svg": lambda names: names["second_found"].diagram(),
        "why-not.svg": lambda names: names["why"].diagram(),
        "why-mended.svg": lambda names: names["mended_found"].diagram(),
        "why-changed.svg": lambda names: names["changed"].diagram(),
        "why-compare.svg": lambda names: names["loops"].diagram(),
    },
    "funnel.md": {"funnel.svg": lambda names: names["bought"].diagram()},
    "contiguity.md": {"contiguity.svg": lambda names: names["picture"]},
    "index.md": {"index-pattern.svg": lambda names: names["picture"]},
    "start.md": {"start-pattern.svg": lambda names: names["picture"]},
    **{
        f"gallery/{page.name}": {
            f"gallery/{page.stem}.svg": lambda names: names["picture"],
        }
        for page in sorted(HERE.glob("gallery/*.md"))
        if page.stem != "index"
    },
}
_PROGRAM = re.compile(r"```python\n((?!>>>).*?)```", re.DOTALL)


def drawn() -> dict[str, str]:
    """Return the pictures by the names of their files."""
    found = {}
    for page, pictures in PICTURES.items():
        names = _names(HERE / page)
        found |= {name: f"{picture(names).svg}\n" for name, picture in pictures.items()}
    return found


def _names(page: Path) -> dict[str, Any]:
    """Return what a page's examples have named: those at the prompt, otherwise its programs."""
    names: dict[str, Any] = {}
    text = page.read_text(encoding="utf-8")
    typed = doctest.DocTestParser().get_examples(text)
    sources = [(example.source, "single") for example in typed]
    with contextlib.redirect_stdout(io.StringIO()), _scratch():
        for source, how in sources or [(program, "exec") for program in _PROGRAM.findall(text)]:
            exec(compile(source, str(page), how), names)
    return names


@contextlib.contextmanager
def _scratch():
    """Work in a folder for the files that examples write."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


if __name__ == "__main__":
    for file, svg in drawn().items():
        (HERE / file).write_text(svg, encoding="utf-8")
