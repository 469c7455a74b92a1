# SPDX-License-Identifier: Apache-2.0
"""A module of Python as it is put together."""

from __future__ import annotations

import ast
import keyword
import re
import sys
import textwrap
import tokenize
from collections.abc import Iterable

import attrs

from pyflinkcep.migrate.chains.lookup import simple_name, snake
from pyflinkcep.migrate.chains.values import Symbol
from pyflinkcep.migrate.translated import Translated

__all__ = ["Module", "python_type"]


NARROW = 88
_NOQA = re.compile(r"[ ]*# noqa: N\d+")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_UNNEEDED = re.compile(r'(?<=""")\n\s+pass$', re.MULTILINE)


_TYPES = {
    "boolean": "bool",
    "Boolean": "bool",
    "String": "str",
    "double": "float",
    "float": "float",
    "Double": "float",
    "Duration": "timedelta",
    "Time": "timedelta",
    "AfterMatchSkipStrategy": "AfterMatchSkipStrategy",
}


def python_type(java: str) -> str:
    """Return the annotation of a parameter of a Java type."""
    if java.startswith("List<"):
        return f"list[{python_type(java[5:-1])}]"
    return _TYPES.get(simple_name(java), "int")


@attrs.define(eq=False)
class Module:
    """
    A module of Python.

    Attributes
    ----------
    docstring : str
        What it is about.
    """

    docstring: str
    _imports: set[str] = attrs.field(factory=set)
    _constants: list[str] = attrs.field(factory=list)
    _functions: list[str] = attrs.field(factory=list)
    _main: list[str] = attrs.field(factory=list)
    _names: dict[str, str] = attrs.field(factory=dict)

    def use(self, *statements: str) -> None:
        """Add import statements."""
        self._imports.update(statements)

    def name(self, wanted: str, what: str = "") -> str:
        """Return a name that nothing else in the module has, and keep it for what is given."""
        made, number = wanted, 1
        while made in self._names and (self._names[made] != what or not what):
            number += 1
            made = f"{wanted}_{number}"
        self._names[made] = what or made
        return made

    def python_of(self, symbol: Symbol) -> str:
        """Return a value that is known at run time alone as Python."""
        return symbol.python(self._imports)

    def has(self, name: str, what: str) -> bool:
        """Whether a name is that of something already."""
        return self._names.get(name) == what

    def constant(self, name: str, value: str, comment: str = "") -> str:
        """Add a constant, once; return its name."""
        known = [
            key
            for key, what in self._names.items()
            if what == f"= {value}" and key.startswith(name)
        ]
        if known:
            return known[0]
        made = self.name(name, f"= {value}")
        text = f"{made} = {value}"
        if comment:
            text += f'\n"""{comment}"""'
        self._constants.append(text)
        return made

    def function(self, text: str) -> None:
        """Add a function or class."""
        self._functions.append(text.strip("\n"))

    def main(self, text: str) -> None:
        """Add statements that run if the module is the program."""
        self._main.append(text)

    def define(self, made: Translated) -> str:
        """Add a translated function, once; return its name."""
        assert made.name is not None
        assert made.python is not None
        if keyword.iskeyword(made.name):
            python = _renamed(made.python, made.name, f"{made.name}_")
            made = attrs.evolve(made, name=f"{made.name}_", python=python)
        assert made.name is not None
        assert made.python is not None
        name = self.name(made.name, made.python)
        self.use(*made.imports)
        text = _UNNEEDED.sub("", _NOQA.sub("", made.python))
        if name != made.name:
            text = _renamed(text, made.name, name)
        if text.strip("\n") not in self._functions:
            self.function(text)
        return name

    def factory(self, made: Translated, given: dict[str, str], result: str) -> str:
        """Add a function that makes a translated one of some values; return its name."""
        assert made.name is not None
        name = self.name(made.name)
        inner_name = "condition" if "bool" in result else "function"
        is_class = f"class {made.name}(" in (made.python or "")
        inner_name = "Results" if is_class else inner_name
        self.use(*made.imports)
        if "Callable" in result:
            self.use("from collections.abc import Callable")
        if any(python_type(kind) == "timedelta" for kind in given.values()):
            self.use("from datetime import timedelta")
        inner = _renamed(made.python or "", made.name, inner_name).strip()
        doc = '"""Return the function for values that are known at run time."""'
        doc = doc.replace("function", "condition") if inner_name == "condition" else doc
        returned = f"{inner_name}()" if is_class else inner_name
        body = textwrap.indent(f"{doc}\n\n{inner}\n\nreturn {returned}", "    ")
        typed = ", ".join(f"{one}: {python_type(kind)}" for one, kind in given.items())
        name = snake(name) if is_class else name
        self.function(f"def {name}({typed}) -> {result}:\n{body}")
        return name

    def text(self) -> str:
        """Return the module."""
        body = "\n\n\n".join(self._functions)
        main = "\n\n".join(self._main)
        written = "\n".join([*self._constants, body, main])
        parts = [self.docstring, _imports(_used(self._imports, written))]
        if self._constants:
            parts.append("\n\n".join(self._constants))
        head = "\n\n".join(part for part in parts if part)
        text = "\n\n\n".join(part for part in (head, body, main) if part) + "\n"
        return _CONTROL.sub("?", text)


