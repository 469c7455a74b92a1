# SPDX-License-Identifier: Apache-2.0
"""Small questions to the syntax tree of Java."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from pyflinkcep.migrate.java.source import Node, text_of

LITERALS = frozenset({
    "string_literal", "character_literal", "true", "false", "null_literal",
    "decimal_integer_literal", "hex_integer_literal", "decimal_floating_point_literal",
})  # fmt: skip
"""The nodes of literals."""


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


def simple_name(name: str) -> str:
    """Return the name of a type without its package and arguments."""
    return name.split("<", 1)[0].strip().rsplit(".", 1)[-1]


def type_arguments(name: str) -> list[str]:
    """
    Return the arguments of a generic type.

    Examples
    --------
    >>> type_arguments("KeyedStream<Event, Tuple2<String, Integer>>")
    ['Event', 'Tuple2<String, Integer>']
    """
    if "<" not in name or not name.rstrip().endswith(">"):
        return []
    inner = name.rstrip()[:-1]
    found, depth, start = [], 0, name.index("<") + 1
    for at in range(start, len(inner)):
        depth += {"<": 1, ">": -1}.get(inner[at], 0)
        if inner[at] == "," and depth == 0:
            found.append(inner[start:at].strip())
            start = at + 1
    return [*found, inner[start:].strip()]


def is_stream_type(kind: str) -> bool:
    """Whether a Java type is a stream of events."""
    return simple_name(kind).endswith(
        ("DataStream", "KeyedStream", "StreamOperator", "StreamSource")
    )


def snake(name: str) -> str:
    """
    Return a Java name as Python writes it.

    Examples
    --------
    >>> snake("loginFailures"), snake("HTTPServer"), snake("MAX_SIZE"), snake("class")
    ('login_failures', 'http_server', 'max_size', 'class_')
    """
    words: list[str] = []
    for at, letter in enumerate(name):
        before, after = name[at - 1 : at], name[at + 1 : at + 2]
        begins = letter.isupper() and (
            before.islower() or before.isdigit() or (before.isupper() and after.islower())
        )
        words.append(("_" if begins else "") + (letter.lower() if letter.isalnum() else "_"))
    made = "".join(words).strip("_") or "unnamed"
    while "__" in made:
        made = made.replace("__", "_")
    if made[0].isdigit():
        made = f"n{made}"
    return f"{made}_" if made in _TAKEN else made


_TAKEN = frozenset(
    [
        "and",
        "as",
        "assert",
        "async",
        "await",
        "break",
        "class",
        "continue",
        "def",
        "del",
        "elif",
        "else",
        "except",
        "finally",
        "for",
        "from",
        "global",
        "if",
        "import",
        "in",
        "is",
        "lambda",
        "nonlocal",
        "not",
        "or",
        "pass",
        "raise",
        "return",
        "try",
        "while",
        "with",
        "yield",
        "match",
        "case",
        "type",
        "list",
        "dict",
        "set",
        "str",
        "int",
        "float",
        "bool",
        "print",
        "input",
        "filter",
        "map",
        "id",
        "next",
        "iter",
        "len",
        "sum",
        "min",
        "max",
        "all",
        "any",
        "sorted",
        "range",
        "object",
        "l",
    ]
)


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
