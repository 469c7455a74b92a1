# SPDX-License-Identifier: Apache-2.0
"""Reads the clause: the text between the parentheses of MATCH_RECOGNIZE."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeVar

import attrs

from pyflinkcep.errors import CepError, InvalidArgumentError, NotSupportedError
from pyflinkcep.expressions.grammar import parsed
from pyflinkcep.expressions.tokens import SqlSyntaxError
from pyflinkcep.match_recognize.tokens import (
    Source,
    Token,
    as_name,
    closing,
    is_at,
    tokenize,
    with_array_calls,
)
from pyflinkcep.match_recognize.tree import (
    Alternation,
    Anchor,
    Clause,
    Concatenation,
    Definition,
    Exclusion,
    Measure,
    OrderColumn,
    Part,
    Permutation,
    Quantified,
    Rows,
    Skip,
    SkipTo,
    Subset,
    Text,
    Variable,
)

_UNITS = {"DAY": 86_400_000, "HOUR": 3_600_000, "MINUTE": 60_000, "SECOND": 1000}
_SMALL = {"MILLISECOND": 1}
_ORDER = list(_UNITS)
_SPLIT = re.compile(r"[ :]")
_NUMBER = re.compile(r"\d+(\.\d*)?|\.\d+")
_MESSAGE = (
    "Only constant intervals with millisecond resolution are supported as time constraints "
    "of patterns."
)
_INTERVAL_HINT = "write INTERVAL '5' MINUTE, or INTERVAL '0 01:30:00' DAY TO SECOND"


def window_ms(clause: Clause, source: Source) -> int:
    """Return the milliseconds of WITHIN, rounded down; 0 for none."""
    if clause.within is None:
        return 0
    start, end = clause.within.span
    tokens = tokenize(Source(clause.within.text))
    refused = source.error(_MESSAGE, _INTERVAL_HINT, start, end, NotSupportedError)
    words = [token.text for token in tokens[1:]]
    if not tokens[0].is_word("INTERVAL") or not words:
        raise refused
    value = words.pop(0).strip("'\"").strip()
    if not words:
        value, _, unit = value.partition(" ")
        words = [unit.strip()]
    units = _field_names(words)
    if units is None or value.startswith("-"):
        raise refused
    if len(units) == 1:
        return _milliseconds([value], units, refused)
    first, last = (_ORDER.index(unit) for unit in units if unit in _ORDER)
    return _milliseconds(_SPLIT.split(value), _ORDER[first : last + 1], refused)


def standard_window_ms(clause: Clause, source: Source) -> int:
    """Return the milliseconds of WITHIN under the standard's meaning, where zero is refused too."""
    window = window_ms(clause, source)
    if clause.within is not None and window == 0:
        start, end = clause.within.span
        message = f"WITHIN: expected an interval longer than zero, got {clause.within.text}"
        raise source.error(message, "leave WITHIN out if there is no window", start, end)
    return window


def _field_names(words: Sequence[str]) -> list[str] | None:
    """Return the one or two units, without plural and precision; None if they are not units."""
    text = re.sub(r"\(\d+(,\d+)?\)", "", "".join(f" {word}" for word in words).replace(" (", "("))
    text = re.sub(r"\( ?\d+ ?(, ?\d+ ?)?\)", "", text)
    names = [name.upper().rstrip("S") for name in text.split()]
    if len(names) == 1 and names[0] in {**_UNITS, **_SMALL}:
        return names
    if len(names) == 3 and names[1] == "TO" and {names[0], names[2]} <= set(_ORDER):
        return [names[0], names[2]] if _ORDER.index(names[0]) < _ORDER.index(names[2]) else None
    return None


def _milliseconds(values: Sequence[str], units: Sequence[str], refused: Exception) -> int:
    if len(values) != len(units) or not all(map(_NUMBER.fullmatch, values)):
        raise refused
    sizes = {**_UNITS, **_SMALL}
    total = sum(Fraction(value) * sizes[unit] for value, unit in zip(values, units, strict=True))
    if 0 < total < 1:
        raise refused
    return int(total)


