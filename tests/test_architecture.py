# SPDX-License-Identifier: Apache-2.0
"""Who may know whom, how large a module may be, and what every public name owes its readers."""

from __future__ import annotations

import ast
import gc
import importlib
import inspect
import pickle
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs
import pytest

import pyflinkcep
from pyflinkcep.errors import CepError, CepRuntimeError
from pyflinkcep.spark.worker.bucket_task import BucketPlan
from tests.module_circles import arrows, circles, imported

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "pyflinkcep"
SPDX = "# SPDX-License-Identifier: Apache-2.0"
MAX_LINES = 1_000
ENGINES = ("pyspark", "pyarrow", "pandas", "py4j")


@attrs.frozen
class Source:
    """A file of Python, read and parsed once for all rules."""

    path: Path
    text: str
    tree: ast.Module

    @cached_property
    def _by_kind(self) -> dict[type[ast.AST], list[ast.AST]]:
        """All nodes: to walk through the trees again for each rule takes a second each."""
        found: dict[type[ast.AST], list[ast.AST]] = {}
        for node in ast.walk(self.tree):
            found.setdefault(type(node), []).append(node)
        return found

    def nodes(self, *kinds: type[ast.AST]) -> Iterator[Any]:
        """Yield the nodes of some kinds."""
        for kind, own in self._by_kind.items():
            if issubclass(kind, kinds):
                yield from own


