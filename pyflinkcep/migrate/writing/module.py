# SPDX-License-Identifier: Apache-2.0
"""A module of Python as it is put together."""

from __future__ import annotations

import ast
import keyword
import re
import sys
import textwrap
import tokenize
from collections.abc import Iterable, Sequence
from datetime import timedelta

import attrs

from pyflinkcep.migrate.chains.values import Call, Code, Stream, Symbol
from pyflinkcep.migrate.java.source import Node, simple_name, snake, text_of
from pyflinkcep.migrate.meaning.literals import constant as quoted
from pyflinkcep.migrate.meaning.translated import Note, Translated

WIDTH = 100


def in_units(duration: timedelta) -> tuple[str, int]:
    """Return the largest unit of which a duration is a whole number, and that number."""
    for unit in ("days", "hours", "minutes", "seconds", "milliseconds"):
        size = timedelta(**{unit: 1})
        if duration and duration % size == timedelta(0):
            return unit, duration // size
    return ("microseconds", duration // timedelta(microseconds=1)) if duration else ("seconds", 0)


def timed(duration: timedelta) -> str:
    """Return a duration as Python, in its largest whole unit."""
    unit, amount = in_units(duration)
    return f"timedelta({unit}={amount})" if amount else "timedelta(0)"


def indented(text: str) -> str:
    """Return lines moved to the right, empty ones unchanged."""
    return textwrap.indent(text, "    ")


def docstring(summary: str, more: str = "") -> str:
    """Return a docstring, wrapped; in one line if it fits."""
    clean = re.sub(r"\s+", " ", summary).replace("\\", "\\\\").replace('"""', "'''").strip()
    clean = clean if clean.endswith(".") else f"{clean}."
    body = "\n\n".join(
        "\n".join(textwrap.wrap(re.sub(r"\s+", " ", part).strip(), WIDTH - 8))
        for part in re.split(r"\n\s*\n|<p>", more.replace("\\", "\\\\").replace('"""', "'''"))
        if part.strip()
    )
    if not body and len(clean) + 10 <= WIDTH:
        return f'"""{clean}"""'
    lines = "\n".join(textwrap.wrap(clean, WIDTH - 8))
    return f'"""\n{lines}' + (f"\n\n{body}" if body else "") + '\n"""'


def split_text(value: str, width: int) -> list[str]:
    """Return a long string literal as several that follow each other."""
    if len(quoted(value)) <= width or "\n" in value:
        return [quoted(value)]
    parts, rest = [], value
    while len(quoted(rest)) > width:
        at = rest.rfind(" ", 1, width - 4)
        if at <= 0:
            break
        parts.append(rest[: at + 1])
        rest = rest[at + 1 :]
    return [quoted(part) for part in [*parts, rest]]


def call(name: str, arguments: Sequence[str], indent: int) -> str:
    """Return a call, its arguments on lines of their own if it does not fit."""
    line = f"{name}({', '.join(arguments)})"
    if "\n" not in line and len(line) + indent <= WIDTH:
        return line
    if len(arguments) == 1 and len(arguments[0]) + indent + 4 > WIDTH:
        value = _string_in(arguments[0])
        if value is not None:
            return f"{name}{_in_lines(split_text(value, WIDTH - indent - 4))}"
    joined = ", ".join(arguments)
    if "\n" not in joined and len(joined) + indent + 4 <= WIDTH:
        return f"{name}(\n    {joined}\n)"
    body = "".join(indented(_fitting(a, indent + 4)) + ",\n" for a in arguments)
    return f"{name}(\n{body})"


def _in_lines(parts: Sequence[str]) -> str:
    return "(\n" + "".join(f"    {part}\n" for part in parts) + ")"


def _fitting(argument: str, indent: int) -> str:
    value = _string_in(argument) if len(argument) + indent + 1 > WIDTH else None
    if value is not None:
        parts = split_text(value, WIDTH - indent - 5)
        return _in_lines(parts) if len(parts) > 1 else argument
    return argument


def _string_in(python: str) -> str | None:
    """Return the string that an expression is; None for other expressions."""
    if not python.startswith(('"', "'")):
        return None
    found = ast.parse(python, mode="eval").body
    return found.value if isinstance(found, ast.Constant) and isinstance(found.value, str) else None


def chain(start: str, calls: Sequence[tuple[str, Sequence[str]]], prefix: str, indent: int) -> str:
    """Return calls on one another: in a line, or each on its own between brackets."""
    line = start + "".join(f".{name}({', '.join(arguments)})" for name, arguments in calls)
    if "\n" not in line and len(prefix) + len(line) + indent <= WIDTH:
        return prefix + line
    if len(calls) < 2:
        name, arguments = calls[0] if calls else ("", ())
        return prefix + call(f"{start}.{name}", arguments, indent + len(prefix)) if calls else line
    if len(calls) == 2 and start.isidentifier():
        (first, given), (second, others) = calls
        owner = f"{start}.{first}({', '.join(given)}).{second}"
        if "\n" not in owner and len(prefix) + len(owner) + indent < WIDTH:
            return prefix + call(owner, others, indent + len(prefix))
    if "\n" not in line and len(line) + indent + 4 <= WIDTH:
        return f"{prefix}(\n    {line}\n)"
    rows = []
    for at, (name, arguments) in enumerate(calls):
        owner = f"{start}.{name}" if at == 0 else f".{name}"
        rows.append(call(owner, arguments, indent + 4))
    return f"{prefix}(\n" + indented("\n".join(rows)) + "\n)"


def literal(value: str, used: int) -> str:
    """Return a string literal, in several parts if it is long."""
    if len(quoted(value)) + used <= WIDTH:
        return quoted(value)
    return _in_lines(split_text(value, WIDTH - 4))


_MOST_LINES = 60


def raising(code: Code, node: Node = None) -> list[str]:
    """Return statements that raise, with the Java in whose place they are."""
    java = text_of(node or code.node).splitlines()
    more = ["# …"] if len(java) > _MOST_LINES else []
    shown = [f"# {line}".rstrip() for line in java[:_MOST_LINES]]
    raised = f"raise NotImplementedError({quoted(f'{code.place} is not translated')})"
    return [*shown, *more, raised]


_OFFERED = (
    "import argparse", "from collections.abc import Callable", "from datetime import timedelta",
    "from typing import Any", "from pyspark.sql import DataFrame, SparkSession",
    "from pyspark.sql import functions as F",
    "from pyflinkcep import AfterMatchSkipStrategy, CEP, CepDataFrame, OutputTag, Pattern, "
    "WithinType, keyBy",
    "from pyflinkcep.migrate.runtime import collected",
)  # fmt: skip
"""What a module imports if it uses the names."""
_IMPORTED = {name for one in _OFFERED for name in re.findall(r"\w+", one.split("import ")[1])}
NARROW = 88
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_UNNEEDED = re.compile(r'(?<=""")\n\s+pass$', re.MULTILINE)


_TYPES = {
    "boolean": "bool", "Boolean": "bool", "String": "str", "double": "float", "float": "float",
    "Double": "float", "Duration": "timedelta", "Time": "timedelta",
    "AfterMatchSkipStrategy": "AfterMatchSkipStrategy",
}  # fmt: skip


def python_type(java: str) -> str:
    """Return the annotation of a parameter of a Java type."""
    if java.startswith("List<"):
        return f"list[{python_type(java[5:-1])}]"
    return _TYPES.get(simple_name(java), "int")


@attrs.define(eq=False)
class Module:
    """A module of Python."""

    docstring: str  # What it is about
    _imports: set[str] = attrs.field(factory=set)
    _constants: list[str] = attrs.field(factory=list)
    _functions: list[str] = attrs.field(factory=list)
    _main: list[str] = attrs.field(factory=list)
    # What each name is for; one that is imported hides nothing of the module.
    _names: dict[str, str] = attrs.field(factory=lambda: dict.fromkeys(_IMPORTED, "imported"))
    notes: list[Note] = attrs.field(factory=list)  # What to look at

    def note(self, at: Code | Call | Stream, what: str) -> None:
        """Note what is to be looked at."""
        call = at.call if isinstance(at, Stream) else at
        self.notes.append((call.code if isinstance(call, Call) else call).note(what))

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
        for known, what in self._names.items():
            if what == f"= {value}" and known.startswith(name):
                return known
        made = self.name(name, f"= {value}")
        text = f"{made} = {value}"
        if comment:
            text += f'\n"""{comment}"""'
        self._constants.append(text)
        return made

    def schema(self, name: str, ddl: str, comment: str) -> str:
        """Add a text with columns as a constant, once; return its name."""
        return self.constant(name, literal(ddl, len(name) + 3), comment)

    def define(self, head: str, doc: str, lines: Sequence[str], more: str = "") -> None:
        """Add a function with a docstring: a sentence, and what more there is to say."""
        self.function(f"def {head}:\n" + indented("\n".join([docstring(doc, more), *lines])))

    def function(self, text: str) -> None:
        """Add a function or class."""
        self._functions.append(text.strip("\n"))

    def stub(
        self, wanted: str, given: str, returns: str, what: str, code: Code, node: Node = None
    ) -> str:
        """Add a function that raises, with the Java in whose place it is; return its name."""
        name = self.name(wanted)
        self.define(f"{name}({given}) -> {returns}", f"TODO: {what}", raising(code, node))
        return name

    def main(self, *lines: str) -> None:
        """Add statements that run if the module is the program."""
        self._main.append('if __name__ == "__main__":\n' + indented("\n".join(lines)))

    def translated(self, made: Translated) -> str:
        """Add a translated function, once; return its name."""
        assert made.name is not None
        assert made.python is not None
        wanted = f"{made.name}_" if keyword.iskeyword(made.name) else made.name
        name = self.name(wanted, made.python)
        self.use(*made.imports)
        text = _UNNEEDED.sub("", made.python).strip("\n")
        text = text if name == made.name else _renamed(text, made.name, name)
        if text not in self._functions:
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
        written = _CONTROL.sub("?", "\n".join([*self._constants, body, main]))
        parts = [self.docstring, _imports({*self._imports, *_OFFERED}, written)]
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


def _imports(statements: Iterable[str], python: str) -> str:
    """Return the import statements whose names are read, sorted as linters want them."""
    read = {node.id for node in ast.walk(ast.parse(python)) if isinstance(node, ast.Name)}
    named: dict[str, set[str]] = {}
    for statement in statements:
        head, names = statement.split("import ", 1)
        for name in (one.strip() for one in names.split(",")):
            if name.split(" ")[-1].partition(".")[0] in read:
                named.setdefault(head.removeprefix("from ").strip(), set()).add(name)
    plain = named.pop("", set())
    blocks = []
    for group in range(3):
        lines = [f"import {m}" for m in sorted(plain) if _group(m) == group]
        lines += [_from(m, named[m]) for m in sorted(named) if _group(m) == group]
        blocks += ["\n".join(lines)] if lines else []
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
