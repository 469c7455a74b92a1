# SPDX-License-Identifier: Apache-2.0
"""The calls of Flink's pattern API, on patterns that are followed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyflinkcep.migrate.chains.branches import CHANGES
from pyflinkcep.migrate.chains.lookup import type_arguments
from pyflinkcep.migrate.chains.values import Call, Constant, Link, Value
from pyflinkcep.migrate.java.source import text_of

if TYPE_CHECKING:
    from pyflinkcep.migrate.chains.expressions import Expressions

__all__ = ["CONDITIONS", "STAGES", "begin", "called"]

STAGES = frozenset(["next", "followedBy", "followedByAny", "notNext", "notFollowedBy"])
"""The calls that add a stage."""

CONDITIONS = frozenset(["where", "or", "until"])
"""The calls with a condition."""

_VARIABLE = re.compile(r"[A-Z][A-Z0-9]?")
"""The name of a type that a method is given."""


def begin(walker: Expressions, call: Call) -> Link:
    """Return the pattern that a call of ``begin`` makes."""
    types = call.code.node.child_by_field_name("type_arguments")
    written = type_arguments(text_of(types)) if types is not None else []
    kind = written[0] if written else None
    if kind is not None and _VARIABLE.fullmatch(kind):  # unless a class is called like that
        kind = kind if walker.project.find(kind, call.code.source) is not None else None
    link = Link(None, [call], call.code, kind)
    walker.links.append(link)
    _take_groups(link, call)
    return link


def called(walker: Expressions, link: Link, call: Call) -> Value | None:
    """Return what a call on a pattern returns: a further stage, or the same one, changed."""
    if call.method in STAGES:
        longer = Link(link, [call], link.begun, link.event_type)
        walker.links.append(longer)
        _take_groups(longer, call)
        return longer
    if call.method in CHANGES:
        link.items.append(call)
        return link
    if call.method == "getName":
        first = link.items[0] if link.items else None
        if isinstance(first, Call) and first.arguments:
            return first.arguments[0]
    if call.method == "getPrevious":
        return link.previous
    if call.method in ("getAfterMatchSkipStrategy", "getWindowSize", "getWindowTime"):
        return None
    return Constant(None) if call.method == "toString" else None


def _take_groups(link: Link, call: Call) -> None:
    for argument in call.arguments:
        if isinstance(argument, Link):
            argument.is_group = True
            link.event_type = link.event_type or argument.event_type
