# SPDX-License-Identifier: Apache-2.0
"""Who may know whom, how large a module may be, and what every public name owes its readers."""

from __future__ import annotations

import ast
import importlib
import inspect
import pickle
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import pyflinkcep
from pyflinkcep.errors import CepError, CepRuntimeError

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "pyflinkcep"
SPDX = "# SPDX-License-Identifier: Apache-2.0"
MAX_LINES = 400
ENGINES = ("pyspark", "pyarrow", "pandas", "py4j")

_FILES = sorted(
    path for folder in (PACKAGE, ROOT / "tests", ROOT / "samples") for path in folder.rglob("*.py")
)


def _names(paths: list[Path]) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in paths]


def _core_modules() -> Iterator[ModuleType]:
    """Return every module that works without an engine."""
    yield pyflinkcep
    for info in pkgutil.walk_packages([str(PACKAGE)], "pyflinkcep."):
        if not info.name.startswith("pyflinkcep.spark") and _is_engine_free(info.name):
            yield importlib.import_module(info.name)


def _is_engine_free(module: str) -> bool:
    path = ROOT / (module.replace(".", "/") + ".py")
    return not path.exists() or "pyflinkcep.spark" not in path.read_text(encoding="utf-8")


_MODULES = list(_core_modules())


def test_imports_point_one_way() -> None:
    """The layers and forbidden imports declared in setup.cfg hold."""
    pytest.importorskip("importlinter")
    outcome = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (outcome.returncode, outcome.stdout[-3000:] if outcome.returncode else "") == (0, "")


_BELOW_PLAN = [
    path
    for room in ("worker", "matching", "state", "arrow")
    for path in sorted((PACKAGE / "spark" / room).glob("*.py"))
]


@pytest.mark.parametrize("path", _BELOW_PLAN, ids=_names(_BELOW_PLAN))
def test_only_the_driver_plans(path: Path) -> None:
    """What runs on executors knows no DataFrame, no Column and no function that makes one."""
    imported = {
        f"{node.module}.{name.name}" if isinstance(node, ast.ImportFrom) else name.name
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    }
    planning = ("pyspark.sql.Column", "pyspark.sql.DataFrame", "pyspark.sql.functions")

    assert [name for name in sorted(imported) if name.startswith(planning)] == []


@pytest.mark.parametrize(
    "module",
    [
        "pyflinkcep",
        "pyflinkcep.testing",
        "pyflinkcep.operator",
        "pyflinkcep.functions",
    ],
)
def test_the_core_imports_no_engine(module: str) -> None:
    """Importing the package, and everything below the Spark layer, loads no engine."""
    code = f"import sys, {module}; print(*sorted(set(sys.modules) & set({ENGINES!r})))"
    outcome = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert outcome.stdout.split() == []


def test_the_package_lists_its_names() -> None:
    """``dir`` gives the public names, those on Spark among them; another name is an error."""
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = pyflinkcep.nothing

    assert sorted(dir(pyflinkcep)) == sorted(pyflinkcep.__all__)


@pytest.mark.parametrize("path", _FILES, ids=_names(_FILES))
def test_files_begin_with_the_licence(path: Path) -> None:
    """The first line of every Python file names the licence."""
    first = path.read_text(encoding="utf-8").split("\n", 1)[0]

    assert first == SPDX


@pytest.mark.parametrize("path", _FILES, ids=_names(_FILES))
def test_modules_are_small(path: Path) -> None:
    """A file has fewer than 400 lines: one concept each."""
    lines = len(path.read_text(encoding="utf-8").splitlines())

    assert lines < MAX_LINES


def _public(module: ModuleType) -> list[str]:
    names: list[str] = getattr(module, "__all__", [])
    return names


@pytest.mark.parametrize("module", _MODULES, ids=[m.__name__ for m in _MODULES])
def test_public_names_exist(module: ModuleType) -> None:
    """Every name in ``__all__`` is there, and listed once."""
    names = _public(module)
    missing = [name for name in names if not hasattr(module, name)]

    assert (missing, len(set(names))) == ([], len(names))


