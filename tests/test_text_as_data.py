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
    "expressions/tokens.py": "intervals of users; SQL",
    "expressions/parser.py": "whether SQL may have an aggregate",
    "expressions/sql_functions.py": "regular expressions that users wrote",
    "expressions/sql_types.py": "types and intervals that users wrote",
    "expressions/tree.py": "whether a name needs backticks",
    "expressions/program.py": "digits in the names of types; LIKE patterns of users",
    "expressions/sql_values.py": "texts of events that are cast",
    "match_recognize/parser.py": "the interval of WITHIN",
    "match_recognize/tree.py": "whether a name needs backticks",
    "eql/patterns.py": "regular expressions that users wrote",
    "eql/tokens.py": "queries, and escapes in their texts",
    "sase/model.py": "event types",
    "sigma/condition.py": "conditions of correlations",
    "sigma/detection.py": "regular expressions that users wrote",
    "sigma/correlation.py": "lengths of time that users wrote",
    "sase/parser.py": "names of output columns",
    "sase/conditions.py": "queries",
    "engines/compressed/matches.py": "measures that users wrote",
    "show/query_history.py": "errors of queries: of a failure Spark has nothing but that text",
    "show/charts.py": "markup in names and values of users, for pages of Altair",
    "rules/aviator.py": "conditions in another language",
    "rules/rule_file.py": "lengths of time that users wrote",
    "diagrams.py": "which language a text is in",
    "functions.py": "tests and columns that users wrote",
    "time.py": "lengths of time that users wrote",
    "spark/plan/source.py": "columns to order by that users wrote",
    "spark/plan/patterns/diagnostics.py": "paths of checkpoints",
    "spark/statements.py": "whether a statement defines something",
    "spark/worker/bucket_task.py": "names of time zones",
    "spark/plan/patterns/explanation.py": "texts of users' objects and Columns, for explain()",
    "spark/plan/engine.py": "how Sail's plan cuts files, which it tells nowhere else",
    "spark/plan/portable.py": "window functions and intervals in SQL that users wrote",
    "spark/cep_dataframe.py": "tracebacks: of a worker's error Spark has nothing but that text",
    "local.py": "the version that Java prints",
}
"""The modules that use regular expressions, and on what: none on text of the package's own."""


def test_regular_expressions_read_what_users_wrote(package: list[Source]) -> None:
    """What the package has generated, it knows as a tree; migrate/ reads and writes programs."""
    found = {
        source.path.relative_to("pyflinkcep").as_posix()
        for source in package
        for node in source.nodes(ast.Import)
        if node.names[0].name == "re"
    }
    assert {path for path in found if not path.startswith("migrate/")} == READERS.keys()


TOKENS = {
    "expressions/grammar.py": "expressions, which it parses",
    "eql/tokens.py": "queries, in their own words and signs",
    "sase/conditions.py": "queries, in their own words and signs",
    "match_recognize/tokens.py": "statements",
    "match_recognize/expressions.py": "expressions as written, before they are parsed",
    "rules/aviator.py": "conditions, which it parses",
    "rules/fingerprint.py": "SQL that only Spark reads, without its layout",
    "spark/plan/clauses/measures.py": "whether an argument is a name or has a query",
}
"""The modules that look for tokens, and in what: none for places in SQL that was generated."""


def test_tokens_are_of_what_users_wrote(package: list[Source]) -> None:
    """SQL with places for values that are known later is a template, not a text to search."""
    found = {
        source.path.relative_to("pyflinkcep").as_posix()
        for source in package
        for node in source.nodes(ast.ImportFrom)
        if node.module == "pyflinkcep.expressions.tokens"
        and any(name.name == "tokenized" for name in node.names)
    }
    assert found == TOKENS.keys()


FOREIGN = ("local.py", "spark/plan/analysis.py")
"""The modules that read messages of Sail, whose errors have no condition and no parameters."""


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
