# SPDX-License-Identifier: Apache-2.0
"""The public query object, made from text or from pieces; and its picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from html import escape
from typing import Any

import attrs

from pyflinkcep.errors import InvalidArgumentError
from pyflinkcep.expressions.tree import shown
from pyflinkcep.pattern import Pattern
from pyflinkcep.sase import model
from pyflinkcep.sase.analysis import AnalysedQuery
from pyflinkcep.sase.attributes import variables_of
from pyflinkcep.sase.model import Component, Form, Query, Strategy
from pyflinkcep.sase.parser import parsed, parsed_columns, parsed_condition
from pyflinkcep.sase.text import query_text, together
from pyflinkcep.show import Diagram
from pyflinkcep.show.model import Box, Choice, Frame, Link, Part, Row
from pyflinkcep.time import duration_text


@attrs.frozen(repr=False)
class SaseQuery(Query):
    """
    A query in the SASE+ language or in OptiSeq's form.

    Made by :func:`parse`, :func:`seq` or :func:`elements`. Each method returns a new query;
    ``repr`` is text that :func:`parse` reads again.

    Examples
    --------
    >>> query = seq("A a", "B+ b[]").where("b[i].x > b[i-1].x").within(timedelta(minutes=1))
    >>> query
    PATTERN SEQ(A a, B+ b[])
    WHERE b[i].x > b[i-1].x
    WITHIN 1 minute
    >>> parse(repr(query)) == query
    True

    Notes
    -----
    Agrawal, Diao, Gyllstrom, Immerman: Efficient Pattern Matching over Event Streams, SIGMOD
    2008; Xia, Ding, Qiu, Xie: Complex event matching based on recursive comparison of event
    list, Journal of Shenyang Aerospace University 40(2), 2023.
    """

    def strategy(self, name: str, *variables: str) -> SaseQuery:
        """
        Return the query with a strategy for some variables.

        Parameters
        ----------
        name : str
            ``strict_contiguity``, ``partition_contiguity``, ``skip_till_next_match`` or
            ``skip_till_any_match``.
        *variables : str
            The variables; all of them if none is named. The others keep theirs, at first
            skip_till_any_match.

        Raises
        ------
        InvalidArgumentError
            If there is no such strategy or variable, or partition_contiguity comes before
            :meth:`same`.

        Examples
        --------
        >>> seq("A a", "B b").strategy("skip_till_next_match")
        PATTERN SEQ(A a, B b)
        WHERE skip_till_next_match(a, b) {  }
        """
        _check_texts("strategy", name)
        try:
            chosen = Strategy(name.lower().replace("-", "_"))
        except ValueError:
            raise InvalidArgumentError(
                f"expected a strategy, got {name!r}",
                "the strategies are " + ", ".join(strategy.value for strategy in Strategy),
            ) from None
        known = self.variables
        for variable in variables:
            if variable not in known:
                raise InvalidArgumentError(
                    f"expected a variable of the pattern, got {variable!r}",
                    f"the variables are {', '.join(known)}",
                )
        before = {v: self.strategy_of(v) for v in known} | dict.fromkeys(variables or known, chosen)
        return parse(query_text(attrs.evolve(self, strategies=tuple(before.items()))))

    def same(self, *attributes: str) -> SaseQuery:
        """
        Return the query with the tests ``[attribute]``: equal in all events of a match.

        Examples
        --------
        >>> seq("A a", "B b").same("symbol")
        PATTERN SEQ(A a, B b)
        WHERE [symbol]
        """
        _check_texts("same", *attributes)
        equal = tuple(dict.fromkeys((*self.equal, *attributes)))
        return parse(query_text(attrs.evolve(self, equal=equal)))

    def where(self, condition: str) -> SaseQuery:
        """
        Return the query with one more condition, joined by AND.

        Raises
        ------
        InvalidArgumentError
            If the text is not a condition about this pattern; the message says where and why.

        Examples
        --------
        >>> seq("A a", "B b").where("b.x > a.x").where("a.x > 1 or b.x > 9")
        PATTERN SEQ(A a, B b)
        WHERE b.x > a.x
          AND (a.x > 1 OR b.x > 9)
        """
        _check_texts("where", condition)
        return _of(parsed_condition(condition, self))

    def within(self, window: timedelta | int | str) -> SaseQuery:
        """
        Return the query with a window.

        Parameters
        ----------
        window : timedelta, int (milliseconds) or str
            The longest time from a match's first event to its last one, inclusive; text is read as
            after WITHIN, such as ``"10 min"`` or ``"100 events"``.

        Examples
        --------
        >>> elements("A", "!B", "D").within("10 min")
        PATTERN A; !B; D
        WITHIN 10 minutes
        """
        if isinstance(window, timedelta):
            window = window // timedelta(milliseconds=1)
        bare = attrs.evolve(self, window=None, most_events=None, having=None, columns=None)
        own = query_text(attrs.evolve(bare, totals=None))
        checked = parsed(f"{own}\nWITHIN {window}")
        found = attrs.evolve(self, window=checked.window, most_events=checked.most_events)
        return found if self.totals is None else parse(query_text(found))

    def returns(self, *columns: str) -> SaseQuery:
        """
        Return the query with columns instead of whole events.

        Examples
        --------
        >>> seq("A+ a[]", "B b").returns("count(a[]) AS n", "b.x")
        PATTERN SEQ(A+ a[], B b)
        RETURN count(a[]) AS n, b.x
        """
        _check_texts("returns", *columns)
        return _of(parsed_columns(", ".join(columns), self))

    def asPattern(self, type: str = "type") -> Pattern:
        """
        Return the pattern that has the same matches, if there is one.

        Its stages are the variables, its conditions SQL. Key the events by the attributes of
        ``[attr]``, unless a strategy is strict_contiguity; the skip strategy is noSkip.

        Parameters
        ----------
        type : str
            The column that holds an event's type.

        Raises
        ------
        NotSupportedError
            If no pattern has the same matches; the message says why.

        Examples
        --------
        >>> parse("PATTERN SEQ(A a, B b) WHERE skip_till_next_match").asPattern()
        Pattern(a → b)
        """
        _check_texts("asPattern", type)
        return AnalysedQuery(self, type).pattern

    def diagram(self) -> Diagram:
        """
        Return a picture of the query, which a notebook shows.

        Returns
        -------
        Diagram
            The picture, with ``svg``, ``mermaid``, ``dot`` and ``save(path)``.

        Examples
        --------
        >>> seq("A a", "B+ b[]").diagram()
        Diagram(PATTERN SEQ(A a, B+ b[]))
        """
        return query_diagram(self)

    def __repr__(self) -> str:
        return query_text(self)

    def _repr_html_(self) -> str:
        text = f"<details><summary>as text</summary><pre>{escape(query_text(self))}</pre></details>"
        return query_diagram(self).svg + text


def parse(text: str) -> SaseQuery:
    """
    Parse a query.

    Parameters
    ----------
    text : str
        ``PATTERN SEQ(…)`` or ``PATTERN A;B``, with WHERE, WITHIN, HAVING and RETURN, or with
        SLIDE and GROUP BY after WITHIN for totals of windows.

    Raises
    ------
    InvalidArgumentError
        If the text is not a query; the message names line, column and token.

    Examples
    --------
    >>> query = parse("PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) { [k] } WITHIN 9")
    >>> query.window, query.equal
    (9, ('k',))
    >>> parse("PATTERN SEQ(A a, B a)")
    Traceback (most recent call last):
    pyflinkcep.errors.InvalidArgumentError: line 1, column 18: two components are named 'a'
    <BLANKLINE>
    Hint: give each its own name, as in B a2
    """
    if not isinstance(text, str):
        raise InvalidArgumentError(
            f"expected the text of a query, got {type(text).__name__}",
            "write parse('PATTERN SEQ(A a, B b)')",
        )
    return _of(parsed(text))


def seq(*components: str) -> SaseQuery:
    """
    Return a query in SASE+'s form.

    Parameters
    ----------
    *components : str
        Components as written in ``SEQ(…)``: ``"Stock+ a[]"``, ``"~Register b"``.

    Examples
    --------
    >>> seq("Shelf a", "~Register b", "Exit c").same("tag").within("12 hours")
    PATTERN SEQ(Shelf a, ~(Register b), Exit c)
    WHERE [tag]
    WITHIN 12 hours
    """
    _check_texts("seq", *components)
    return parse(f"PATTERN SEQ({', '.join(components)})")


def elements(*parts: str) -> SaseQuery:
    """
    Return a query in OptiSeq's form.

    Parameters
    ----------
    *parts : str
        Elements as written between ``;``: ``"A"``, ``"!B"``, ``"C^3"``.

    Examples
    --------
    >>> elements("A", "!B", "C^3", "D")
    PATTERN A; !B; C^3; D
    """
    _check_texts("elements", *parts)
    return parse(f"PATTERN {'; '.join(parts)}")


def _check_texts(method: str, *values: object) -> None:
    for value in values:
        if not isinstance(value, str):
            raise InvalidArgumentError(
                f"{method}: expected text, got {value!r}",
                f"write {method}('...'), a part of the query as text",
            )


def _of(query: Query) -> SaseQuery:
    values: dict[str, Any] = {name: getattr(query, name) for name in _FIELDS}
    return SaseQuery(**values)


_FIELDS = tuple(field.name for field in attrs.fields(Query))


# --- as a picture


_KINDS = {
    Strategy.STRICT_CONTIGUITY: "strict",
    Strategy.PARTITION_CONTIGUITY: "strict",
    Strategy.SKIP_TILL_NEXT_MATCH: "relaxed",
    Strategy.SKIP_TILL_ANY_MATCH: "any",
}


def query_diagram(query: Query) -> Diagram:
    """Return the picture of a query: its components, each with the conditions it completes."""
    lines: dict[str, list[str]] = {part.variable: [] for part in query.components}
    notes = [f"[{name}]: equal in all events" for name in query.equal]
    notes += [f"[{name} = {literal.text}]: in all events" for name, literal in query.constants]
    for condition in query.conditions:
        named = variables_of(condition) & set(lines)
        if named:
            lines[max(named, key=query.place)].append(shown(condition))
        else:
            notes.append(f"where {shown(condition)}")
    if query.window is not None:
        notes.append(f"within {duration_text(query.window)} of the first event, inclusive")
    if query.most_events is not None:
        notes.append(f"within {query.most_events} events")
    if query.having is not None:
        notes.append(f"having {shown(query.having)}")
    if query.columns is not None:
        notes.append("returns " + ", ".join(column.name for column in query.columns))
    boxes = {part.variable: _box(part, lines[part.variable]) for part in query.components}
    shape = query.shape or model.Sequence(tuple(map(model.One, boxes)))
    title = " ".join(query_text(query).split("\n", 1)[0].split())
    return Diagram(_row(shape, query, boxes), tuple(notes), title=title)


def _row(shape: model.Shape, query: Query, boxes: Mapping[str, Box]) -> Row:
    """Return a shape as a row: of its parts if they follow each other, otherwise of itself."""
    parts = together(query, shape.parts if isinstance(shape, model.Sequence) else (shape,))
    links = [_link(query, query.component(_first(part))) for part, *_ in parts[1:]]
    return Row(tuple(_together(part, query, boxes) for part in parts), tuple(links))


def _together(parts: tuple[model.Shape, ...], query: Query, boxes: Mapping[str, Box]) -> Part:
    """Return a part, or a negated sequence in a frame."""
    drawn = [_part(part, query, boxes) for part in parts]
    if len(drawn) == 1:
        return drawn[0]
    links = (Link("any", "later") for _ in drawn[1:])
    return Frame(Row(tuple(drawn), tuple(links)), "no such sequence")


def _part(shape: model.Shape, query: Query, boxes: Mapping[str, Box]) -> Part:
    if isinstance(shape, model.One):
        return boxes[shape.variable]
    if isinstance(shape, model.Choice):
        return Choice(tuple(_row(part, query, boxes) for part in shape.parts), "one of")
    if isinstance(shape, model.AnyOrder):
        inside = tuple(_part(part, query, boxes) for part in shape.parts)
        return Frame(Row(inside, tuple(Link("plain", "and") for _ in inside[1:])), "in any order")
    if isinstance(shape, model.Optional):
        drawn = _part(shape.part, query, boxes)
        if isinstance(drawn, Choice):
            drawn = Frame(Row((drawn,)))
        return attrs.evolve(drawn, optional="optional")
    if isinstance(shape, model.Repeated):
        return Frame(_row(shape.part, query, boxes), repeats=_times(shape.least, shape.most))
    return Frame(_row(shape, query, boxes))


def _first(shape: model.Shape) -> str:
    """Return the first variable of a shape."""
    while not isinstance(shape, model.One):
        shape = shape.part if isinstance(shape, model.Optional | model.Repeated) else shape.parts[0]
    return shape.variable


def _box(part: Component, conditions: Iterable[str]) -> Box:
    repeats = _times(part.least, part.most) if part.repeats else ""
    return Box(part.variable, (f"type {part.type}", *conditions), repeats, "", part.negated)


def _times(least: int, most: int | None) -> str:
    return f"{least} {'or more' if most is None else f'to {most}'}"


def _link(query: Query, part: Component) -> Link:
    if part.negated:
        return Link("not", "not")
    if query.form is Form.LIST:
        return Link("any", "later")
    strategy = query.strategy_of(part.variable)
    return Link(_KINDS[strategy], strategy.value.replace("_match", "").replace("_", " "))
