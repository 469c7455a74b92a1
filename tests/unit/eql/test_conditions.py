# SPDX-License-Identifier: Apache-2.0
"""Conditions of EQL: two logics of null, case, wildcards, arrays, types, and their SQL."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from pyflinkcep import CepError, Eql, InputError, InvalidArgumentError, NotSupportedError, matchEql
from pyflinkcep.eql.conditions import Conditions
from pyflinkcep.expressions.tree import spark_sql
from pyflinkcep.tables.field_values import EventFields


def holds(condition: str, value: Any, **more: Any) -> bool:
    """Whether a condition holds for an event whose field x has a value; others have none."""
    events = [{"t": 0, "type": "x", "x": value, "s": "cmd.exe", "n": 5, **more}]
    others = {"t": 1, "type": "y", "x": None, "z": None}
    return bool(matchEql(f"x where {condition}", [*events, others]))


class TestNull:
    @pytest.mark.parametrize("test", [
        'x == "a"', 'x : "a"', 'x in ("a")', 'x regex "a"', 'startsWith(x, "a")',
    ])  # fmt: skip
    def test_of_a_field_against_constants(self, test: str) -> None:
        """Without a value such a test is false, and its negation true."""
        assert not holds(test, None)
        assert holds(f"not {test}", None)

    def test_of_an_order(self) -> None:
        """Without a value neither an order nor its negation is true."""
        assert not holds("x > 1", None)
        assert not holds("not (x > 1)", None)
        assert holds("not (x > 1)", 1)

    def test_of_what_is_computed(self) -> None:
        """What is computed of null is null, and so is its negation."""
        assert not holds('concat(x, "a") == "a"', None)
        assert not holds('not concat(x, "a") == "a"', None)
        assert holds('concat(x, "a") == null', None)

    def test_of_fields_that_may_be_missing(self) -> None:
        """A field with ? that the input does not have is null."""
        assert holds("?absent == null and ?absent != 5", 1)
        assert not holds("?absent < 5 or not (?absent < 5)", 1)


class TestArrays:
    def test_any_value(self) -> None:
        """A test is about any of the values, its negation about none."""
        assert holds('x == "b"', ["a", "b"])
        assert not holds('x != "b"', ["a", "b"])
        assert holds("not (x > 1)", [0, 5])

    @pytest.mark.parametrize("value", [[], [None], None])
    def test_missing(self, value: Any) -> None:
        """An array without values is missing."""
        assert holds("x == null and x != 4", value)

    def test_computed(self) -> None:
        """In what is computed an array stands for its smallest value."""
        assert holds("x + 1 == 3", [7, None, 2])
        assert holds('concat(x, "!") == "a!"', ["b", "a"])


class TestTexts:
    @pytest.mark.parametrize(("test", "fits"), [
        ('x : "CMD.*"', True), ('x like "CMD.*"', False), ('x like~ "CMD.*"', True),
        ('x like "*.e?e"', True), ('x like "*m*e"', True), ('x == "cmd*"', False),
        ('x like "cmd"', False), ('x like "*"', True), ('x like ("a", "*exe")', True),
        ('x regex "cmd[.][a-z]{3}"', True), ('x regex~ "CMD.+"', True), ('x regex "cmd"', False),
        ('x regex "^cmd.exe$"', False), ('x in~ ("CMD.EXE")', True),
    ])  # fmt: skip
    def test_wildcards_and_regular_expressions(self, test: str, fits: bool) -> None:
        """A pattern fits the whole text, in any case if the operator says so."""
        assert holds(test, "cmd.exe") is fits

    def test_backslash_is_plain(self) -> None:
        """A backslash escapes no wildcard, and a point is a point."""
        assert holds(r'x : """c:\*\a.b"""', "C:\\x\ny\\A.B")
        assert not holds(r'x : "a.b*"', "axb")

    def test_only_letters_from_a_to_z_are_folded(self) -> None:
        """Other letters are not folded."""
        assert not holds('x : "straße Ä"', "STRASSE ä")
        assert not holds('x : "K"', "\u212a")
        assert not holds('x regex~ "k"', "\u212a")

    @pytest.mark.parametrize("pattern", ["a~", "<1-5>", "a&b", "@", "#"])
    def test_operators_of_lucene(self, pattern: str) -> None:
        """Lucene's own operators are refused by name unless they are escaped."""
        with pytest.raises((NotSupportedError, InvalidArgumentError), match="operator of Lucene"):
            holds(f'x regex "{pattern}"', "a")
        assert holds('x regex """a\\~"""', "a~")


