# SPDX-License-Identifier: Apache-2.0
"""Each operation has a form in Python, and each template names what there is."""

from __future__ import annotations

import ast
import builtins

import pytest

from pyflinkcep.migrate.meaning import library, operations, python
from pyflinkcep.migrate.meaning.operations import Operation
from pyflinkcep.migrate.meaning.reading import RUNTIME

OF_STATEMENTS = {operations.EQUALS, operations.SAME, operations.OUTPUT}
NAMES = {*dir(builtins), *RUNTIME, *python._MODULES, *"abcd", "all", "ctx", "held", "regex"}


def all_operations() -> list[Operation]:
    """Return the operations that have a name, and those of the rows of the library."""
    named = (
        *vars(operations).values(),
        *operations.PARSE.values(),
        *operations.TIMEDELTAS.values(),
    )
    rows = (*library.METHODS.values(), *library.STATIC.values())
    held = (*named, *(row.becomes for row in rows))
    return list({id(one): one for one in held if isinstance(one, Operation)}.values())


@pytest.mark.parametrize("operation", all_operations(), ids=lambda one: one.name)
def test_each_operation_has_a_form_in_python(operation: Operation) -> None:
    """A template is an expression of operands, functions of the runtime and builtins; or a function writes it."""
    has_function = operation in python._WRITERS
    if operation in OF_STATEMENTS or has_function:
        assert not operation.python
        return
    tree = ast.parse(operation.python, mode="eval")
    bound = {
        n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    read = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} - bound

    assert read <= NAMES
