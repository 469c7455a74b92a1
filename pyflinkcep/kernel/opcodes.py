# SPDX-License-Identifier: Apache-2.0
"""
The numbers that programs and slots have in C, from those of ``expressions/program.py``.

``python -m pyflinkcep.kernel.opcodes`` writes ``src/base/opcodes.h``; ``make kernel`` does so.
"""

from __future__ import annotations

import zlib
from enum import IntEnum
from pathlib import Path

from pyflinkcep.expressions.program import Function, Op, Type

__all__ = ["HEADER", "fingerprint", "header"]

HEADER = Path(__file__).parent / "src" / "base" / "opcodes.h"
"""The file that C includes; an installed package lacks it."""


def header() -> str:
    """Return the text of the header."""
    return (
        "/* SPDX-License-Identifier: Apache-2.0 */\n"
        "/* Made by kernel/opcodes.py from expressions/program.py, which says what they mean. */\n"
        "#ifndef PYFLINKCEP_OPCODES_H\n"
        "#define PYFLINKCEP_OPCODES_H\n\n"
        "/* The compiled module tells it, so that one of other numbers is refused. */\n"
        f"#define OPERATIONS {fingerprint()}\n\n"
        f"{_enums()}\n\n"
        "#endif\n"
    )


def fingerprint() -> int:
    """Return a number that changes with the numbers of operations, types and slots."""
    return zlib.crc32(_enums().encode()) & 0x7FFFFFFF


def _enums() -> str:
    return "\n\n".join(
        _enum(numbers, prefix, comment)
        for numbers, prefix, comment in (
            (Op, "OP", "The opcodes of programs."),
            (Type, "TYPE", "The types of values."),
            (Function, "SLOT", "What a slot accumulates."),
        )
    )


def _enum(numbers: type[IntEnum], prefix: str, comment: str) -> str:
    lines = "".join(f"    {prefix}_{member.name} = {member.value},\n" for member in numbers)
    return f"/* {comment} */\nenum {{\n{lines}}};"


if __name__ == "__main__":
    HEADER.write_text(header(), encoding="utf-8")