class TestFunctions:
    @pytest.mark.parametrize(("value", "expected"), [
        ('between(s, "c", ".")', '"md"'), ('between(s, "C", ".")', '""'),
        ('between~(s, "C", "E", true)', '"md.ex"'), ('between(s, "m", "x")', '"d.e"'),
        ("substring(s, -3)", '"exe"'), ("substring(s, 1, -4)", '"md"'), ("substring(s, 9)", '""'),
        ('indexOf(s, "e", 5)', "6"), ('indexOf(s, "e", -7)', "4"), ('indexOf(s, "")', "0"),
        ("length(s)", "7"), ("7 / 2", "3"), ("-7 / 2", "-3"), ("-7 % 2", "-1"), ("7 / 2.0", "3.5"),
        ("number(string(n)) + 1", "6"), ('number("0x1F")', "31"), ('number("-1f", 16)', "-31"),
        ('number(" 1.5 ")', "1.5"), ("string(n)", '"5"'), ("string(true)", '"true"'),
        ("string(0.5)", '"0.5"'), ('concat(s, ":", n, 1.5)', '"cmd.exe:51.5"'),
        ("string(startsWith~(s, \"CMD\"))", '"true"'), ("n - -1", "6"),
    ])  # fmt: skip
    def test_values(self, value: str, expected: str) -> None:
        """Functions give the values that the language has."""
        assert holds(f"{value} == {expected}", 1)

    @pytest.mark.parametrize("value", [
        "n / 0", "n % 0", 'indexOf(s, "z")', 'number("x")', 'number(s, 16)',
        "9223372036854775807 + n",
    ])  # fmt: skip
    def test_nothing(self, value: str) -> None:
        """What has no value is null."""
        assert holds(f"{value} == null", 1)

    @pytest.mark.parametrize(("address", "block", "is_in"), [
        ("10.9.1.2", "10.6.48.157/8", True), ("11.9.1.2", "10.0.0.0/8", False),
        ("172.31.0.1", "172.16.0.0/12", True), ("172.32.0.1", "172.16.0.0/12", False),
        ("fe80::1", "fe80::/10", True), ("fec0::1", "fe80::/10", False),
        ("FEbf:0::1.2.3.4", "fe80::/10", True), ("::1", "::1/128", True), ("::", "::1/128", False),
        ("1::2", "0::/0", True), ("1.2.3.4", "::/0", False), ("1.2.3.04", "0.0.0.0/0", False),
        ("cmd.exe", "0.0.0.0/0", False), ("::1", "0.0.0.0/0", False), ("1:2", "::/0", False),
    ])  # fmt: skip
    def test_blocks_of_addresses(self, address: str, block: str, is_in: bool) -> None:
        """An address is in a block; what is no address is in none."""
        assert holds(f'cidrMatch(x, "{block}")', address) is is_in

    def test_nothing_to_contain(self) -> None:
        """Nothing is contained in no text, and in null it is null."""
        assert holds('not stringContains(s, "")', 1)
        assert not holds('not stringContains(string(z), "")', 1, z=None)


