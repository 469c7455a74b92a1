# SPDX-License-Identifier: Apache-2.0
"""A parsed file of Java, and small questions to its tree."""

from __future__ import annotations

import functools
import html
import importlib
import keyword
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from pyflinkcep.errors import NotSupportedError

Node = Any
"""A node of tree-sitter's tree."""


@attrs.frozen(eq=False)
class Source:
    """A file of Java."""

    file: str  # Its path
    root: Node  # The root of its tree
    package: str = ""  # The package it declares; empty if none
    # Simple name to full name, of single imports.
    imports: dict[str, str] = attrs.field(factory=dict)
    wildcards: tuple[str, ...] = ()  # The packages, and classes, imported whole

    @property
    def errors(self) -> list[tuple[int, str]]:
        """The lines with syntax errors, with the text there."""
        if not self.root.has_error:
            return []
        return [(line_of(node), text_of(node)[:60]) for node in _broken(self.root)]


def text_of(node: Node) -> str:
    """Return the Java text of a node; empty if broken Java lacks it."""
    if node is None:
        return ""
    return bytes(node.text).decode("utf-8", "replace")


def line_of(node: Node) -> int:
    """Return the line on which a node begins, from 1."""
    return int(node.start_point[0]) + 1


def children(node: Node | None) -> list[Node]:
    """Return the named children of a node that are not comments; none of what Java lacks."""
    named = () if node is None else node.named_children
    return [child for child in named if child.type not in ("line_comment", "block_comment")]


@functools.cache
def _parser() -> Any:
    try:
        tree_sitter = importlib.import_module("tree_sitter")
        grammar = importlib.import_module("tree_sitter_java")
    except ImportError as cause:
        raise NotSupportedError(
            "reading Java needs tree-sitter and its grammar of Java",
            "pip install 'pyflinkcep[migrate]'",
        ) from cause
    return tree_sitter.Parser(tree_sitter.Language(grammar.language()))


def parse_java(text: str | bytes, file: str | Path = "<text>") -> Source:
    """Parse a file of Java; errors of syntax are kept in the tree."""
    data = text.encode("utf-8", "replace") if isinstance(text, str) else text
    root = _parser().parse(data).root_node
    package, imports, wildcards = "", {}, []
    for node in root.named_children:
        if node.type == "package_declaration":
            package = "".join(text_of(part) for part in children(node)[-1:])
        elif node.type == "import_declaration":
            names = children(node)
            full = text_of(names[0]) if names else ""
            if names and names[-1].type == "asterisk":
                wildcards.append(full)
            elif full:
                imports[full.rsplit(".", 1)[-1]] = full
    return Source(str(file), root, package, imports, tuple(wildcards))


def _broken(node: Node) -> Iterator[Node]:
    if node.is_error or node.is_missing:
        yield node
        return
    for child in node.children:
        if child.has_error or child.is_missing:
            yield from _broken(child)


def lambda_of(text: str, file: str, line: int = 1) -> Node:
    """Return the node of a lambda from its text, as if it stood in a line of a file."""
    lines = "\n" * (line - 1)
    root = parse_java(f"{lines}class X {{ Object x = {text}; }}", file).root
    return next(inside(root, "lambda_expression"))


