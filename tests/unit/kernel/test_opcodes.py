# SPDX-License-Identifier: Apache-2.0
"""C and Python number instructions, types and slots alike."""

from __future__ import annotations

from pyflinkcep.kernel.opcodes import HEADER, header


def test_the_header_is_made_from_python() -> None:
    """The header that C includes is what the enums in Python give; ``make kernel`` writes it."""
    assert HEADER.read_text(encoding="utf-8") == header()
