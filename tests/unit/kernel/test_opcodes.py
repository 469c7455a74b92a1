# SPDX-License-Identifier: Apache-2.0
"""C and Python number instructions, types and slots alike."""

from __future__ import annotations

import pytest

from pyflinkcep.errors import NotSupportedError
from pyflinkcep.kernel import module
from pyflinkcep.kernel.opcodes import HEADER, header
from tests.kernel_harness import needs_kernel


def test_the_header_is_made_from_python() -> None:
    """The header that C includes is what the enums in Python give; ``make kernel`` writes it."""
    assert HEADER.read_text(encoding="utf-8") == header()


@needs_kernel
def test_a_kernel_of_other_sources_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module whose operations have other numbers computes nothing; the error says what to do."""
    monkeypatch.setattr(module, "_OPERATIONS", module._OPERATIONS + 1)

    with pytest.raises(NotSupportedError, match=r"built from other sources"):
        module.compiled_module()
