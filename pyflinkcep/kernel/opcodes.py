# SPDX-License-Identifier: Apache-2.0
"""
The numbers that programs and slots have in C, from those of ``expressions/program.py``.

``python -m pyflinkcep.kernel.opcodes`` writes ``src/base/opcodes.h``; ``make kernel`` does so.
"""

from __future__ import annotations

from enum import IntEnum
from pathlib import Path

from pyflinkcep.expressions.program import Function, Op, Type

__all__ = ["HEADER", "header"]

HEADER = Path(__file__).parent / "src" / "base" / "opcodes.h"
"""The file that C includes; an installed package lacks it."""


def header() -> str:
    """Return the text of the header."""
    enums = "\n\n".join(
        _enum(numbers, prefix, comment)
        for numbers, prefix, comment in (
            (Op, "OP", "The opcodes of programs."),
            (Type, "TYPE", "The types of values."),
            (Function, "SLOT", "What a slot accumulates."),
        )
    )
    return (
        "/* SPDX-License-Identifier: Apache-2.0 */\n"
        "/* Made by kernel/opcodes.py from expressions/program.py, which says what they mean. */\n"
        "#ifndef PYFLINKCEP_OPCODES_H\n"
        "#define PYFLINKCEP_OPCODES_H\n\n"
        f"{enums}\n\n"
        "#endif\n"
    )


def _enum(numbers: type[IntEnum], prefix: str, comment: str) -> str:
    lines = "".join(f"    {prefix}_{member.name} = {member.value},\n" for member in numbers)
    return f"/* {comment} */\nenum {{\n{lines}}};"


if __name__ == "__main__":
    HEADER.write_text(header(), encoding="utf-8")
