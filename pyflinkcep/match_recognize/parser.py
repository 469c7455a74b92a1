# SPDX-License-Identifier: Apache-2.0
"""Reads the clause: the text between the parentheses of MATCH_RECOGNIZE."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

import attrs

from pyflinkcep.errors import CepError, NotSupportedError
from pyflinkcep.expressions.grammar import parsed
from pyflinkcep.expressions.tokens import (
    Cursor,
    SqlSyntaxError,
    Token,
    TokenKind,
    interval_us,
    is_at,
)
from pyflinkcep.match_recognize.tokens import Source, as_name, partner, tokenize, with_array_calls
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

_UNITS = {"DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND"}
_PRECISION = re.compile(r"\(\s*\d+\s*(,\s*\d+\s*)?\)")
_MESSAGE = (
    "Only constant intervals with millisecond resolution are supported as time constraints "
    "of patterns."
)
_INTERVAL_HINT = "write INTERVAL '5' MINUTE, or INTERVAL '0 01:30:00' DAY TO SECOND"


def window_ms(clause: Clause, source: Source) -> int:
    """Return the milliseconds of WITHIN, rounded down; 0 for none."""
    if clause.within is None:
        return 0
    word, *others = tokenize(Source(clause.within.text))
    length = _PRECISION.sub("", " ".join(token.text for token in others))
    units = [unit.upper().rstrip("S") for unit in re.findall("[A-Za-z]+", length)]
    is_known = units[1:2] in ([], ["TO"]) and {*units[:1], *units[2:]} <= _UNITS
    microseconds = None
    if word.word == "INTERVAL" and is_known and not set("+-") & set(length):
        microseconds = interval_us(length)
    if microseconds is None or (microseconds < 1000 and re.search("[1-9]", length)):
        raise source.error(_MESSAGE, _INTERVAL_HINT, *clause.within.span, NotSupportedError)
    return microseconds // 1000


def standard_window_ms(clause: Clause, source: Source) -> int:
    """Return the milliseconds of WITHIN under the standard's meaning, where zero is refused too."""
    window = window_ms(clause, source)
    if clause.within is not None and window == 0:
        start, end = clause.within.span
        message = f"WITHIN: expected an interval longer than zero, got {clause.within.text}"
        raise source.error(message, "leave WITHIN out if there is no window", start, end)
    return window


class _ClauseCursor(Cursor):
    """Reads tokens of a clause one by one."""

    where = "the clause"

    def __init__(self, tokens: Sequence[Token], source: Source, end: int) -> None:
        super().__init__(source.text, [*tokens, Token(TokenKind.END, "", end, end)])
        self._source = source

    def error(self, message: str, hint: str, start: int | None = None) -> CepError:
        """Make an error about the next token, or the part that began at an offset."""
        token = self.here
        begin = token.start if start is None else start
        return self._source.error(message, hint, begin, token.end)

    def got(self) -> str:
        """Return the next token as messages show it."""
        return f"the end of {self.where}" if self.at_end else repr(self.here.text)

    def unexpected(self, wanted: str, hint: str = "") -> CepError:
        """Make the error for the next token, in whose place something else is wanted."""
        return self.error(f"expected {wanted}, got {self.got()}", hint)

    @property
    def at_end(self) -> bool:
        """Whether all tokens have been read."""
        return self.here.kind is TokenKind.END

    def span_of(self, start: int) -> tuple[int, int]:
        """Return the span from an offset to the end of the last token read, if it is after it."""
        return start, max(start, self._tokens[self._at - 1].end) if self._at else start

    def name(self, what: str, hint: str) -> str:
        """Move past a name, which may be in double quotes, and return it."""
        token = as_name(self.here)
        if token.kind is not TokenKind.NAME:
            raise self.unexpected(what, hint)
        self.next()
        return token.text


_QUANTIFIERS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_HINT = "write variables, | ( ) {- -} ^ $ PERMUTE and the quantifiers * + ? {n,m}"
_MOST_TIMES = 1_000_000
_DEEPEST = 100