def _renamed(python: str, old: str, new: str) -> str:
    """Return Python with another name in the place of one; texts keep what they say."""
    lines = python.splitlines(keepends=True)
    tokens = tokenize.generate_tokens(iter(lines).__next__)
    places = [token.start for token in tokens if (token.type, token.string) == (tokenize.NAME, old)]
    for row, column in reversed(places):
        line = lines[row - 1]
        lines[row - 1] = line[:column] + new + line[column + len(old) :]
    return "".join(lines)


def _used(statements: Iterable[str], python: str) -> list[str]:
    """Return the import statements whose names are read, each of one name."""
    single = [
        f"{head} import {name.strip()}" if head else f"import {name.strip()}"
        for head, names in (one.split("import ", 1) for one in statements)
        for name in names.split(",")
        for head in [head.strip()]
    ]
    try:
        tree = ast.parse(python)
    except SyntaxError:
        return single
    read = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return [one for one in single if one.split(" ")[-1].partition(".")[0] in read]


def _imports(statements: Iterable[str]) -> str:
    """Return import statements sorted as linters want them."""
    named: dict[str, set[str]] = {}
    plain: set[str] = set()
    for statement in statements:
        if statement.startswith("from "):
            module, names = statement[5:].split(" import ", 1)
            named.setdefault(module, set()).update(n.strip() for n in names.split(","))
        else:
            plain.add(statement.removeprefix("import ").strip())
    blocks = []
    for group in range(3):
        lines = [f"import {m}" for m in sorted(plain) if _group(m) == group]
        lines += [_from(m, named[m]) for m in sorted(named) if _group(m) == group]
        if lines:
            blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _group(module: str) -> int:
    root = module.split(".")[0].split(" ")[0]
    return 0 if root == "__future__" else 1 if root in sys.stdlib_module_names else 2


def _from(module: str, names: set[str]) -> str:
    aliased = sorted(name for name in names if " as " in name)
    ordered = sorted(
        (name for name in names if " as " not in name),
        key=lambda n: (not n.isupper() or len(n) == 1, not n[:1].isupper(), n.lower()),
    )
    lines = []
    if ordered:
        line = f"from {module} import {', '.join(ordered)}"
        if len(line) > NARROW:  # the same for linters of either width
            body = "".join(f"    {name},\n" for name in ordered)
            line = f"from {module} import (\n{body})"
        lines.append(line)
    lines += [f"from {module} import {name}" for name in aliased]
    return "\n".join(lines)