_QUANTIFIERS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_HINT = "write variables, | ( ) {- -} ^ $ PERMUTE and the quantifiers * + ? {n,m}"
_MOST_TIMES = 1_000_000
_DEEPEST = 100


def parse_pattern(tokens: Sequence[Token], source: Source, end: int) -> Part:
    """Read a pattern."""
    parser = _PatternParser(tokens, source, end)
    part = parser.alternation()
    if parser.token is not None:
        raise parser.error(f"unexpected {parser.token.text!r} in PATTERN")
    return part


class _PatternParser:
    def __init__(self, tokens: Sequence[Token], source: Source, end: int) -> None:
        self._tokens = tokens
        self._source = source
        self._end = end
        self._at = 0
        self._depth = 0

    @property
    def token(self) -> Token | None:
        """The next token, None at the end."""
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def error(self, message: str, hint: str = _HINT, start: int | None = None) -> CepError:
        """Make an error about the next token, or the part that began at an offset."""
        token = self.token
        end = self._end if token is None else token.end
        if start is None:
            start = self._end if token is None else token.start
        return self._source.error(message, hint, start, end, InvalidArgumentError)

    def alternation(self) -> Part:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self.error(
                f"PATTERN is nested more than {_DEEPEST} deep", "use fewer parentheses"
            )
        start = self._start()
        parts = [self._concatenation()]
        while self._take("|"):
            parts.append(self._concatenation())
        self._depth -= 1
        return parts[0] if len(parts) == 1 else Alternation(tuple(parts), self._span(start))

    def _concatenation(self) -> Part:
        start, parts = self._start(), []
        while self.token is not None and not self._ends():
            parts.append(self._factor())
        return parts[0] if len(parts) == 1 else Concatenation(tuple(parts), self._span(start))

    def _ends(self) -> bool:
        """Whether a concatenation ends before the next token."""
        return any(self._sees(*end) for end in (("|",), (")",), (",",), ("-", "}")))

    def _factor(self) -> Part:
        start = self._start()
        part = self._primary()
        bounds = self._quantifier()
        if bounds is None:
            return part
        low, high, began = bounds
        greedy = not self._take("?")
        written = self._source.text[began : self._before()]
        return Quantified(part, low, high, greedy, written, self._span(start))

    def _primary(self) -> Part:
        start = self._start()
        for symbol in "^$":
            if self._take(symbol):
                return Anchor(symbol == "$", self._span(start))
        if self._take("{", "-"):
            inner = self.alternation()
            self._expect("-", "}", start=start)
            return Exclusion(inner, self._span(start))
        if self._take("("):
            inner = self.alternation()
            self._expect(")", start=start)
            return inner
        token = None if self.token is None else as_name(self.token)
        if token is None or not token.is_identifier:
            raise self.error(f"expected a variable in PATTERN, got {_named(token)}")
        self._at += 1
        if token.is_word("PERMUTE") and self._take("("):
            parts = [self.alternation()]
            while self._take(","):
                parts.append(self.alternation())
            self._expect(")", start=start)
            return Permutation(tuple(parts), self._span(start))
        return Variable(token.text, (token.start, token.end))

    # --- quantifiers

    def _quantifier(self) -> tuple[int, int | None, int] | None:
        start = self._start()
        for symbol, (low, high) in _QUANTIFIERS.items():
            if self._take(symbol):
                return low, high, start
        if self._sees("{", "-") or not self._take("{"):
            return None
        least = self._number()
        if self._take(","):
            most = self._number()
        elif least is None:
            raise self.error(f"expected a number in {{ }}, got {_named(self.token)}")
        else:
            most = least
        self._expect("}", start=start)
        if most is not None and (least or 0) > most:
            raise self.error(
                f"The to should be a number greater than or equal to from: {least}.",
                f"write {{{most},{least}}}",
                start,
            )
        return least or 0, most, start

    def _number(self) -> int | None:
        token = self.token
        if token is None or token.kind != "number":
            return None
        is_short = token.text.isdecimal() and len(token.text) <= len(str(_MOST_TIMES))
        if not is_short or int(token.text) > _MOST_TIMES:
            raise self.error(
                f"expected a whole number up to {_MOST_TIMES}, got {token.text}",
                "write {n}, {n,}, {n,m} or {,m}",
            )
        self._at += 1
        return int(token.text)

    # --- tokens

    def _start(self) -> int:
        return self._end if self.token is None else self.token.start

    def _before(self) -> int:
        """Return where the last token taken ends."""
        return self._tokens[self._at - 1].end if self._at else self._start()

    def _span(self, start: int) -> tuple[int, int]:
        return start, max(start, self._before())

    def _sees(self, *symbols: str) -> bool:
        following = self._tokens[self._at : self._at + len(symbols)]
        return len(following) == len(symbols) and all(
            token.is_symbol(symbol) for token, symbol in zip(following, symbols, strict=True)
        )

    def _take(self, *symbols: str) -> bool:
        if not self._sees(*symbols):
            return False
        self._at += len(symbols)
        return True

    def _expect(self, *symbols: str, start: int) -> None:
        if not self._take(*symbols):
            wanted = "".join(symbols)
            raise self.error(
                f"expected {wanted!r} in PATTERN, got {_named(self.token)}",
                f"close the part that begins at {self._source.place(start)}",
            )