class TestTypes:
    def test_a_text_is_no_number(self) -> None:
        """A text is never equal to a number."""
        assert not holds('x == "5"', 5)
        assert holds('x != "5"', 5)

    @pytest.mark.parametrize("test", [
        'x > "a"', "length(x) > 1", 'x : "5"', "x", "not x", "x and true", "n < true",
        'startsWith(s, x)', "s + 1 > 2",
    ])  # fmt: skip
    def test_wrong_types(self, test: str) -> None:
        """An operator of another type is refused with the place in the text."""
        with pytest.raises(CepError, match=r"line 1, column \d+: .*(number|text)") as caught:
            holds(test, 5)
        assert caught.value.hint

    def test_unknown_field(self) -> None:
        """A field that the input lacks is refused with the nearest name."""
        with pytest.raises(InputError, match="line 1, column 11: the input has no field exx") as e:
            matchEql("any where exx == 1", [{"t": 0, "type": "x", "ex": 1}])
        assert e.value.hint == "did you mean 'ex'?"

    def test_mixed_values(self) -> None:
        """A field with texts and numbers is refused where it is read."""
        events = [{"t": 0, "type": "x", "x": 1}, {"t": 1, "type": "x", "x": "a"}]
        assert len(matchEql("x where true", events)) == 2
        with pytest.raises(InputError, match="the field x is int and str"):
            matchEql("x where x == 1", events)


class TestEqualConditions:
    def sql(self, *texts: str) -> set[object]:
        fields = EventFields.of_rows([{"type": "x", "a": "u", "b": 1, "c": True}])
        conditions = Conditions(fields.fields, "type")
        return {conditions.of(Eql(text).model.steps[0].filter) for text in texts}

    def test_one_tree(self) -> None:
        """Conditions that say the same in other words are equal trees, wherever they stand."""
        found = self.sql(
            'any where a == "x" and b > 1',
            'any where   "x" == a and (not (b <= 1)) and true',
            'any where ?a == "x" and 1 < b and a == "x"',
        )
        assert len(found) == 1

    def test_sql(self) -> None:
        """A condition is SQL that is never an error, with the language's nulls."""
        (tree,) = self.sql('x where not a : ("A*", "b") and c == false')
        assert spark_sql(tree, lambda leaf: str(leaf.sql)) == (  # type: ignore[union-attr,arg-type]
            "(coalesce((`type` = 'x'), False) AND (NOT coalesce(((translate(`a`, "
            "'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz') = 'b') OR startswith("
            "translate(`a`, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz'), 'a')), "
            "False)) AND coalesce((`c` = False), False))"
        )


def test_a_tie_breaker_that_no_event_has() -> None:
    """Dicts may lack the tie-breaker, all of them too; a table has to have its column."""
    events = [{"t": 0, "type": "x", "n": 1}, {"t": 0, "type": "x", "n": 2}]
    assert matchEql("x where true", events, tiebreaker="rank") == [[events[0]], [events[1]]]
    with pytest.raises(InputError, match="the input has no field rank"):
        matchEql("x where true", {"t": [0], "type": ["x"]}, tiebreaker="rank")


@pytest.mark.parametrize(("argument", "column"), [
    ("category", "tpye"), ("tiebreaker", "tpye"), ("category", "inner"), ("tiebreaker", "inner"),
])  # fmt: skip
def test_arguments_that_name_no_field(argument: str, column: str) -> None:
    """An argument that names no field is told by its name, not by a place in the query."""
    table = pa.table({"t": [0], "type": ["x"], "inner": [b"x"]})
    with pytest.raises(InputError, match=f"^{argument}='{column}': the ") as caught:
        matchEql("x where true", table, **{argument: column})  # type: ignore[arg-type]
    assert "?tpye" not in (caught.value.hint or "")


