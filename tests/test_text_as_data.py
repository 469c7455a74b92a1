# SPDX-License-Identifier: Apache-2.0
"""Text that the package has generated is not data: nobody searches SQL or messages for facts."""

from __future__ import annotations

import ast

import pytest

from tests.test_architecture import PACKAGE, Source, read


@pytest.fixture(scope="module")
def package() -> list[Source]:
    """Return the files of the package."""
    return read(PACKAGE)


READERS = {
    "expressions/literals.py": "intervals and LIKE patterns of users",
    "expressions/parser.py": "whether SQL may have an aggregate",
    "expressions/casts.py": "types that users wrote",
    "expressions/text.py": "whether a name needs backticks",
    "expressions/text_values.py": "texts of events that are cast",
    "expressions/tokens.py": "SQL",
    "match_recognize/interval.py": "the interval of WITHIN",
    "match_recognize/tree.py": "whether a name needs backticks",
    "sase/model.py": "event types",
    "sase/parser.py": "names of output columns",
    "sase/tokens.py": "queries",
    "engines/compressed/matches.py": "measures that users wrote",
}
"""The modules of languages and engines that use regular expressions, and on what of users'."""


def test_regular_expressions_read_what_users_wrote(package: list[Source]) -> None:
    """What a language or an engine has generated, it knows as a tree."""
    rooms = ("expressions/", "sase/", "match_recognize/", "engines/", "kernel/", "spark/worker/")
    found = {
        source.path.relative_to("pyflinkcep").as_posix()
        for source in package
        for node in source.nodes(ast.Import)
        if node.names[0].name == "re"
    }
    assert {path for path in found if path.startswith(rooms)} == {
        *READERS,
        "spark/worker/wall_clock.py",  # names of time zones
    }


FOREIGN = ("local.py", "spark/plan/pipelines.py")
"""The modules that read messages of PySpark and Sail, which have nothing else to tell by."""


def test_nobody_reads_messages(package: list[Source]) -> None:
    """An error carries facts as fields; its text is not searched for them."""
    for source in package:
        path = source.path.relative_to("pyflinkcep").as_posix()
        for handler in source.nodes(ast.ExceptHandler):
            read = [node for node in ast.walk(handler) if _reads_message(node, handler.name)]
            assert not read or path in FOREIGN, f"{path}:{read[0].lineno}"


def _reads_message(node: ast.AST, error: str | None) -> bool:
    """Whether a message is compared, searched or cut."""
    if isinstance(node, ast.Compare):
        return any(_is_message(side, error) for side in (node.left, *node.comparators))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        name, owner = node.func.attr, node.func.value
        return (name != "splitlines" and _is_message(owner, error)) or (
            name in ("match", "fullmatch", "search", "findall", "finditer")
            and any(_is_message(argument, error) for argument in node.args)
        )
    return isinstance(node, ast.Subscript) and _is_message(node.value, error)


def _is_message(node: ast.AST, error: str | None) -> bool:
    """Whether a part is the text of the error that was caught."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
        named = node.args[0]
        return node.func.id in ("str", "repr") and isinstance(named, ast.Name) and named.id == error
    is_own = isinstance(node, ast.Attribute) and node.attr in ("message", "hint", "args")
    return is_own and isinstance(node.value, ast.Name) and node.value.id == error