def _named(token: Token | None) -> str:
    return "the end of PATTERN" if token is None else repr(token.text)


_ALL_ROWS = {
    ("SHOW", "EMPTY", "MATCHES"): Rows.SHOW_EMPTY,
    ("OMIT", "EMPTY", "MATCHES"): Rows.OMIT_EMPTY,
    ("WITH", "UNMATCHED", "ROWS"): Rows.WITH_UNMATCHED,
}
_HEADS = [
    ("PARTITION", "BY"),
    ("ORDER", "BY"),
    ("MEASURES",),
    ("ONE", "ROW", "PER", "MATCH"),
    ("ALL", "ROWS", "PER", "MATCH"),
    ("AFTER", "MATCH"),
    ("PATTERN", "("),
    ("WITHIN",),
    ("SUBSET",),
    ("DEFINE",),
]
COMPUTE_FIRST = "compute it in a subquery: FROM (SELECT *, … AS x FROM …) MATCH_RECOGNIZE"
"""How to order by what is not a column."""
NO_PROCESSING_TIME = "SQL has no processing time here: order by the event time, a column"
_WITHIN = "write WITHIN INTERVAL '5' SECOND after PATTERN (…)"
_OTHERS = {
    "ALL": "ALL MATCHES is Esper's: AFTER MATCH SKIP TO NEXT ROW finds one match for each first "
    "row, a Pattern all matches",
    "LIMIT": _WITHIN,
    "INTERVAL": _WITHIN,
    "WINDOW": "leave WINDOW out: PARTITION BY and ORDER BY say what the rows are",
}
"""By other systems' words, what to write instead."""
_ORDER_OF_CLAUSES = (
    "the order is PARTITION BY, ORDER BY, MEASURES, ONE or ALL ROWS PER MATCH, "
    "AFTER MATCH SKIP, PATTERN (…), WITHIN, SUBSET, DEFINE"
)

_T = TypeVar("_T")


def parse_clause(tokens: Sequence[Token], source: Source, end: int) -> Clause:
    """Read a clause."""
    return _Parser(tokens, source, end).clause()