def parse_pattern(tokens: Sequence[Token], source: Source, end: int) -> Part:
    """Read a pattern."""
    parser = _PatternParser(tokens, source, end)
    part = parser.alternation()
    if not parser.at_end:
        raise parser.error(f"unexpected {parser.here.text!r} in PATTERN", _HINT)
    return part


class _PatternParser(_ClauseCursor):
    where = "PATTERN"

    def alternation(self) -> Part:
        with self.deeper(_DEEPEST, self._too_deep):
            start = self.here.start
            parts = [self._concatenation()]
            while self.take("|"):
                parts.append(self._concatenation())
        return parts[0] if len(parts) == 1 else Alternation(tuple(parts), self.span_of(start))

    def _too_deep(self) -> CepError:
        return self.error(f"PATTERN is nested more than {_DEEPEST} deep", "use fewer parentheses")

    def _concatenation(self) -> Part:
        start, parts = self.here.start, list[Part]()
        while not self.at_end and self.here.word not in ("|", ")", ",") and not self.sees("-", "}"):
            parts.append(self._factor())
        return parts[0] if len(parts) == 1 else Concatenation(tuple(parts), self.span_of(start))

    def _factor(self) -> Part:
        start = self.here.start
        part = self._primary()
        began = self.here.start
        bounds = self._quantifier()
        if bounds is None:
            return part
        greedy = self.take("?") is None
        written = self.text[slice(*self.span(began))]
        return Quantified(part, *bounds, greedy, written, self.span(start))

    def _primary(self) -> Part:
        start = self.here.start
        anchor = self.take("^", "$")
        if anchor is not None:
            return Anchor(anchor.word == "$", self.span(start))
        if self.take_all("{", "-"):
            inner = self.alternation()
            self._close(start, "-", "}")
            return Exclusion(inner, self.span(start))
        if self.take("("):
            inner = self.alternation()
            self._close(start, ")")
            return inner
        token = self.here
        name = self.name("a variable in PATTERN", _HINT)
        if token.word == "PERMUTE" and self.take("("):
            parts = self.listed(self.alternation)
            self._close(start, ")")
            return Permutation(tuple(parts), self.span(start))
        return Variable(name, (token.start, token.end))

    def _close(self, start: int, *signs: str) -> None:
        if not self.take_all(*signs):
            raise self.error(
                f"expected {''.join(signs)!r} in PATTERN, got {self.got()}",
                f"close the part that begins at {self._source.place(start)}",
            )

    # --- quantifiers

    def _quantifier(self) -> tuple[int, int | None] | None:
        start = self.here.start
        sign = self.take(*_QUANTIFIERS)
        if sign is not None:
            return _QUANTIFIERS[sign.word]
        if self.sees("{", "-") or not self.take("{"):
            return None
        least = self._number()
        if self.take(","):
            most = self._number()
        elif least is None:
            raise self.unexpected("a number in { }", _HINT)
        else:
            most = least
        self._close(start, "}")
        if most is not None and (least or 0) > most:
            what = f"The to should be a number greater than or equal to from: {least}."
            raise self.error(what, f"write {{{most},{least}}}", start)
        return least or 0, most

    def _number(self) -> int | None:
        token = self.here
        if token.kind is not TokenKind.NUMBER:
            return None
        is_short = token.text.isdecimal() and len(token.text) <= len(str(_MOST_TIMES))
        if not is_short or int(token.text) > _MOST_TIMES:
            raise self.error(
                f"expected a whole number up to {_MOST_TIMES}, got {token.text}",
                "write {n}, {n,}, {n,m} or {,m}",
            )
        return int(self.next().text)


_ALL = ("ALL", "ROWS", "PER", "MATCH")
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


