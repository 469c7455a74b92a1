# SPDX-License-Identifier: Apache-2.0
"""The stub of the compiled module says what is in it."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

from pyflinkcep.kernel import module
from tests.kernel_harness import needs_kernel

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