def inside(node: Node, *types: str) -> Iterator[Node]:
    """Yield the nodes of some types in a node, from top to bottom."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        if found.type in types:
            yield found
        waiting.extend(reversed(found.named_children))


def enclosing(node: Node, *types: str) -> Node | None:
    """Return the nearest node of some types around a node."""
    found = node.parent
    while found is not None and found.type not in types:
        found = found.parent
    return found


def declared_type(node: Node, name: str) -> str:
    """Return the type of the variable, parameter or field of a name around code; or ``""``."""
    around = node.parent
    while around is not None:
        for part in around.named_children:
            declared = [(one, part) for one in part.children_by_field_name("declarator")]
            if part.type == "formal_parameters":
                declared = [(one, one) for one in children(part)]
            for one, typed in declared:
                if text_of(one.child_by_field_name("name")) == name:
                    return simple_name(text_of(typed.child_by_field_name("type")))
        around = around.parent
    return ""


def simple_name(name: str) -> str:
    """Return the name of a type without its package and arguments."""
    return name.split("<", 1)[0].strip().rsplit(".", 1)[-1]


def comma_parts(text: str) -> list[str]:
    """Return the parts between commas that are in no parentheses, brackets or quotes."""
    found, depth, start, quote = [], 0, 0, ""
    for at, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'`\"":
            quote = letter
        else:
            depth += {"(": 1, "<": 1, ")": -1, ">": -1}.get(letter, 0)
            if letter == "," and depth <= 0:
                found.append(text[start:at].strip())
                start = at + 1
    return [part for part in (*found, text[start:].strip()) if part]


def is_stream_type(kind: str) -> bool:
    """Whether a Java type is a stream of events."""
    return simple_name(kind).endswith(
        ("DataStream", "KeyedStream", "StreamOperator", "StreamSource")
    )


def snake_case(name: str) -> str:
    """Return a name as Python writes it."""
    return re.sub(r"\W|^(?=\d)", "_", _HUMPS.sub("_", name)).lower()


def snake(name: str) -> str:
    """Return the name of something of a module."""
    made = re.sub(r"_+", "_", snake_case(name)).strip("_") or "unnamed"
    made = f"n{made}" if made[0].isdigit() else made
    return f"{made}_" if made in _TAKEN else made


_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_TAKEN = frozenset([
    *keyword.kwlist, "match", "case", "type", "list", "dict", "set", "str", "int", "float", "bool",
    "print", "input", "filter", "map", "id", "next", "iter", "len", "sum", "min", "max", "all",
    "any", "sorted", "range", "object", "l",
])  # fmt: skip
"""What no name of a module may hide."""


def javadoc(node: Node) -> str:
    """
    Return the first paragraph of the comment before a declaration, without stars and tags.

    Of a long one, the first sentences; Java that is commented out is none.
    """
    before = node.prev_named_sibling
    lines: list[str] = []
    while before is not None and before.type == "line_comment":
        lines.insert(0, text_of(before).lstrip("/").strip())
        before = before.prev_named_sibling
    if not lines and before is not None and before.type == "block_comment":
        body = text_of(before).removeprefix("/*").removesuffix("*/").strip("*")
        for line in body.splitlines():
            stripped = line.strip().lstrip("*").strip()
            if stripped.startswith("@"):
                break
            lines.append(stripped)
    found = re.sub(r"\{@\w+\s+#?([^}]*)\}", r"\1", "\n".join(lines))
    found = re.sub(r"<p>\s*", "\n", found)
    plain = html.unescape(re.sub(r"</?[a-zA-Z][^<>]*>", "", found)).strip()
    kept = [line for line in plain.splitlines() if not _CODE.search(line)]
    first = re.split(r"\n\s*\n", "\n".join(kept).strip(), maxsplit=1)[0]
    if len(first) <= _LONGEST:
        return first
    sentences = re.match(r".*\.(?=\s)", first[:_LONGEST], re.DOTALL)
    return sentences[0] if sentences else first[:_LONGEST].rpartition(" ")[0] + " …"


_CODE = re.compile(r"[;{}]\s*$|^\s*(?:\.\w+\(|@\w+|import )")
_LONGEST = 400
"""How many characters of a comment a docstring has at most."""


def written_in(node: Node, *, whole: bool = False) -> set[str]:
    """Return the names of variables and fields that code assigns, or changes an element of."""
    found: set[str] = set()
    for one in inside(node, "assignment_expression", "update_expression"):
        target = one.child_by_field_name("left") or children(one)[0]
        while target.type == "array_access":
            target = target.child_by_field_name("array")
        name = text_of(target).removeprefix("this.")
        found.add(name if whole else name.split(".", 1)[0])
    return found


def set_by_this(body: Node) -> set[str]:
    """Return the fields that code assigns as ``this.name``."""
    return set(re.findall(r"\bthis\.(\w+)\s*(?:[-+*/%&|^]|<<|>>>?)?=(?!=)", text_of(body)))


_DECLARING = frozenset({
    "variable_declarator", "enhanced_for_statement", "catch_formal_parameter", "formal_parameter",
    "spread_parameter", "instanceof_expression", "lambda_expression",
})  # fmt: skip


@functools.lru_cache(maxsize=4096)
def declared_in(body: Node) -> frozenset[str]:
    """Return the variables that a body declares."""
    found: set[str] = set()
    for one in inside(body, *_DECLARING):
        name = one.child_by_field_name("parameters" if one.type == "lambda_expression" else "name")
        if name is not None and name.type == "inferred_parameters":
            found |= {text_of(part) for part in name.named_children}
        elif name is not None and name.type == "identifier":
            found.add(text_of(name))
    return frozenset(found)


@functools.lru_cache(maxsize=4096)
def called_in(source: Source) -> frozenset[str]:
    """Return the names of the methods that a file calls or refers to."""
    calls = inside(source.root, "method_invocation", "method_reference")
    return frozenset(text_of(one.child_by_field_name("name") or one.children[-1]) for one in calls)


@functools.lru_cache(maxsize=4096)
def assignments_in(source: Source) -> frozenset[str]:
    """Return what the methods of a file assign that is no variable of theirs."""
    bodies = inside(source.root, *_BODIES)
    return frozenset(
        name for one in bodies for name in written_in(one, whole=True) - declared_in(one)
    )


_BODIES = ("method_declaration", "constructor_declaration", "static_initializer")