@cache
def read(folder: Path) -> list[Source]:
    """Return the files of a folder; they stay, and no garbage is looked for among their nodes."""
    found = []
    gc.disable()
    try:
        for path in sorted(folder.rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            found.append(Source(path.relative_to(ROOT), text, ast.parse(text)))
        gc.freeze()
    finally:
        gc.enable()
    return found


@pytest.fixture(scope="module")
def package() -> list[Source]:
    """Return the files of the package."""
    return read(PACKAGE)


@pytest.fixture(scope="module")
def files(package: list[Source]) -> list[Source]:
    """Return all files."""
    return [*package, *read(ROOT / "tests"), *read(ROOT / "samples")]


def _core_modules() -> Iterator[ModuleType]:
    yield pyflinkcep
    for info in pkgutil.walk_packages([str(PACKAGE)], "pyflinkcep."):
        if not info.name.startswith("pyflinkcep.spark") and _is_engine_free(info.name):
            yield importlib.import_module(info.name)


def _is_engine_free(module: str) -> bool:
    path = ROOT / (module.replace(".", "/") + ".py")
    return not path.exists() or "pyflinkcep.spark" not in path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def modules() -> list[ModuleType]:
    """Return every module that works without an engine."""
    return list(_core_modules())


@pytest.mark.slow
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


def test_no_modules_import_each_other(package: list[Source]) -> None:
    """No module gets back to itself: by no import in a function, for types or by name either."""
    found = arrows({source.path: source for source in package})

    assert circles(found) == []
    assert sum(map(len, found.values())) > 1_000


def test_circles_of_modules_are_found() -> None:
    """A circle is found however its imports are written, and through a package's face."""
    files = {
        "pyflinkcep/__init__.py": 'import_module("pyflinkcep.above")',
        "pyflinkcep/room/__init__.py": "from pyflinkcep.room.low import Low",
        "pyflinkcep/room/low.py": "def f():\n    from pyflinkcep.room.high import High",
        "pyflinkcep/room/high.py": "if TYPE_CHECKING:\n    from pyflinkcep.room import Low",
        "pyflinkcep/above.py": 'import_module("pyflinkcep.below")',
        "pyflinkcep/below.py": "from pyflinkcep import above",
        "pyflinkcep/plain.py": "from pyflinkcep.room import Low, high",
    }
    sources = (Source(Path(path), text, ast.parse(text)) for path, text in files.items())
    found = arrows({source.path: source for source in sources})

    assert circles(found) == [
        ["pyflinkcep.above", "pyflinkcep.below"],
        ["pyflinkcep.room.high", "pyflinkcep.room.low"],
    ]


def test_only_the_driver_plans(package: list[Source]) -> None:
    """What runs on executors knows no DataFrame, no Column and no function that makes one."""
    below = tuple(f"pyflinkcep/spark/{room}/" for room in ("worker", "state", "arrow"))
    planning = ("pyspark.sql.Column", "pyspark.sql.DataFrame", "pyspark.sql.functions")
    executors = [file for file in package if str(file.path).startswith(below)]
    wrong = [
        f"{file.path}: {name}"
        for file in executors
        for node in file.nodes(ast.Import, ast.ImportFrom)
        for name in imported(node)
        if name.startswith(planning)
    ]

    assert wrong == []
    assert len(executors) > 20


def test_the_settings_of_streams_are_put_together_once(package: list[Source]) -> None:
    """One place makes the plans of patterns, queries and clauses, and it leaves nothing out."""
    calls = {
        str(source.path): [keyword.arg for keyword in node.keywords]
        for source in package
        for node in source.nodes(ast.Call)
        if isinstance(node.func, ast.Name) and node.func.id == "BucketPlan"
    }

    assert list(calls) == ["pyflinkcep/spark/plan/stream.py"]
    settings = {field.name for field in attrs.fields(BucketPlan)}
    assert settings - set(*calls.values()) == {"ahead_ms"}, "which grows with each withEventTime"


@pytest.mark.parametrize(
    "module",
    [
        "pyflinkcep",
        "pyflinkcep.testing",
        "pyflinkcep.engines.flink.operator",
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


@pytest.mark.slow
def test_a_job_begins_without_pandas() -> None:
    """Jobs do not wait for pandas to load: only a stream's tasks use it, which have it from Spark."""
    code = "import sys, pyflinkcep; pyflinkcep.CEP; print('pandas' in sys.modules)"
    outcome = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert outcome.stdout.split() == ["False"]


@pytest.mark.parametrize(
    ("module", "unneeded"),
    [
        ("batch", ("sase", "show", "match_recognize", "testing")),
        ("pack", ("sase", "show", "match_recognize", "testing")),
        ("processor", ("sase", "show", "match_recognize", "testing", "pattern", "expressions")),
    ],
)
def test_workers_load_what_they_run(module: str, unneeded: tuple[str, ...]) -> None:
    """Each new worker imports anew: not what users write in another language, or look at."""
    code = f"import sys, pyflinkcep.spark.worker.{module}; print(*sys.modules)"
    outcome = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    loaded = {name.split(".")[1] for name in outcome.stdout.split() if "pyflinkcep." in name}

    assert loaded & set(unneeded) == set()


def test_the_package_lists_its_names() -> None:
    """``dir`` gives the public names, those on Spark among them; another name is an error."""
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = pyflinkcep.nothing

    assert sorted(dir(pyflinkcep)) == sorted(pyflinkcep.__all__)


def test_private_names_stay_in_their_room(package: list[Source]) -> None:
    """A module uses no name with an underscore of a module in another folder."""
    known: dict[str, set[Path]] = {}
    used: list[tuple[Source, ast.Attribute | ast.alias, str]] = []
    for file in package:
        names = [node.name for node in file.nodes(ast.FunctionDef, ast.ClassDef)]
        targets = [node.target for node in file.nodes(ast.AnnAssign)]
        targets += [target for node in file.nodes(ast.Assign) for target in node.targets]
        names += [target.id for target in targets if isinstance(target, ast.Name)]
        for node in file.nodes(ast.Attribute):
            if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
                names.append(node.attr)
            else:
                used.append((file, node, node.attr))
        used += [(file, alias, alias.name) for node in file.nodes(ast.ImportFrom)
                 if str(node.module).startswith("pyflinkcep") for alias in node.names]  # fmt: skip
        for name in names:
            known.setdefault(name, set()).add(file.path.parent)

    assert not [
        f"{file.path}:{node.lineno}: {name}"
        for file, node, name in used
        if name.startswith("_") and not name.startswith("__") and name not in ("_kernel",)
        if file.path.parent not in known.get(name, {file.path.parent})
    ]


def test_files_begin_with_the_licence(files: list[Source]) -> None:
    """The first line of every Python file names the licence."""
    assert [file.path for file in files if file.text.split("\n", 1)[0] != SPDX] == []


def test_files_that_code_names_exist() -> None:
    """A file named by its folder, as "specifies kernel/src/base/…", is where the reader is sent."""
    sources = [path for path in PACKAGE.rglob("*") if path.suffix in (".py", ".c", ".h")]
    files = {"/" + path.relative_to(ROOT).as_posix() for path in sources}
    named = {
        (path.relative_to(ROOT).as_posix(), name)
        for path in sources
        for name in re.findall(r"[\w.]+(?:/[\w.]+)+\.(?:py|[ch])\b", path.read_text("utf-8"))
    }
    assert len(named) > 100
    assert [x for x in sorted(named) if not any(f.endswith("/" + x[1]) for f in files)] == []


def test_modules_are_small(files: list[Source]) -> None:
    """A file has fewer than 1,000 lines: one concept, whole."""
    lengths = {str(file.path): len(file.text.splitlines()) for file in files}

    assert {path: lines for path, lines in lengths.items() if lines >= MAX_LINES} == {}


def _public(module: ModuleType) -> list[str]:
    names: list[str] | None = getattr(module, "__all__", None)
    if names is not None:
        return names
    own = ((name, getattr(what, "__module__", None)) for name, what in vars(module).items())
    return [n for n, place in own if place == module.__name__ and not n.startswith("_")]


def test_public_names_exist(modules: list[ModuleType]) -> None:
    """Every name in ``__all__`` is there, and listed once."""
    missing = [
        f"{module.__name__}.{name}"
        for module in modules
        for name in _public(module)
        if not hasattr(module, name) or _public(module).count(name) > 1
    ]

    assert missing == []


def test_public_names_have_docstrings(modules: list[ModuleType]) -> None:
    """Every public class and function, and each public method of a class, says what it does."""
    silent = []
    for module in modules:
        for name in _public(module):
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                silent += [f"{module.__name__}.{member}" for member in _silent(name, value)]

    assert silent == []


def _silent(name: str, value: Any) -> list[str]:
    """Return the names of what has no docstring: a class or function, and a class's members."""
    silent = [] if value.__doc__ else [name]
    if inspect.isclass(value) and value.__module__.startswith("pyflinkcep"):
        silent += [
            f"{name}.{attribute}"
            for attribute, member in vars(value).items()
            if not attribute.startswith("_")
            and (inspect.isfunction(member) or isinstance(member, property))
            and not inspect.getdoc(member)
        ]
    return silent


def test_modules_have_docstrings(modules: list[ModuleType]) -> None:
    """Every module says what it is about."""
    assert [module.__name__ for module in modules if not module.__doc__] == []


def test_test_functions_state_their_rule(files: list[Source]) -> None:
    """Every test has a docstring of one sentence: the rule it checks."""
    tests = [
        (file, node)
        for file in files
        for node in file.nodes(ast.FunctionDef)
        if node.name.startswith("test_")
    ]
    silent = [
        f"{file.path}: {node.name}"
        for file, node in tests
        if not (ast.get_docstring(node) or "").endswith(".")
    ]

    assert silent == []
    assert len(tests) > 500


# --- errors


def _errors() -> list[type[CepError]]:
    found: list[type[CepError]] = [CepError]
    for error in found:
        found += [cls for cls in error.__subclasses__() if cls.__module__ == "pyflinkcep.errors"]
    return found


_ERRORS = _errors()


@pytest.mark.parametrize("error", _ERRORS)
def test_errors_are_public_and_described(error: type[CepError]) -> None:
    """Every error of the tree is in one module and has a docstring of its own."""
    errors = importlib.import_module("pyflinkcep.errors")

    assert (hasattr(errors, error.__name__), bool(error.__doc__)) == (True, True)


@pytest.mark.parametrize("error", _ERRORS[1:])
def test_errors_have_a_builtin_parent(error: type[CepError]) -> None:
    """What a Python programmer would catch catches the error: it has a specific builtin parent."""
    builtin = [c for c in error.__mro__ if c.__module__ == "builtins"]

    assert builtin[0] not in (Exception, BaseException, object)


@pytest.mark.parametrize("error", _ERRORS)
def test_errors_survive_pickling(error: type[CepError]) -> None:
    """Type, message, hint, text and every further fact of an error are the same after pickling."""
    facts = list(inspect.signature(error.__init__).parameters)[1:]
    given: Any = {name: f"the {name}" for name in facts}
    original = error(**given)
    copy = pickle.loads(pickle.dumps(original))

    assert (type(copy), str(copy), vars(copy)) == (error, str(original), vars(original))


@pytest.mark.parametrize("error", _ERRORS)
def test_errors_show_their_hint(error: type[CepError]) -> None:
    """The text is the message, and the hint after a blank line where there is one."""
    assert [str(error("m", "h")), str(error("m"))] == ["m\n\nHint: h", "m"]


_REFUSALS = {error.__name__ for error in _ERRORS if not issubclass(error, CepRuntimeError)}


def test_refusals_have_a_hint(package: list[Source]) -> None:
    """Where the package refuses something it says what to do instead; no bare Exception is raised."""
    wrong, refusals = [], 0
    for file in package:
        for node in file.nodes(ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            arguments = len(node.args) + sum(keyword.arg == "hint" for keyword in node.keywords)
            refusals += name in _REFUSALS
            if name == "Exception" or (name in _REFUSALS and arguments < 2):
                wrong.append(f"{file.path}:{node.lineno}: {name}")

    assert wrong == []
    assert refusals > 100