class _Parser:
    def __init__(self, tokens: Sequence[Token], source: Source, end: int) -> None:
        self._tokens = tokens
        self._source = source
        self._end = end
        self._at = 0

    def clause(self) -> Clause:
        partition = self._list(self._column) if self._take("PARTITION", "BY") else ()
        order = self._list(self._order_column) if self._take("ORDER", "BY") else ()
        measures = self._list(self._measure) if self._take("MEASURES") else ()
        rows_start = self._start()
        rows = self._rows()
        rows_span = (rows_start, self._before(rows_start))
        skip = self._skip()
        pattern_start = self._start()
        pattern = self._pattern()
        pattern_span = (pattern_start, self._before(pattern_start))
        within = self._within()
        subsets = self._list(self._subset) if self._take("SUBSET") else ()
        definitions = self._list(self._definition) if self._take("DEFINE") else ()
        if self._at < len(self._tokens):
            raise self._error(f"unexpected {self._tokens[self._at].text!r}", self._hint_here())
        return Clause(
            partition, order, measures, rows, skip, pattern, within, subsets, definitions,
            rows_span, pattern_span,
        )  # fmt: skip

    # --- clause by clause

    def _column(self) -> Text:
        start = self._at
        stop = self._item_end(is_column=True)
        name = self._name_at(start, stop)
        name = name or self._computed(self._head_before(start), start, stop, stop)
        self._at = stop
        return name

    def _computed(self, head: str, start: int, last: int, stop: int) -> Text:
        """Return an expression of PARTITION BY or ORDER BY as a column that is computed first."""
        words = [token.text.upper() for token in self._tokens[start:stop]]
        hint = COMPUTE_FIRST
        if words[0] in ("PROCTIME", "MATCH_PROCTIME"):
            hint = NO_PROCESSING_TIME
        elif "LIMIT" in words:
            hint = _WITHIN
        elif self._is_sql(start, last) and any(t.is_identifier for t in self._tokens[start:last]):
            return attrs.evolve(self._text(start, last), is_computed=True)
        raise self._spanned(f"{head} takes columns", hint, start, stop)

    def _order_column(self) -> OrderColumn:
        start = self._at
        stop = last = self._item_end(is_column=True)
        nulls_first = None
        for word, first in (("FIRST", True), ("LAST", False)):
            if is_at(self._tokens, last - 2, "NULLS", word) and last - 2 > start:
                nulls_first, last = first, last - 2
                break
        descending = is_at(self._tokens, last - 1, "DESC") and last - 1 > start
        if descending or (is_at(self._tokens, last - 1, "ASC") and last - 1 > start):
            last -= 1
        name = self._name_at(start, last)
        name = name or self._computed("ORDER BY", start, last, stop)
        self._at = stop
        return OrderColumn(name, descending, nulls_first)

    def _measure(self) -> Measure:
        start, stop = self._at, self._item_end()
        self._check_end_of_measure(start, stop)
        name = as_name(self._tokens[stop - 1])
        named = stop - 2 > start and is_at(self._tokens, stop - 2, "AS") and name.is_identifier
        is_alias = not named and name.is_identifier and self._is_alias(start, stop)
        end = stop - 2 if named else stop - 1 if is_alias else stop
        shown = self._source.shown(*self._span(start, end))
        hint = f"write {shown} AS {name.text if is_alias else 'name'}"
        if not named and not is_alias and self._name_at(start, stop) is None:
            raise self._spanned("a measure needs AS name", hint, start, stop)
        self._at = stop
        text, span = self._text(start, end), self._span(start, stop)
        return Measure(text, name.text, span, None if named else hint)

    def _is_alias(self, start: int, stop: int) -> bool:
        """Whether the last word is a name after an expression, rather than part of it."""
        if stop - start < 2 or self._is_dot(stop - 2):
            return False
        return self._is_sql(start, stop - 1) and not self._is_sql(start, stop)

    def _is_sql(self, start: int, stop: int) -> bool:
        try:
            parsed(with_array_calls(self._text(start, stop).text, lambda _: False))
        except SqlSyntaxError:
            return False
        return True

    def _check_end_of_measure(self, start: int, stop: int) -> None:
        """Refuse words after a measure's name, which are often another system's clause."""
        depth = 0
        for at in range(start, stop - 2):
            token = self._tokens[at]
            depth += token.is_symbol("(") + token.is_symbol("[")
            depth -= token.is_symbol(")") + token.is_symbol("]")
            if depth or at == start or not is_at(self._tokens, at, "AS"):
                continue
            words = self._source.shown(*self._span(at + 2, stop))
            hint = _OTHERS.get(words.upper().partition(" ")[0], _ORDER_OF_CLAUSES)
            raise self._spanned(f"unexpected {words!r} after a measure", hint, at + 2, stop)

    def _rows(self) -> Rows:
        if self._take("ONE", "ROW", "PER", "MATCH"):
            return Rows.ONE
        if not self._take("ALL", "ROWS", "PER", "MATCH"):
            return Rows.ONE
        for words, rows in _ALL_ROWS.items():
            if self._take(*words):
                return rows
        return Rows.SHOW_EMPTY

    def _skip(self) -> Skip | None:
        start = self._at
        if not self._take("AFTER", "MATCH"):
            return None
        hint = "write AFTER MATCH SKIP PAST LAST ROW, TO NEXT ROW, TO FIRST A, TO LAST A or TO A"
        if not self._take("SKIP"):
            raise self._error(f"expected SKIP after AFTER MATCH, got {self._got()}", hint)
        to, variable = SkipTo.LAST, None
        if self._take("PAST", "LAST", "ROW"):
            to = SkipTo.PAST_LAST_ROW
        elif self._take("TO", "NEXT", "ROW"):
            to = SkipTo.NEXT_ROW
        elif self._take("TO"):
            if self._sees("FIRST") and not is_at(self._tokens, self._at + 1, "PATTERN", "("):
                self._at, to = self._at + 1, SkipTo.FIRST
            elif self._sees("LAST") and not is_at(self._tokens, self._at + 1, "PATTERN", "("):
                self._at += 1
            variable = self._identifier("a variable to skip to", hint)
        elif self._take("PAST"):
            raise self._error(f"expected LAST ROW after SKIP PAST, got {self._got()}", hint)
        else:
            raise self._error(f"expected PAST or TO after SKIP, got {self._got()}", hint)
        return Skip(to, variable, self._span(start, self._at))

    def _hint_here(self) -> str:
        """Return what to write in place of the next word, which may be another system's."""
        at = self._at
        word = self._tokens[at].text.upper() if at < len(self._tokens) else ""
        return _OTHERS.get(word, _ORDER_OF_CLAUSES)

    def _pattern(self) -> Part:
        if not self._sees("PATTERN", "("):
            raise self._error(f"expected PATTERN (…), got {self._got()}", self._hint_here())
        begin = self._at + 1
        end = closing(self._tokens, begin, self._source)
        self._at = end + 1
        inner = self._tokens[begin + 1 : end]
        return parse_pattern(inner, self._source, self._tokens[end].start)

    def _within(self) -> Text | None:
        if not self._take("WITHIN"):
            return None
        start = self._at
        while self._at < len(self._tokens) and not self._at_head():
            self._at += 1
        if start == self._at:
            raise self._error(
                f"expected an interval after WITHIN, got {self._got()}",
                "write WITHIN INTERVAL '5' MINUTE",
            )
        return self._text(start, self._at)

    def _subset(self) -> Subset:
        start = self._at
        hint = "write SUBSET U = (A, B)"
        name = self._identifier("a name in SUBSET", hint)
        for symbol in "=(":
            if not self._take(symbol):
                raise self._error(f"expected {symbol} in SUBSET, got {self._got()}", hint)
        members = [self._identifier("a variable in SUBSET", hint)]
        while self._take(","):
            members.append(self._identifier("a variable in SUBSET", hint))
        if not self._take(")"):
            raise self._error(f"expected ) in SUBSET, got {self._got()}", hint)
        return Subset(name, tuple(members), self._span(start, self._at))

    def _definition(self) -> Definition:
        start = self._at
        hint = "write DEFINE A AS condition"
        variable = self._identifier("a variable in DEFINE", hint)
        if not self._take("AS"):
            raise self._error(f"expected AS in DEFINE, got {self._got()}", hint)
        begin, stop = self._at, self._item_end()
        if begin == stop:
            raise self._error(f"expected a condition of {variable}, got {self._got()}", hint)
        self._at = stop
        return Definition(variable, self._text(begin, stop), self._span(start, stop))

    # --- lists and tokens

    def _list(self, item: Callable[[], _T]) -> tuple[_T, ...]:
        items = [item()]
        while self._take(","):
            items.append(item())
        return tuple(items)

    def _item_end(self, is_column: bool = False) -> int:
        """Return the end of a list item: before a comma or the next clause."""
        depth, at = 0, self._at
        while at < len(self._tokens):
            token = self._tokens[at]
            if token.is_symbol("(") or token.is_symbol("["):
                depth += 1
            elif token.is_symbol(")") or token.is_symbol("]"):
                depth -= 1
            elif not depth and (token.is_symbol(",") or self._at_head(at, is_column)):
                break
            at += 1
        if at == self._at:
            raise self._error(
                f"expected more after {self._head_before(at)}, got {self._got()}",
                _ORDER_OF_CLAUSES,
            )
        return at

    def _at_head(self, at: int | None = None, in_column: bool = False) -> bool:
        """Whether a clause begins at a position, which may be inside an item that is a column."""
        position = self._at if at is None else at
        if position and self._tokens[position - 1].is_symbol("."):
            return False
        if is_at(self._tokens, position, "WITHIN", "GROUP"):
            return False
        for head in _HEADS:
            if is_at(self._tokens, position, *head):
                # One word only ends an item if it cannot be a column name there.
                following = self._tokens[position + 1 : position + 2]
                if len(head) > 1 or not following:
                    return len(head) > 1
                return position > self._at if in_column else following[0].kind != "symbol"
        return False

    def _head_before(self, at: int) -> str:
        """Return the keywords of the clause at a position."""
        for position in range(at - 1, -1, -1):
            for head in _HEADS:
                if is_at(self._tokens, position, *head):
                    return " ".join(word for word in head if word != "(")
        return "MATCH_RECOGNIZE ("

    def _is_dot(self, at: int) -> bool:
        return self._tokens[at].is_symbol(".")

    def _name_at(self, start: int, stop: int) -> Text | None:
        """Return tokens as a column's name; None if they are not one."""
        names = [as_name(token) for token in self._tokens[start:stop:2]]
        dots = self._tokens[start + 1 : stop : 2]
        is_name = all(name.is_identifier for name in names) and len(names) == len(dots) + 1
        if not is_name or not all(dot.is_symbol(".") for dot in dots):
            return None
        table = names[-2].text if dots else None
        return Text(names[-1].text, self._span(start, stop), table)

    def _identifier(self, what: str, hint: str) -> str:
        token = as_name(self._tokens[self._at]) if self._at < len(self._tokens) else None
        if token is None or not token.is_identifier:
            raise self._error(f"expected {what}, got {self._got()}", hint)
        self._at += 1
        return token.text

    def _text(self, start: int, stop: int) -> Text:
        """Return tokens as written; names in double quotes, beside a dot, in backquotes."""
        span = self._span(start, stop)
        text = self._source.text[slice(*span)]
        for at in range(start, stop):
            token = as_name(self._tokens[at])
            beside = self._tokens[max(at - 1, start)], self._tokens[min(at + 1, stop - 1)]
            if token is not self._tokens[at] and any(other.is_symbol(".") for other in beside):
                begin, end = token.start - span[0], token.end - span[0]
                text = f"{text[:begin]}`{token.text}`{text[end:]}"
        return Text(text, span)

    def _span(self, start: int, stop: int) -> tuple[int, int]:
        return self._tokens[start].start, self._tokens[max(start, stop - 1)].end

    def _start(self) -> int:
        return self._tokens[self._at].start if self._at < len(self._tokens) else self._end

    def _before(self, start: int) -> int:
        return max(start, self._tokens[self._at - 1].end) if self._at else start

    def _sees(self, *words: str) -> bool:
        return is_at(self._tokens, self._at, *words)

    def _take(self, *words: str) -> bool:
        if not self._sees(*words):
            return False
        self._at += len(words)
        return True

    def _got(self) -> str:
        at_end = self._at >= len(self._tokens)
        return "the end of the clause" if at_end else repr(self._tokens[self._at].text)

    def _error(self, message: str, hint: str) -> CepError:
        end = self._tokens[self._at].end if self._at < len(self._tokens) else self._end
        return self._source.error(message, hint, self._start(), end)

    def _spanned(self, message: str, hint: str, start: int, stop: int) -> CepError:
        return self._source.error(message, hint, *self._span(start, stop))
