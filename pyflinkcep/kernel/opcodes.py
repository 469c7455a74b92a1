# SPDX-License-Identifier: Apache-2.0
"""
The numbers that programs and slots have in C, and the rules of operations, from Python's.

``python -m pyflinkcep.kernel.opcodes`` writes ``src/base/opcodes.h`` and ``src/base/rules.h`` from
``expressions/program.py``; ``make kernel`` does so.
"""

from __future__ import annotations

import zlib
from enum import IntEnum
from pathlib import Path

from pyflinkcep.expressions.numbers import NUMBER_FUNCTIONS
from pyflinkcep.expressions.program import BITS, RULES, Function, Nulls, Op, Type, floats_compared

_BASE = Path(__file__).parent / "src" / "base"


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


def rules_header() -> str:
    """Return the text of the header with the rules of operations, and functions."""
    return (
        "/* SPDX-License-Identifier: Apache-2.0 */\n"
        "/* Made by kernel/opcodes.py from expressions/program.py, which says what they mean. */\n"
        "#ifndef PYFLINKCEP_RULES_H\n"
        "#define PYFLINKCEP_RULES_H\n\n"
        '#include "base/opcodes.h"\n\n'
        "#include <stdbool.h>\n"
        "#include <stdint.h>\n\n"
        f"{_rules()}\n\n"
        "#endif\n"
    )


def _rules() -> str:
    nulls = "".join(
        f"    [OP_{op.name}] = NULLS_{rule.nulls.name},\n" for op, rule in RULES.items()
    )
    operands = "".join(f"    [OP_{op.name}] = {rule.operands},\n" for op, rule in RULES.items())
    first = next(iter(NUMBER_FUNCTIONS)).upper()
    functions = " \\\n".join(
        f"    CASE(OP_{name.upper()}, {of.c})" for name, of in NUMBER_FUNCTIONS.items()
    )
    return "\n\n".join(
        (
            f"enum {{ OPCODES = OP_{max(Op).name} + 1, FIRST_FUNCTION = OP_{first} }};",
            _enum(Nulls, "NULLS", "What NULL does to the result of an operation."),
            f"static const uint8_t NULLS_OF[OPCODES] = {{\n{nulls}}};",
            f"/* How many values an operation computes one of; 0 for other instructions. */\n"
            f"static const uint8_t OPERANDS_OF[OPCODES] = {{\n{operands}}};",
            f"/* A second operand of zero is an error or NULL. */\n"
            f"static const bool DIVIDES[OPCODES] = {{\n{_flags('divides')}}};",
            f"/* The result is NULL for zero and negative numbers. */\n"
            f"static const bool OF_POSITIVE[OPCODES] = {{\n{_flags('of_positive')}}};",
            "/* The functions of the doubles a and b. */\n"
            f"#define NUMBER_FUNCTIONS(CASE) \\\n{functions}",
            "/* NaN equals itself and is greater than all other numbers. */\n"
            f"{_comparison('float_less', Op.LT)}\n\n{_comparison('float_equal', Op.EQ)}",
        )
    )


def _flags(name: str) -> str:
    return "".join(f"    [OP_{op.name}] = true,\n" for op, of in RULES.items() if getattr(of, name))


def _comparison(name: str, op: Op) -> str:
    """Return a comparison of floats in C, without branches."""
    text = floats_compared(op, "a", "b", BITS)
    return f"static inline bool {name}(double a, double b) {{ return {text}; }}"


HEADERS = {_BASE / "opcodes.h": header, _BASE / "rules.h": rules_header}
"""The files that C includes, which an installed package lacks, and their texts."""


def fingerprint() -> int:
    """Return a number that changes with operations, types, slots and rules."""
    return zlib.crc32((_enums() + _rules()).encode()) & 0x7FFFFFFF


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
    for path, text in HEADERS.items():
        path.write_text(text(), encoding="utf-8")
