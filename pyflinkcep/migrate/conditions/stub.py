# SPDX-License-Identifier: Apache-2.0
"""Functions that only raise, with the Java text, for what is not translated."""

from __future__ import annotations

from pyflinkcep.migrate.java.project import Project
from pyflinkcep.migrate.java.source import Node, Source, line_of, text_of
from pyflinkcep.migrate.meaning.scope import Findings, snake_case
from pyflinkcep.migrate.meaning.tree import Untranslatable
from pyflinkcep.migrate.translated import Note, Translated

__all__ = ["java_comment", "one_line", "reason_of", "stub", "stub_source"]


def stub(
    node: Node,
    source: Source,
    error: Untranslatable,
    findings: Findings,
    name: str,
    parameters: tuple[str, ...],
    result: str,
    project: Project,
) -> Translated:
    """Return a function that raises, with the Java, also that of a class or method it names."""
    line = line_of(node)
    note = Note(source.file, error.line or line, f"not translated: {error.what}")
    name = snake_case(name)
    return Translated(
        name=name,
        python=stub_source(
            name,
            parameters,
            result,
            f"{source.file.rsplit('/', 1)[-1]}:{line}",
            error.what,
            node,
            declared_by(node, source, project),
        ),
        imports=frozenset(
            {
                "from typing import Any",
                "from pyflinkcep.migrate.runtime import not_translated",
            }
        ),
        notes=(*findings.notes, note),
        stub=True,
    )


def reason_of(error: Exception, node: Node) -> Untranslatable:
    """Return why something was not translated; Java that is broken may break its reader."""
    if isinstance(error, Untranslatable):
        return error
    if isinstance(error, RecursionError):
        return Untranslatable("nested too deeply", line_of(node))
    broken = "a syntax error" if node.has_error else f"it is not understood ({error!r})"
    return Untranslatable(broken, line_of(node))


def declared_by(node: Node, source: Source, project: Project) -> Node | None:
    """Return the class or method of the project that an expression names; None for others."""
    if node.type == "object_creation_expression":
        name = text_of(node.child_by_field_name("type")).split("<", 1)[0].rsplit(".", 1)[-1]
        declared = project.find(name, source)
        has_body = any(part.type == "class_body" for part in node.children)
        return None if declared is None or has_body else declared.node
    if node.type == "method_reference":
        owner = project.find(text_of(node.children[0]), source)
        methods = [] if owner is None else owner.methods.get(text_of(node.children[-1]), [])
        return methods[0].node if methods else None
    return None


def stub_source(
    name: str,
    parameters: tuple[str, ...],
    result: str,
    where: str,
    why: str,
    *nodes: Node | None,
) -> str:
    """Return the source of a function that raises."""
    arguments = ", ".join(p if p == "self" else f"{p}: Any" for p in parameters)
    lines = [
        f"def {name}({arguments}) -> {result}:",
        '    """Write this in Python; the Java is below."""',
        f"    # {one_line(why)}",
        *(f"    # {line}".rstrip() for node in nodes if node for line in java_comment(node)),
        f"    raise not_translated({where!r}, {one_line(why)!r})",
    ]
    return "\n".join(lines) + "\n"


def one_line(text: str) -> str:
    """Return a text without line ends."""
    return " ".join(text.split())


def java_comment(node: Node) -> list[str]:
    """Return the lines of a node, without control characters."""
    lines = text_of(node).replace("\t", "    ").splitlines()
    indent = min((len(one) - len(one.lstrip()) for one in lines[1:] if one.strip()), default=0)
    dedented = [lines[0] if lines else "", *(line[indent:] for line in lines[1:])]
    return ["".join(c if c.isprintable() else "?" for c in line) for line in dedented]
