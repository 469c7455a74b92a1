# SPDX-License-Identifier: Apache-2.0
"""The kernel is of the sources at hand: C and Python number instructions, types and slots alike."""

from __future__ import annotations

import ast
import inspect
import os
import runpy
import shutil
from pathlib import Path
from typing import Any, get_args

import pytest

from pyflinkcep import Pattern, match, matchSase
from pyflinkcep.errors import EvaluationOfQuery
from pyflinkcep.kernel import module, sources
from pyflinkcep.kernel.opcodes import HEADERS
from tests.kernel_harness import needs_kernel


def test_the_headers_are_made_from_python() -> None:
    """The headers that C includes are what Python's tables give; ``make kernel`` writes them."""
    for path, text in HEADERS.items():
        assert path.read_text(encoding="utf-8") == text()


@needs_kernel
@pytest.mark.parametrize("part", ["_operations", "_sources"])
def test_a_kernel_of_other_sources_is_left_out(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    """A kernel built before a C file or an operation changed is not used, and a warning says so."""
    monkeypatch.setattr(module, part, lambda: "sources_00000000")
    with pytest.warns(RuntimeWarning, match=r"built from other sources(?s:.*)make kernel"):
        assert module.compiled_module() is None
    assert "make kernel" in module.why_missing()


@needs_kernel
def test_an_installed_kernel_has_no_sources_to_compare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the C files nothing says that a kernel is old."""
    monkeypatch.setattr(module, "_sources", lambda: "")
    assert module.compiled_module() is not None


@needs_kernel
@pytest.mark.filterwarnings("ignore:the compiled kernel:RuntimeWarning")
def test_every_evaluation_answers_beside_an_old_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pattern, a query in every evaluation and a clause give what the kernel gives."""
    events = [{"ts": n, "type": "AB"[n % 2], "x": n % 3} for n in range(12)]
    pattern = Pattern.begin("a").where("type = 'A'").followedBy("b").where("x > last(a.x)")
    query = "PATTERN SEQ(A a, B b) WHERE skip_till_any_match(a, b) { b.x > a.x } WITHIN 6"

    def answers() -> list[Any]:
        found = [match(pattern, events, timestamp="ts")]
        for evaluation in get_args(EvaluationOfQuery):
            found.append(matchSase(query, events, timestamp="ts", evaluation=evaluation))
        found.append(matchSase(query, events, timestamp="ts", compressed=True).count())
        return found

    expected = answers()
    monkeypatch.setattr(module, "_sources", lambda: "sources_00000000")
    assert answers() == expected


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


# --- the stub of the compiled module says what is in it


STUB = Path(module.__file__).parent / "_kernel.pyi"


def members(owner: object) -> set[str]:
    """Return the public names of a module or type."""
    return {name for name in vars(owner) if not name.startswith("_")}


@needs_kernel
def test_the_stub_has_every_type_and_method() -> None:
    """Types, methods, attributes and functions of both are the same."""
    compiled = module.compiled_module()
    tree = ast.parse(STUB.read_text(encoding="utf-8"))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}

    def described(node: ast.ClassDef) -> set[str]:
        own = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
        own |= {part.target.id for part in node.body if isinstance(part, ast.AnnAssign)}
        inherited = [described(classes[base.id]) for base in node.bases]
        return {name for name in own if not name.startswith("_")}.union(*inherited)

    types = {name: value for name, value in vars(compiled).items() if inspect.isclass(value)}
    assert {name for name in classes if not name.startswith("_")} == set(types) - {"Context"}
    for name, value in types.items():
        if name != "Context":  # what users' conditions get
            assert described(classes[name]) == members(value), name
    assert functions == members(compiled) - set(types) - {"operations", "sources"}
