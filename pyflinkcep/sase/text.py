# SPDX-License-Identifier: Apache-2.0
"""Writes a query as text that parses again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs

from pyflinkcep.expressions.tree import Operation, Tree, quoted_name, shown, written_name
from pyflinkcep.sase.conditions import KEYWORDS, text_literal
from pyflinkcep.sase.model import (
    AnyOrder,
    Choice,
    Column,
    Component,
    Form,
    One,
    Optional,
    Query,
    Repeated,
    Sequence,
    Shape,
    Strategy,
    Totals,
    default_variable,
    ones,
)

_UNITS = (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1000))


def query_text(query: Query) -> str:
    """Return the text of a query."""
    lines = [f"FROM {written_name(query.source)}"] if query.source else []
    if query.before is not None:
        lines.append(query_text(query.before))
    then = "" if query.before is None else "THEN "
    lines.append(f"{then}PATTERN {_pattern(query)}")
    where = _where(query)
    if where:
        lines.append(f"WHERE {where}")
    if query.window is not None:
        lines.append(f"WITHIN {_duration(query.window)}")
    if query.most_events is not None:
        lines.append(f"WITHIN {query.most_events} EVENTS")
    if query.totals is not None:
        lines += _totals(query.totals)
    if query.having is not None:
        lines.append(f"HAVING {shown(query.having)}")
    if query.columns is not None:
        columns = ", ".join(map(_column, query.columns))
        if query.event is not None:
            columns = f"EVENT {_type(query.event)}({columns})"
        lines.append(f"RETURN {columns}")
    return "\n".join(lines)


def stored_text(query: Query) -> str:
    """
    Return the text by which stored state knows what a query matches.

    It never changes, or checkpoints would be refused; that is why one hour is ``1 hours`` in it.
    """
    asked = attrs.evolve(query, source=None, window=None, having=None, columns=None, totals=None)
    if query.window is None:
        return query_text(asked)
    window = _duration(query.window)
    plural = "" if window.endswith("s") else "s"
    return f"{query_text(asked)}\nWITHIN {window}{plural}"


def _pattern(query: Query) -> str:
    if query.form is Form.SEQ:
        if query.shape is None:
            return f"SEQ({_parts([One(part.variable) for part in query.components], query)})"
        return _shape(query.shape, query, is_whole=True)
    return "; ".join(map(_element, query.components))


def _parts(shapes: Iterable[Shape], query: Query) -> str:
    """Return the text of the parts of SEQ or AND."""
    texts = []
    for one, *others in together(query, shapes):
        if others:
            inside = (query.component(each.variable) for each in ones(Sequence((one, *others))))
            texts.append(f"~(SEQ({', '.join(map(_unit, inside))}))")
        else:
            texts.append(_shape(one, query))
    return ", ".join(texts)


def _shape(shape: Shape, query: Query, *, is_whole: bool = False) -> str:
    """Return the text of a shape; that of a whole pattern begins with SEQ or AND."""
    if isinstance(shape, Choice):
        joined = " | ".join(_shape(part, query, is_whole=is_whole) for part in shape.parts)
        return joined if is_whole else f"({joined})"
    if isinstance(shape, Sequence | AnyOrder):
        name = "SEQ" if isinstance(shape, Sequence) else "AND"
        return f"{name}({_parts(shape.parts, query)})"
    if isinstance(shape, One):
        text = _component(query.component(shape.variable))
    elif isinstance(shape, Repeated):
        inner = _shape(shape.part, query)
        is_bare = isinstance(shape.part, One | Optional | Repeated)
        text = f"({inner})" if is_bare else inner
        text += _times(shape.least, shape.most)
    elif isinstance(shape.part, One) and query.component(shape.part.variable).least == 1:
        text = _component(query.component(shape.part.variable), is_optional=True)
    elif isinstance(shape.part, One | Optional | Repeated):
        text = f"({_shape(shape.part, query)})?"
    else:
        text = f"{_shape(shape.part, query)}?"
    return f"SEQ({text})" if is_whole else text


def _component(part: Component, *, is_optional: bool = False) -> str:
    unit = _unit(part, is_optional=is_optional)
    return f"~({unit})" if part.negated else unit


def _unit(part: Component, *, is_optional: bool = False) -> str:
    times = "?" if is_optional else ""
    if part.repeats:
        times = _times(0 if is_optional else part.least, part.most)
    return f"{_type(part.type)}{times} {_name(part)}"


def _times(least: int, most: int | None) -> str:
    if most is None:
        return {0: "*", 1: "+"}.get(least, f"{{{least},}}")
    return f"{{{least}}}" if least == most else f"{{{least},{most}}}"


def _name(part: Component) -> str:
    name = written_name(part.variable)
    return f"{name}[]" if part.repeats else name


def _type(type_: str) -> str:
    is_name = all(written_name(word) == word for word in type_.split("."))
    return type_ if is_name else text_literal(type_)


def _element(part: Component) -> str:
    closure = f"^{part.least}" if part.repeats else ""
    is_keyword = part.variable.upper() in KEYWORDS
    name = quoted_name(part.variable) if is_keyword else written_name(part.variable)
    variable = "" if part.variable == default_variable(part.type) else f" {name}"
    return f"{'!' if part.negated else ''}{_type(part.type)}{closure}{variable}"


def _where(query: Query) -> str:
    items = [f"[{written_name(name)}]" for name in query.equal]
    items += [f"[{written_name(name)} = {literal.text}]" for name, literal in query.constants]
    items += [_factor(condition) for condition in query.conditions]
    joined = "\n  AND ".join(items)
    if not query.strategies:
        return joined
    groups: dict[Strategy, list[str]] = {}
    for variable, strategy in query.strategies:
        groups.setdefault(strategy, []).append(_name(query.component(variable)))
    heads = [f"{strategy.value}({', '.join(names)}) {{ " for strategy, names in groups.items()]
    *others, last = heads
    return " AND ".join([*(f"{head}}}" for head in others), f"{last}{joined} }}"])


def _duration(milliseconds: int) -> str:
    for unit, size in _UNITS:
        if milliseconds % size == 0:
            count = milliseconds // size
            return f"{count} {unit}" if count == 1 else f"{count} {unit}s"
    return f"{milliseconds} ms"


def _totals(totals: Totals) -> Iterator[str]:
    yield f"SLIDE {_duration(totals.slide)}"
    if totals.groups:
        yield f"GROUP BY {', '.join(map(written_name, totals.groups))}"
    if totals.aggregates:
        yield f"RETURN {', '.join(totals.aggregates)}"


def _column(column: Column) -> str:
    return shown(column.value) + (f" AS {written_name(column.name)}" if column.given else "")


def _factor(condition: Tree) -> str:
    is_logic = isinstance(condition, Operation) and condition.operator in ("and", "or")
    return f"({shown(condition)})" if is_logic else shown(condition)


def together(query: Query, parts: Iterable[Shape]) -> list[tuple[Shape, ...]]:
    """Return parts of a shape one by one, but those of a negated sequence together."""
    found: list[tuple[Shape, ...]] = []
    for part in parts:
        if isinstance(part, One) and query.component(part.variable).goes_on:
            found[-1] = (*found[-1], part)
        else:
            found.append((part,))
    return found
