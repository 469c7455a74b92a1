# SPDX-License-Identifier: Apache-2.0
"""C and Python number instructions, types and slots alike."""

from __future__ import annotations

import pytest

from pyflinkcep.errors import NotSupportedError
from pyflinkcep.kernel import module
from pyflinkcep.kernel.opcodes import HEADERS
from tests.kernel_harness import needs_kernel


def test_the_headers_are_made_from_python() -> None:
    """The headers that C includes are what Python's tables give; ``make kernel`` writes them."""
    for path, text in HEADERS.items():
        assert path.read_text(encoding="utf-8") == text()


@needs_kernel
def test_a_kernel_of_other_sources_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module whose operations have other numbers computes nothing; the error says what to do."""
    monkeypatch.setattr(module, "_OPERATIONS", module._OPERATIONS + 1)

    with pytest.raises(NotSupportedError, match=r"built from other sources"):
        module.compiled_module()
