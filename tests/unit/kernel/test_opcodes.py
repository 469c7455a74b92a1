# SPDX-License-Identifier: Apache-2.0
"""The kernel is of the sources at hand: C and Python number instructions, types and slots alike."""

from __future__ import annotations

import os
import runpy
import shutil
from pathlib import Path

import pytest

from pyflinkcep.errors import NotSupportedError
from pyflinkcep.kernel import module, opcodes, sources
from pyflinkcep.kernel.opcodes import HEADERS
from tests.kernel_harness import needs_kernel


def test_the_headers_are_made_from_python() -> None:
    """The headers that C includes are what Python's tables give; ``make kernel`` writes them."""
    for path, text in HEADERS.items():
        assert path.read_text(encoding="utf-8") == text()


@needs_kernel
def test_a_kernel_of_other_operations_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module whose operations have other numbers computes nothing; the error says what to do."""
    monkeypatch.setattr(module, "_operations", lambda: opcodes.fingerprint() + 1)

    with pytest.raises(NotSupportedError, match=r"built from other sources"):
        module.compiled_module()


@needs_kernel
def test_a_kernel_of_other_sources_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel built before any C file changed is not used; without the sources, it is."""
    monkeypatch.setattr(module, "_sources", lambda: "sources_00000000")
    with pytest.raises(NotSupportedError, match=r"built from other sources(?s:.*)make kernel"):
        module.compiled_module()

    monkeypatch.setattr(module, "_sources", lambda: "")
    assert module.compiled_module() is not None


def test_any_change_of_the_sources_is_seen(tmp_path: Path) -> None:
    """A changed, a new and a renamed file each change the fingerprint; other times of files don't."""
    room = tmp_path / "package" / "kernel"
    (room / "src" / "base").mkdir(parents=True)
    copied = shutil.copy(sources.__file__, room)

    def seen() -> str:
        found: str = runpy.run_path(copied)["fingerprint"]()
        return found

    assert seen() == "", "an installed package has no sources"
    state = room / "src" / "base" / "state.h"
    state.write_text("struct State { int a; };")
    told = [seen()]
    os.utime(state, (0, 0))
    assert seen() == told[0]
    state.write_text("struct State { int a, b; };")
    told.append(seen())
    told.append(state.rename(state.with_name("states.h")) and seen())
    (room / "src" / "more.c").write_text("")
    told.append(seen())
    (tmp_path / "setup.py").write_text("FLAGS = []")
    told.append(seen())
    assert len(set(told)) == 5