class _Parser(_ClauseCursor):
    def clause(self) -> Clause:
        partition = self._list(self._column) if self.take_all("PARTITION", "BY") else ()
        order = self._list(self._order_column) if self.take_all("ORDER", "BY") else ()
        measures = self._list(self._measure) if self.take("MEASURES") else ()
        start = self.here.start
        rows = self._rows()
        rows_span = self.span_of(start)
        skip = self._skip()
        start = self.here.start
        pattern = self._pattern()
        pattern_span = self.span_of(start)
        within = self._within()
        subsets = self._list(self._subset) if self.take("SUBSET") else ()
        definitions = self._list(self._definition) if self.take("DEFINE") else ()
        if not self.at_end:
            raise self.error(f"unexpected {self.here.text!r}", self._hint_here())
        return Clause(
            partition, order, measures, rows, skip, pattern, within, subsets, definitions,
            rows_span, pattern_span,
        )  # fmt: skip

    def _list(self, item: Callable[[], _T]) -> tuple[_T, ...]:
        return tuple(self.listed(item))

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
        elif self._is_sql(start, last) and self._has_name(start, last):
            return attrs.evolve(self._text(start, last), is_computed=True)
        raise self._spanned(f"{head} takes columns", hint, start, stop)

    def _has_name(self, start: int, stop: int) -> bool:
        return any(token.kind is TokenKind.NAME for token in self._tokens[start:stop])

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
        is_name = name.kind is TokenKind.NAME
        named = is_name and stop - 2 > start and is_at(self._tokens, stop - 2, "AS")
        is_alias = is_name and not named and self._is_alias(start, stop)
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
        if stop - start < 2 or self._tokens[stop - 2].word == ".":
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
            depth += (token.word in ("(", "[")) - (token.word in (")", "]"))
            if depth or at == start or not is_at(self._tokens, at, "AS"):
                continue
            words = self._source.shown(*self._span(at + 2, stop))
            hint = _OTHERS.get(words.upper().partition(" ")[0], _ORDER_OF_CLAUSES)
            raise self._spanned(f"unexpected {words!r} after a measure", hint, at + 2, stop)

    def _rows(self) -> Rows:
        if self.take_all("ONE", "ROW", "PER", "MATCH") or not self.take_all(*_ALL):
            return Rows.ONE
        for words, rows in _ALL_ROWS.items():
            if self.take_all(*words):
                return rows
        return Rows.SHOW_EMPTY

    def _skip(self) -> Skip | None:
        start = self._at
        if not self.take_all("AFTER", "MATCH"):
            return None
        hint = "write AFTER MATCH SKIP PAST LAST ROW, TO NEXT ROW, TO FIRST A, TO LAST A or TO A"
        if not self.take("SKIP"):
            raise self.unexpected("SKIP after AFTER MATCH", hint)
        to, variable = SkipTo.LAST, None
        if self.take_all("PAST", "LAST", "ROW"):
            to = SkipTo.PAST_LAST_ROW
        elif self.take_all("TO", "NEXT", "ROW"):
            to = SkipTo.NEXT_ROW
        elif self.take("TO"):
            if self.here.word in ("FIRST", "LAST") and not self.sees("PATTERN", "(", ahead=1):
                to = SkipTo.FIRST if self.next().word == "FIRST" else SkipTo.LAST
            variable = self.name("a variable to skip to", hint)
        elif self.take("PAST"):
            raise self.unexpected("LAST ROW after SKIP PAST", hint)
        else:
            raise self.unexpected("PAST or TO after SKIP", hint)
        return Skip(to, variable, self._span(start, self._at))

    def _hint_here(self) -> str:
        """Return what to write in place of the next word, which may be another system's."""
        return _OTHERS.get(self.here.text.upper(), _ORDER_OF_CLAUSES)

    def _pattern(self) -> Part:
        if not self.sees("PATTERN", "("):
            raise self.unexpected("PATTERN (…)", self._hint_here())
        begin = self._at + 1
        end = partner(self._tokens, begin, self._source)
        self._at = end + 1
        inner = self._tokens[begin + 1 : end]
        return parse_pattern(inner, self._source, self._tokens[end].start)

    def _within(self) -> Text | None:
        if not self.take("WITHIN"):
            return None
        start = self._at
        while not self.at_end and not self._at_head():
            self.next()
        if start == self._at:
            raise self.unexpected("an interval after WITHIN", "write WITHIN INTERVAL '5' MINUTE")
        return self._text(start, self._at)

    def _subset(self) -> Subset:
        start = self._at
        hint = "write SUBSET U = (A, B)"
        name = self.name("a name in SUBSET", hint)
        for symbol in "=(":
            if not self.take(symbol):
                raise self.unexpected(f"{symbol} in SUBSET", hint)
        members = self._list(lambda: self.name("a variable in SUBSET", hint))
        if not self.take(")"):
            raise self.unexpected(") in SUBSET", hint)
        return Subset(name, members, self._span(start, self._at))

    def _definition(self) -> Definition:
        start = self._at
        hint = "write DEFINE A AS condition"
        variable = self.name("a variable in DEFINE", hint)
        if not self.take("AS"):
            raise self.unexpected("AS in DEFINE", hint)
        begin, stop = self._at, self._item_end()
        if begin == stop:
            raise self.unexpected(f"a condition of {variable}", hint)
        self._at = stop
        return Definition(variable, self._text(begin, stop), self._span(start, stop))

    # --- lists and tokens

    def _item_end(self, is_column: bool = False) -> int:
        """Return the end of a list item: before a comma or the next clause."""
        depth, at = 0, self._at
        while (token := self._tokens[at]).kind is not TokenKind.END:
            if token.word in ("(", "["):
                depth += 1
            elif token.word in (")", "]"):
                depth -= 1
            elif not depth and (token.word == "," or self._at_head(at, is_column)):
                break
            at += 1
        if at == self._at:
            raise self.unexpected(f"more after {self._head_before(at)}", _ORDER_OF_CLAUSES)
        return at

    def _at_head(self, at: int | None = None, in_column: bool = False) -> bool:
        """Whether a clause begins at a position, which may be inside an item that is a column."""
        position = self._at if at is None else at
        if position and self._tokens[position - 1].word == ".":
            return False
        if is_at(self._tokens, position, "WITHIN", "GROUP"):
            return False
        for head in _HEADS:
            if is_at(self._tokens, position, *head):
                # One word only ends an item if it cannot be a column name there.
                following = self._tokens[position + 1].kind
                if len(head) > 1 or following is TokenKind.END:
                    return len(head) > 1
                return position > self._at if in_column else following is not TokenKind.SIGN
        return False

    def _head_before(self, at: int) -> str:
        """Return the keywords of the clause at a position."""
        for position in range(at - 1, -1, -1):
            for head in _HEADS:
                if is_at(self._tokens, position, *head):
                    return " ".join(word for word in head if word != "(")
        return "MATCH_RECOGNIZE ("

    def _name_at(self, start: int, stop: int) -> Text | None:
        """Return tokens as a column's name; None if they are not one."""
        names = [as_name(token) for token in self._tokens[start:stop:2]]
        dots = self._tokens[start + 1 : stop : 2]
        is_name = all(name.kind is TokenKind.NAME for name in names) and len(names) == len(dots) + 1
        if not is_name or not all(dot.word == "." for dot in dots):
            return None
        table = names[-2].text if dots else None
        return Text(names[-1].text, self._span(start, stop), table)

    def _text(self, start: int, stop: int) -> Text:
        """Return tokens as written; names in double quotes, beside a dot, in backquotes."""
        span = self._span(start, stop)
        text = self._source.text[slice(*span)]
        for at in range(start, stop):
            token = as_name(self._tokens[at])
            beside = self._tokens[max(at - 1, start)], self._tokens[min(at + 1, stop - 1)]
            if token is not self._tokens[at] and any(other.word == "." for other in beside):
                begin, end = token.start - span[0], token.end - span[0]
                text = f"{text[:begin]}`{token.text}`{text[end:]}"
        return Text(text, span)

    def _span(self, start: int, stop: int) -> tuple[int, int]:
        return self._tokens[start].start, self._tokens[max(start, stop - 1)].end

    def _spanned(self, message: str, hint: str, start: int, stop: int) -> CepError:
        return self._source.error(message, hint, *self._span(start, stop))
