# SPDX-License-Identifier: Apache-2.0
"""The clause as a syntax tree, not yet interpreted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import Enum

import attrs

Span = tuple[int, int]
"""The start and end of a part of the statement."""

_NOWHERE: Span = (0, 0)
_PLAIN = re.compile(r"[A-Za-z_]\w*")


def _quoted(name: str) -> str:
    """Return a name in a form valid in the clause."""
    return name if _PLAIN.fullmatch(name) else "`" + name.replace("`", "``") + "`"


# --- PATTERN


@attrs.frozen
class Variable:
    """A pattern variable, by its name as written."""

    name: str
    span: Span = attrs.field(default=_NOWHERE, eq=False, repr=False)

    def __str__(self) -> str:
        return _quoted(self.name)


@attrs.frozen
class Anchor:
    """The start ``^`` or the end ``$`` of the partition."""

    is_end: bool
    span: Span = attrs.field(default=_NOWHERE, eq=False, repr=False)

    def __str__(self) -> str:
        return "$" if self.is_end else "^"


@attrs.frozen
class Concatenation:
    """Parts one after another; none of them is the empty pattern ``()``."""

    parts: tuple[Part, ...]
    span: Span = attrs.field(default=_NOWHERE, eq=False, repr=False)

    def __str__(self) -> str:
        return f"({' '.join(map(str, self.parts))})"


@attrs.frozen
class Alternation:
    """One of several parts, the first preferred."""

    parts: tuple[Part, ...]
    span: Span = attrs.field(default=_NOWHERE, eq=False, repr=False)

    def __str__(self) -> str:
        return f"({' | '.join(map(str, self.parts))})"


@attrs.frozen
class Permutation:
    """All parts in any order: ``PERMUTE(A, B)``."""

    parts: tuple[Part, ...]
    span: Span = attrs.field(default=_NOWHERE, eq=False, repr=False)

    def __str__(self) -> str:
        return f"PERMUTE({', '.join(map(str, self.parts))})"


@attrs.frozen
class Exclusion:
    """A part whose rows are left out of the output: ``{- A -}``."""

    part: Part
    span: Span = attrs.field(default=_NOWHERE, eq=False, repr=False)

    def __str__(self) -> str:
        return f"{{- {self.part} -}}"


@attrs.frozen
class Quantified:
    """A part that is repeated."""

    part: Part  # What is repeated
    low: int  # The least number of times
    high: int | None  # The greatest number of times; None for any
    greedy: bool  # Whether more is preferred to less
    written: str = attrs.field(eq=False)  # The quantifier as it was written, such as ``{2,}?``
    span: Span = attrs.field(default=_NOWHERE, eq=False, repr=False)

    def __str__(self) -> str:
        return f"{self.part}{self.written}"


Part = Variable | Anchor | Concatenation | Alternation | Permutation | Exclusion | Quantified


def variables(part: Part) -> Iterator[Variable]:
    """Yield the variables of a pattern from left to right, with repetitions."""
    yield from (one for one in parts(part) if isinstance(one, Variable))


def parts(part: Part) -> Iterator[Part]:
    """Yield a pattern and all parts inside, from left to right."""
    yield part
    if isinstance(part, Quantified | Exclusion):
        yield from parts(part.part)
    elif not isinstance(part, Variable | Anchor):
        for inner in part.parts:
            yield from parts(inner)


# --- the other clauses


@attrs.frozen
class Text:
    """An expression as text, or the name of a column, which may be computed first."""

    text: str
    span: Span = attrs.field(default=_NOWHERE, eq=False, repr=False)
    table: str | None = attrs.field(default=None, eq=False, repr=False)
    is_computed: bool = attrs.field(default=False, eq=False, repr=False)

    def __str__(self) -> str:
        return self.text


@attrs.frozen
class OrderColumn:
    """A column of ORDER BY; `nulls_first` is None if the text does not say."""

    name: Text
    descending: bool
    nulls_first: bool | None

    def __str__(self) -> str:
        nulls = {None: "", True: " NULLS FIRST", False: " NULLS LAST"}[self.nulls_first]
        return f"{_quoted(self.name.text)}{' DESC' if self.descending else ''}{nulls}"


@attrs.frozen
class Measure:
    """``expression AS name``."""

    expression: Text
    name: str
    span: Span = attrs.field(default=_NOWHERE, eq=False, repr=False)
    unnamed: str | None = attrs.field(default=None, eq=False, repr=False)
    """How to write it with AS, which Flink needs; None if it has that."""

    def __str__(self) -> str:
        return f"{self.expression} AS {_quoted(self.name)}"


class Rows(Enum):
    """The output rows of a match."""

    ONE = "ONE ROW PER MATCH"
    SHOW_EMPTY = "ALL ROWS PER MATCH SHOW EMPTY MATCHES"
    OMIT_EMPTY = "ALL ROWS PER MATCH OMIT EMPTY MATCHES"
    WITH_UNMATCHED = "ALL ROWS PER MATCH WITH UNMATCHED ROWS"


class SkipTo(Enum):
    """Where to look for the next match."""

    NEXT_ROW = "TO NEXT ROW"
    PAST_LAST_ROW = "PAST LAST ROW"
    FIRST = "TO FIRST"
    LAST = "TO LAST"


@attrs.frozen
class Skip:
    """AFTER MATCH SKIP, with the variable to skip to if any."""

    to: SkipTo
    variable: str | None = None
    span: Span = attrs.field(default=_NOWHERE, eq=False, repr=False)

    def __str__(self) -> str:
        target = "" if self.variable is None else f" {_quoted(self.variable)}"
        return f"AFTER MATCH SKIP {self.to.value}{target}"


@attrs.frozen
class Subset:
    """``name = (variable, …)`` of SUBSET."""

    name: str
    variables: tuple[str, ...]
    span: Span = attrs.field(default=_NOWHERE, eq=False, repr=False)

    def __str__(self) -> str:
        return f"{_quoted(self.name)} = ({', '.join(map(_quoted, self.variables))})"


@attrs.frozen
class Definition:
    """``variable AS condition`` of DEFINE."""

    variable: str
    condition: Text
    span: Span = attrs.field(default=_NOWHERE, eq=False, repr=False)

    def __str__(self) -> str:
        return f"{_quoted(self.variable)} AS {self.condition}"


Spanned = Text | Measure | Skip | Subset | Definition | Part
"""What knows its position in the statement."""


@attrs.frozen
class Clause:
    """The text between the parentheses of MATCH_RECOGNIZE."""

    partition: tuple[Text, ...]  # The columns of PARTITION BY
    order: tuple[OrderColumn, ...]  # The columns of ORDER BY
    measures: tuple[Measure, ...]  # The output columns
    rows: Rows  # The output rows of a match
    skip: Skip | None  # AFTER MATCH; None if the text does not say
    pattern: Part  # PATTERN
    within: Text | None  # The interval of WITHIN
    subsets: tuple[Subset, ...]  # SUBSET
    definitions: tuple[Definition, ...]  # DEFINE
    # The positions of ROWS PER MATCH and PATTERN.
    rows_span: Span = attrs.field(default=_NOWHERE, eq=False, repr=False)
    pattern_span: Span = attrs.field(default=_NOWHERE, eq=False, repr=False)

    @property
    def keys(self) -> list[str]:
        """The names of the columns of PARTITION BY."""
        return [key.text for key in self.partition]

    @property
    def ordering(self) -> list[tuple[str, bool, bool | None]]:
        """For each column of ORDER BY its name, whether it is descending, whether NULL is first."""
        return [(one.name.text, one.descending, one.nulls_first) for one in self.order]

    def shown(self, columns: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return the input's columns in the output, before and after the measures."""
        if self.rows is Rows.ONE:
            return self.keys, []
        first = list(dict.fromkeys([*self.keys, *(name for name, _, _ in self.ordering)]))
        return first, [name for name in columns if name not in first]

    def computed(self) -> list[Text]:
        """Return the expressions of PARTITION BY and ORDER BY, each once."""
        columns = (*self.partition, *(column.name for column in self.order))
        return list({one.text: one for one in columns if one.is_computed}.values())

    def __str__(self) -> str:
        """Return the clause as text, one part a line."""
        lists = [
            ("PARTITION BY ", [_quoted(key.text) for key in self.partition]),
            ("ORDER BY ", self.order),
            ("MEASURES ", self.measures),
        ]
        lines = [head + ", ".join(map(str, items)) for head, items in lists if items]
        lines.append(self.rows.value)
        if self.skip is not None:
            lines.append(str(self.skip))
        within = f" WITHIN {self.within}" if self.within is not None else ""
        lines.append(f"PATTERN ({self.pattern}){within}")
        for head, more in (("SUBSET ", self.subsets), ("DEFINE ", self.definitions)):
            if more:
                lines.append(head + ", ".join(map(str, more)))
        return "\n".join(lines)