def test_times_as_fields() -> None:
    """Datetimes without a zone are UTC's, beside others too; dates are refused, as in tables."""
    naive = datetime(1969, 12, 31, 23, 59, 59, 999_500)
    east = timezone(timedelta(hours=5, minutes=45))
    times = [naive, naive.replace(tzinfo=UTC).astimezone(east), [naive, datetime.now(UTC)]]
    events = [{"t": n, "type": "x", "x": time} for n, time in enumerate(times)]
    assert matchEql("any where x + 1 == 0", events) == [[event] for event in events]
    query = "sequence by x [any where true] [any where true]"
    assert matchEql(query, events) == [events[:2], events[1:]]
    for given in ([{"t": 0, "x": naive.date()}], pa.table({"t": [0], "x": [naive.date()]})):
        with pytest.raises(InputError, match="the field x is date"):
            matchEql("any where x > 0", given)


def test_times_of_events_far_ahead() -> None:
    """Events are ordered to the microsecond, and may be any milliseconds of 64 bits."""
    moment = datetime(1969, 12, 31, 23, 59, 59, 999_500, UTC)
    times = [2**63 - 1, moment + timedelta(microseconds=1), moment, -(2**63) + 1]
    events = [{"t": time, "type": "x"} for time in times]
    assert matchEql("any where true", events) == [[event] for event in reversed(events)]


def test_a_name_and_a_path() -> None:
    """A column of a name with points is read before the field of a struct of that path."""
    row = {"t": 0, "a": {"b": 2}, "a.b": 1, "type": "x"}
    for names in (["t", "a", "a.b"], ["t", "a.b", "a"]):
        table = pa.Table.from_pylist([row]).select(names)
        for given in (table, table.to_pylist()):
            assert len(matchEql("any where a.b == 1", given)) == 1


def test_no_events() -> None:
    """Without events there are no matches, though nobody knows their fields."""
    assert matchEql("any where x > 1", []) == matchEql("any where x > 1", {"t": [], "x": []}) == []


PLACES = [2**63 - 1, 2**31, 2**31 - 1, float("nan"), float("inf"), 1e300]


@pytest.mark.parametrize("place", PLACES)
def test_places_beyond_all_texts(place: float) -> None:
    """Any number is a place in a text, far beyond its ends too: no event stops a job."""
    assert holds('substring(s, x) == "" and indexOf(s, "c", x) == null', place)
    assert holds('substring(s, 0, x) == "cmd.exe"', place)
    if place == place:
        assert holds('substring(s, x) == s and indexOf(s, "c", x) == 0', -place)
        assert holds('substring(s, x, x) == ""', -place)


@pytest.mark.parametrize("pattern", ["[z-a]", r"[a-\d]", "a{99999999999}", "a{2,1}"])
def test_regular_expressions_that_no_engine_takes(pattern: str) -> None:
    """Ranges and repetitions that are none are refused in the query, not by what runs it."""
    with pytest.raises(InvalidArgumentError, match=r"line 1, column 11: .* expected a"):
        matchEql(f'any where x regex """{pattern}"""', [{"t": 0, "type": "x", "x": "a"}])


TEXTS = ["cmd.exe", "CMD.EXE", "a*b", "A\nb", "", "straße", "\u212a", *map(str, range(100))]
TESTS = [
    'x == "cmd.exe"', 'x in ("a*b", "7")', 'x in~ ("A*B")', 'x : ("cmd*", "*B", "*1*", "?")',
    'x like "*A?b"', 'x regex "[0-9]{2}|a.*"', 'x regex ".{0,2000}e"', 'x regex "[+--a-c-e*]+b"', 'x regex~ "K|CMD.+"', 'startsWith~(x, "CMD")',
    'not endsWith(x, "e")', 'stringContains(x, "1")', 'x != "7"', 'x < "5"', 'length(x) == 2',
]  # fmt: skip


@pytest.mark.parametrize("test", TESTS)
def test_many_values(test: str) -> None:
    """Tests are the same for many values at once, in columns or dicts, as for each alone."""
    events = [{"t": n, "type": "x", "x": text} for n, text in enumerate([*TEXTS, None])]
    table = {name: [event[name] for event in events] for name in ("t", "type", "x")}
    other = {"t": 1000, "type": "y", "x": "none"}
    alone = [found for event in events for found in matchEql(f"x where {test}", [event, other])]
    assert matchEql(f"x where {test}", events) == alone
    assert matchEql(f"x where {test}", table) == alone


