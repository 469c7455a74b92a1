# SPDX-License-Identifier: Apache-2.0
"""A parsed file of Java."""

from __future__ import annotations

import functools
import importlib
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


def children(node: Node) -> list[Node]:
    """Return the named children of a node that are not comments."""
    return [
        child
        for child in node.named_children
        if child.type not in ("line_comment", "block_comment")
    ]


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
    """
    Parse a file of Java; errors of syntax are kept in the tree.

    Examples
    --------
    >>> parse_java("package a; import b.C; class D {}").imports
    {'C': 'b.C'}
    """
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
    """
    Return the node of a lambda from its text, as if it stood in a line of a file.

    Examples
    --------
    >>> line_of(lambda_of("it -> it.x()", "A.java", 7))
    7
    """
    lines = "\n" * (line - 1)
    waiting = [parse_java(f"{lines}class X {{ Object x = {text}; }}", file).root]
    while waiting[0].type != "lambda_expression":
        waiting = [*waiting[0].named_children, *waiting[1:]]
    return waiting[0]