@pytest.mark.parametrize("module", _MODULES, ids=[m.__name__ for m in _MODULES])
def test_public_names_have_docstrings(module: ModuleType) -> None:
    """Every public class and function, and each public method of a class, says what it does."""
    silent = []
    for name in _public(module):
        value = getattr(module, name)
        if not (inspect.isclass(value) or inspect.isfunction(value)):
            continue
        if not value.__doc__:
            silent.append(name)
        if inspect.isclass(value) and value.__module__.startswith("pyflinkcep"):
            silent += [
                f"{name}.{attribute}"
                for attribute, member in vars(value).items()
                if not attribute.startswith("_")
                and (inspect.isfunction(member) or isinstance(member, property))
                and not inspect.getdoc(member)
            ]

    assert silent == []


@pytest.mark.parametrize("module", _MODULES, ids=[m.__name__ for m in _MODULES])
def test_modules_have_docstrings(module: ModuleType) -> None:
    """Every module says what it is about."""
    assert module.__doc__


@pytest.mark.parametrize("path", _FILES, ids=_names(_FILES))
def test_test_functions_state_their_rule(path: Path) -> None:
    """Every test has a docstring of one sentence: the rule it checks."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tests = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    silent = [node.name for node in tests if not (ast.get_docstring(node) or "").endswith(".")]

    assert silent == []


# --- errors


def _errors() -> list[type[CepError]]:
    found: list[type[CepError]] = [CepError]
    for error in found:
        found += [cls for cls in error.__subclasses__() if cls.__module__ == "pyflinkcep.errors"]
    return found


_ERRORS = _errors()


@pytest.mark.parametrize("error", _ERRORS)
def test_errors_are_public_and_described(error: type[CepError]) -> None:
    """Every error of the tree is in ``__all__`` and has a docstring of its own."""
    errors = importlib.import_module("pyflinkcep.errors")

    assert (error.__name__ in errors.__all__, bool(error.__doc__)) == (True, True)


@pytest.mark.parametrize("error", _ERRORS[1:])
def test_errors_have_a_builtin_parent(error: type[CepError]) -> None:
    """What a Python programmer would catch catches the error: it has a specific builtin parent."""
    builtin = [c for c in error.__mro__ if c.__module__ == "builtins"]

    assert builtin[0] not in (Exception, BaseException, object)


@pytest.mark.parametrize("error", _ERRORS)
def test_errors_survive_pickling(error: type[CepError]) -> None:
    """Type, message, hint, text and every further fact of an error are the same after pickling."""
    facts = list(inspect.signature(error.__init__).parameters)[1:]
    original = error(*[f"the {name}" for name in facts])
    copy = pickle.loads(pickle.dumps(original))

    assert (type(copy), str(copy), vars(copy)) == (error, str(original), vars(original))


@pytest.mark.parametrize("error", _ERRORS)
def test_errors_show_their_hint(error: type[CepError]) -> None:
    """The text is the message, and the hint after a blank line where there is one."""
    assert [str(error("m", "h")), str(error("m"))] == ["m\n\nHint: h", "m"]


_RAISERS = sorted(PACKAGE.rglob("*.py"))
_REFUSALS = {error.__name__ for error in _ERRORS if not issubclass(error, CepRuntimeError)}


@pytest.mark.parametrize("path", _RAISERS, ids=_names(_RAISERS))
def test_refusals_have_a_hint(path: Path) -> None:
    """Where the package refuses something it says what to do instead; no bare Exception is raised."""
    wrong = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
            continue
        arguments = len(node.args) + sum(keyword.arg == "hint" for keyword in node.keywords)
        if node.func.id == "Exception" or (node.func.id in _REFUSALS and arguments < 2):
            wrong.append(f"line {node.lineno}: {node.func.id}")

    assert wrong == []