@pytest.mark.parametrize("test", ["x == 3", "x >= 50", "x in (1, 2.0, null)", "x != 4", "x < 1.5"])
def test_many_numbers(test: str) -> None:
    """Tests of many whole numbers or fractions are the same as of each alone."""
    for numbers in (list(range(100)), [n / 2 for n in range(100)]):
        events = [{"t": n, "type": "x", "x": number} for n, number in enumerate(numbers)]
        alone = [[event] for event in events if matchEql(f"any where {test}", [event])]
        assert matchEql(f"any where {test}", events) == alone


ORDERS = ["x > 3", "x >= 7.5", "not x < 3", "x < 3", "not x > 3", "x + 1 > 4", "x == 1", "x != 1"]


@pytest.mark.parametrize("test", ORDERS)
def test_nan(test: str) -> None:
    """NaN is greater than other numbers, in dicts as in columns, among few values and many."""
    nans = [{"t": 900 + n, "type": "x", "x": float("nan")} for n in range(2)]
    expected = [[event] for event in nans] * (test not in ("x < 3", "not x > 3", "x == 1"))
    for size in (5, 100):
        events = [*({"t": n, "type": "x", "x": float(n)} for n in range(size)), *nans]
        for given in (events, pa.Table.from_pylist(events)):
            found = matchEql(f"any where {test}", given)
            assert str([match for match in found if match[0]["t"] >= 900]) == str(expected)


@pytest.mark.parametrize("keys", [("x", "y"), ("y", "x")])
def test_times_without_a_zone_as_keys(keys: tuple[str, str]) -> None:
    """A time without a zone is the same key as that of UTC, in dicts and in columns."""
    plain = datetime(2020, 1, 1)
    rows = [{"t": t, "type": type_, "x": plain, "y": plain.replace(tzinfo=UTC)}
            for t, type_ in enumerate("ab")]  # fmt: skip
    table = pa.Table.from_pylist(rows)
    tokyo = table.column("y").cast(pa.timestamp("us", "Asia/Tokyo"))
    query = f"sequence [a where true] by {keys[0]} [b where true] by {keys[1]}"

    for events in (rows, table, table.set_column(3, "y", tokyo)):
        assert len(matchEql(query, events)) == 1


def test_fractions_as_keys_and_tie_breakers() -> None:
    """As a key NaN is one value, and so are the zeros; NaN is the last tie-breaker but null."""
    values = [float("nan"), None, 0.0, 5.0, -0.0, float("nan"), 3.0, Decimal("sNaN"), 10**400]
    events = [{"t": n, "type": "x", "x": x} for n, x in enumerate(values)]
    query = "sequence by x [any where true] [any where true]"
    found = [[event["t"] for event in match] for match in matchEql(query, events)]
    assert found == [[2, 4], [0, 5], [5, 7]]
    table = pa.Table.from_pylist(events[:7])
    assert [[e["t"] for e in match] for match in matchEql(query, table)] == found[:2]
    other = "sequence [any where true] by x [any where true] by y"
    table = table.append_column("y", table.column("x"))
    assert [[e["t"] for e in match] for match in matchEql(other, table)] == found[:2]
    ties = [{**event, "t": 0, "n": event["t"]} for event in events if event["t"] in (0, 1, 3, 6)]
    for given in (ties, pa.Table.from_pylist(ties)):
        found = matchEql("any where true", given, tiebreaker="x")
        assert [event["n"] for [event] in found] == [6, 3, 0, 1]


def test_events_that_are_no_dicts() -> None:
    """Fields are those of dicts: other objects are refused."""
    with pytest.raises(InputError, match="expected events that are dicts, got Event"):
        matchEql("any where true", [Event()])


class Event:
    """An event with a time and a category."""

    t, type = 0, "x"
