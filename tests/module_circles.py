# SPDX-License-Identifier: Apache-2.0
"""Which modules import each other, whatever way."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol


def imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    """Return what an import names, with the modules in front."""
    if isinstance(node, ast.ImportFrom):
        return [f"{node.module}.{name.name}" for name in node.names]
    return [name.name for name in node.names]


class File(Protocol):
    """A file that was parsed."""

    def nodes(self, *kinds: type[ast.AST]) -> Iterator[Any]:
        """Yield the nodes of some kinds."""


def arrows(files: Mapping[Path, File]) -> dict[str, set[str]]:
    """
    Return by module the modules that it imports, or names in a text, to load them by name.

    An import of a name from a package's face counts as one of the module that has the name.
    """
    trees = {_module(path): tree for path, tree in files.items()}
    faces = {_module(path): _handed_on(files[path]) for path in files if path.stem == "__init__"}
    found = {}
    for module, tree in trees.items():
        nodes = tree.nodes(ast.Import, ast.ImportFrom)
        named = {_defined(full, trees, faces) for node in nodes for full in imported(node)}
        texts = {str(node.value) for node in tree.nodes(ast.Constant)}
        found[module] = {name for name in named | texts - {"pyflinkcep"} if name in trees}
        found[module].discard(module)
    return found


def circles(arrows: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the modules that get back to themselves, those of one circle together."""
    reached = {module: _reached(module, arrows) for module in arrows}
    found = {
        tuple(sorted(other for other in reached[module] if module in reached[other]))
        for module in arrows
        if module in reached[module]
    }
    return sorted(map(list, found))


def _module(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def _handed_on(tree: File) -> dict[str, str]:
    """Return by name the modules that a package's face has its names from."""
    nodes = tree.nodes(ast.ImportFrom)
    return {name.name: f"{node.module}" for node in nodes for name in node.names}


def _defined(full: str, trees: Mapping[str, File], faces: Mapping[str, Mapping[str, str]]) -> str:
    """Return the module that an import is of."""
    owner, _, name = full.rpartition(".")
    while full not in trees and name in faces.get(owner, ()):
        owner = faces[owner][name]
        full = f"{owner}.{name}"
    return full if full in trees else owner


def _reached(module: str, arrows: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    ahead = list(arrows[module])
    while ahead:
        one = ahead.pop()
        if one not in found:
            found.add(one)
            ahead += arrows[one]
    return found
