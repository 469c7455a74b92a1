# SPDX-License-Identifier: Apache-2.0
"""The kernel is of the sources at hand: C and Python number instructions, types and slots alike."""

from __future__ import annotations

import ast
import inspect
import os
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from pyflinkcep import Pattern, match, matchSase
from pyflinkcep.errors import EvaluationOfQuery
from pyflinkcep.expressions.program import Function, Op
from pyflinkcep.kernel import module, sources
from pyflinkcep.kernel.module import compiled_module
from pyflinkcep.kernel.opcodes import HEADERS
from tests.kernel_harness import needs_kernel
from tests.unit.engines.rows.test_search import TAKE_ALL, search


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


def test_a_package_in_a_zip_runs_and_says_why_it_is_slow(tmp_path: Path) -> None:
    """What ``--py-files`` sends has no kernel, and the reason is not a missing compiler."""
    package = Path(module.__file__).parents[1]
    archive = shutil.make_archive(str(tmp_path / "sent"), "zip", package.parent, package.name)
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import pyflinkcep.kernel.module as module; "
        "assert module.compiled_module() is None; print(module.__file__, module.why_missing())"
    )
    command = [sys.executable, "-c", program, archive]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    assert said.startswith(archive)
    assert "zip" in said.removeprefix(archive)


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
    of_tests = {"fail_after", "live"}  # of a build whose memory can be made to run out
    assert functions == members(compiled) - set(types) - {"operations", "sources"} - of_tests


# --- numbers that refer to nothing are refused when an object of the kernel is made


_TWO = np.arange(2)
_LAST = (int(Function.LAST), 0, 0, -1, 0, False)
_NO_PARTITION = ((), ())


def lister(
    strategy: int = 3,
    live: tuple[int, ...] = (),
    code: Any = (),
    slots: Any = (),
    gap: int = 0,
    events: int = 1,
    equal: tuple[int, int] = (-1, -1),
) -> Any:
    """A query of one component, and a negated one."""
    component = (False, strategy, (live, (), (), ()), (code, (), (), (), ()), equal, (-1, -1))
    negative = (gap, 0, ((-1, (), ()),) * events)
    return compiled_module().Lister((component,), (negative,), _NO_PARTITION, slots, -1)


def join(element: int = 0, column: int = 0, code: Any = (), items: Any = _TWO) -> Any:
    """A join of one list."""
    step = (element, -1, -1, True, None, (code,) if code else ())
    one = (_TWO, _TWO, None)
    return compiled_module().Join((one,), False, ((column, items, None),), (step,), -1)


@needs_kernel
@pytest.mark.parametrize(
    "made",
    [
        lambda: lister(strategy=4),
        lambda: lister(strategy=-1),
        lambda: lister(live=(0,)),
        lambda: lister(live=(1,), slots=(_LAST,)),
        lambda: lister(code=((Op.SLOT, 0),)),
        lambda: lister(code=((Op.FIELD, -1),)),
        lambda: lister(code=((Op.JUMP, 1),)),
        lambda: lister(gap=2),
        lambda: lister(events=0),
        lambda: lister(events=2),
        lambda: lister(equal=(0, 0)),
        lambda: lister(equal=(1, 0), slots=(_LAST,)),
        lambda: lister(equal=(-1, 0), slots=(_LAST,)),
        lambda: lister(slots=((*_LAST[:3], 1, 0, False),)),
        lambda: lister(slots=((*_LAST[:2], -2, -1, 0, False),)),
        lambda: lister(slots=(_LAST,)).set_events(2, ()),
        lambda: lister(code=((Op.FIELD, 1),)).set_events(2, ((_TWO, None, False),)),
        lambda: join(element=1),
        lambda: join(column=-1),
        lambda: join(code=((Op.FIELD, 1),)),
        lambda: search(TAKE_ALL, slots=((int(Function.SUM), (0,), 1, 0, False),)),
        lambda: search(TAKE_ALL, programs=(((Op.SLOT, 0),),)),
        lambda: lister(slots=((int(Function.FIRST), 0, 0, -1, 0, False),)),
        lambda: lister(slots=((int(Function.MEAN), 0, 0, -1, 0, True),)),
        lambda: lister(slots=((99, 0, 0, -1, 0, True),)),
        lambda: lister(code=((Op.ADD, 0),)),
        lambda: lister(code=((Op.INT, 1), (Op.ADD, 0))),
        lambda: lister(code=((Op.INT, 1), (Op.INT, 1))),
        lambda: lister(code=((Op.JUMP_UNLESS, 0), (Op.INT, 1))),
        lambda: lister(code=((Op.JUMP, 1), (Op.INT, 1), (Op.NOT, 0))),
        lambda: lister(code=((Op.INT, 1), (Op.JUMP_IF_TRUE, 1), (Op.INT, 1), (Op.NOT, 0))),
        lambda: lister(code=((Op.INT, 1), (Op.LIKE, 5))),
        lambda: lister(code=((Op.TEXT, 5),)),
        lambda: lister(code=((9, 0),)),
        lambda: join(code=((Op.CHOOSE, 0),)),
        lambda: join(code=((Op.INT, 1), (Op.INT, 1), (Op.CHOOSE, 0))),
        lambda: join(code=((Op.LE, 0),)),
        lambda: compiled_module().Join(
            ((_TWO, _TWO, None),), False, (), ((0, -1, -1, True, None, ((),)),), -1
        ),
    ],
)
def test_numbers_that_refer_to_nothing(made: Callable[[], Any]) -> None:
    """Slots, fields, columns, elements, gaps, strategies, jumps and operands must be there."""
    with pytest.raises((ValueError, IndexError), match="expected"):
        made()


