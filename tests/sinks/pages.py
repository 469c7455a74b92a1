# SPDX-License-Identifier: Apache-2.0
"""The programs on the pages of sinks, so that what is tested is what they show."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_PAGES = Path(__file__).parents[2] / "docs" / "sinks"
_BLOCK = re.compile(r"```python\n((?!>>>).*?)```", re.DOTALL)


def names_of(page: str) -> dict[str, Any]:
    """Return what the programs of a page define."""
    names: dict[str, Any] = {"__name__": "__main__"}  # so that Spark sends functions whole
    for program in _BLOCK.findall((_PAGES / f"{page}.md").read_text(encoding="utf-8")):
        exec(program, names)
    return names