@needs_kernel
@pytest.mark.parametrize("kind", ["Lister", "Backtracker", "Counter"])
@pytest.mark.parametrize("wrong", [0, 1, 2])
@pytest.mark.parametrize("bits", [2, 1 << 40, -1, -(2**63)])
def test_bits_of_what_is_not_there(kind: str, wrong: int, bits: int) -> None:
    """
    What a code begins, takes and bars has bits of the query's components and negated events only.

    Whatever takes such bits walks as far as they go.
    """
    component = (True, 3, ((), (), (), ()), ((), (), (), (), ()), (-1, -1), (-1, -1))
    negative = (0, 0, ((-1, (), ()),))
    made = getattr(compiled_module(), kind)((component,), (negative,), _NO_PARTITION, (), -1)
    made.set_events(2, ())
    masks = [np.array([1]), np.array([1]), np.array([1])]
    opened: Any = {
        "Lister": lambda: made.open(False, np.array([0, 2]), None, *events, *masks),
        "Backtracker": lambda: made.turn_to(0, None, np.array([0, 2]), None, *events, *masks),
        "Counter": lambda: made.count(*events, *masks, False, None, 0, False),
    }[kind]
    events = (_TWO, None, np.zeros(2, np.int32), None)
    opened()
    masks[wrong] = np.array([bits])
    with pytest.raises(ValueError, match="expected bits of components"):
        opened()


@needs_kernel
def test_texts_are_not_taken_for_numbers() -> None:
    """The types of fields are known when there are events: a program that confuses them fails."""
    for code in (
        ((Op.FIELD, 0), (Op.INT, 1), (Op.LT, 0)),
        ((Op.FIELD, 0), (Op.NEG, 0)),
        ((Op.INT, 1), (Op.INT, 2), (Op.CONCAT, 0)),
        ((Op.INT, 1), (Op.LIKE, str)),
    ):
        made = lister(code=code, gap=0)
        made.set_events(2, ((["x", "y"], None, False),))
        masks = (np.array([1]), np.array([0]), np.array([0]))
        made.open(False, np.array([0, 2]), None, _TWO, None, np.zeros(2, np.int32), None, *masks)
        with pytest.raises(TypeError, match="operands of the type of their operation"):
            made.next(1)


@needs_kernel
def test_floats_are_not_taken_for_integers() -> None:
    """An array says what its items are; their size is not enough."""
    two = np.array([0.5, 1.5])
    with pytest.raises(TypeError, match="integers, with items of 8 bytes, got 'd'"):
        compiled_module().Join(((two, _TWO, None),), False, (), (), -1)
    with pytest.raises(TypeError, match="array of floats"):
        lister().set_events(2, ((_TWO, None, True),))
    with pytest.raises(TypeError, match="array of integers"):
        lister().set_events(2, ((two, None, False),))
    assert join(items=two) is not None
