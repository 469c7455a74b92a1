# SPDX-License-Identifier: Apache-2.0
"""The pages that rules on a stream share: what they take, and rules that come and go."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pytest

from pyflinkcep import Eql, Pattern, Time, matchEql, parse
from pyflinkcep.errors import ConditionError, PatternChangedError, StateFormatError
from pyflinkcep.matching.columns import Ints
from pyflinkcep.matching.matcher import Items
from pyflinkcep.matching.query_pages import QueryPages
from pyflinkcep.rules import Rule, SigmaCorrelation, running_correlation
from pyflinkcep.rules.rule_states import RuleStates
from pyflinkcep.spark.state.pages import Page
from pyflinkcep.spark.worker.bucket import BucketWork
from tests.unit.spark.worker.buckets import SpyStorage
from tests.unit.spark.worker.rule_buckets import RuleBucket

SCHEMA = pa.schema([("t", pa.int64()), ("name", pa.string()), ("k", pa.string())])
PAIR = Eql("sequence by k with maxspan=1m [a where true] [b where true]")
FAR = Pattern.begin("a").where("name = 'a'").followedBy("b").where("name = 'b'")


def _event(t: int, name: str, k: str = "p") -> dict[str, Any]:
    return {"t": t, "name": name, "k": k}


def _page(bucket: RuleBucket) -> Page:
    """Return all of its state."""
    state = BucketWork(bucket.task(), bucket.storage).state
    return Page.concat([state.read_page(page) for page in state.index.pages])


def _size(page: Page) -> float:
    """Return the bytes of a key beside its events."""
    empty = page.keep(np.zeros(len(page), bool))
    events = len(attrs.evolve(empty, events=page.events).to_bytes()) - len(empty.to_bytes())
    return (len(page.to_bytes()) - events) / len(page)


def test_events_are_stored_once_and_states_are_small() -> None:
    """A key of one rule of EQL takes 64 bytes and its event, which all rules of the key share."""
    alone = RuleBucket([Rule("r0", PAIR)], SCHEMA)
    many = RuleBucket([Rule(f"r{number}", PAIR) for number in range(20)], SCHEMA)
    keys = 3000
    for bucket in (alone, many):
        bucket.batch([_event(at, "a", f"user {at}") for at in range(keys)])
    one, all_of = _page(alone), _page(many)

    assert len(one) == len(all_of) == keys
    assert one.events.num_rows == all_of.events.num_rows == keys
    assert _size(one) <= 64 + 1  # of what a page has once
    assert _size(all_of) <= 32 + 20 * 32 + 1


@pytest.mark.parametrize(
    "query",
    ["sequence by at [a where true] [b where true]",
     "sequence [a where true] by at [b where true] by noon"],
)  # fmt: skip
def test_times_are_keys_whatever_clock_shows_them(query: str) -> None:
    """In another time zone than UTC, and if a stream goes on in yet another, keys are the same."""
    moment = datetime(2026, 3, 29, 1, tzinfo=UTC)
    events = [
        {"t": 1000 + n, "name": name, "at": moment, "noon": moment.replace(tzinfo=None)}
        for n, name in enumerate("abab")
    ]
    found, storage = list[dict[str, Any]](), SpyStorage()
    for zone, own in (("Europe/Berlin", events[:3]), ("America/New_York", events[3:])):
        at, noon = pa.field("at", pa.timestamp("us", zone)), pa.field("noon", pa.timestamp("us"))
        schema = pa.schema([*list(SCHEMA)[:2], at, noon])
        bucket = RuleBucket([Rule("r", Eql(query))], schema, storage=storage, found=found)
        bucket.batch(own)
    bucket.close()

    assert [dict(one["events"])["2"][0]["t"] for one in found] == [1001, 1003]


def test_groups_of_a_chain_are_not_those_of_others() -> None:
    """A group of True of one correlation of a chain is not the group of 1 of another."""
    rising = {"type": "temporal", "rules": ["up"], "group-by": ["is"], "timespan": "1s"}
    counted = {"type": "event_count", "rules": ["low", "rising"], "group-by": ["x"]}
    rule = SigmaCorrelation(
        {**counted, "timespan": "1m", "condition": {"eq": 2}},
        {"up": "is", "low": "x = 1", "rising": rising},
    )
    schema = pa.schema(
        [("t", pa.int64()), ("name", pa.string()), ("is", pa.bool_()), ("x", pa.int64())]
    )
    bucket = RuleBucket([Rule("r", rule)], schema)
    given = [(1000, True, 2), (2000, False, 1), (3000, False, 1)]
    events = [{"t": t, "name": "a", "is": is_up, "x": x} for t, is_up, x in given]
    bucket.batch(events[:2])
    bucket.batch(events[2:])
    bucket.close()

    found = [[event["t"] for _, own in match["events"] for event in own] for match in bucket.found]
    assert found == [[2000, 3000]]


def test_sql_over_stages_that_fails() -> None:
    """A stream of fixed rules ends with what failed, and of which rule."""
    pattern = FAR.where("cast(last(a.name) AS int) = 1")
    bucket = RuleBucket([Rule("cast", pattern, ("k",))], SCHEMA)
    with pytest.raises(ConditionError, match="SQL over stages failed on an event") as told:
        bucket.batch([_event(1, "a"), _event(2, "b")])
    assert "in rule 'cast'" in told.value.__notes__


def test_rules_that_come_and_go() -> None:
    """A rule that stays goes on, the state of one that is gone is dropped, a new one begins."""
    rules = [Rule("stays", PAIR), Rule("goes", PAIR), Rule("far", FAR, ("k",))]
    before = RuleBucket(rules, SCHEMA, is_dynamic=True)
    before.batch([_event(1, "a"), _event(2, "a", "q")])
    assert len(_states(before)) == 6

    changed = [Rule("new", PAIR), Rule("far", FAR, ("k",)), Rule("stays", PAIR)]
    after = RuleBucket(changed, SCHEMA, is_dynamic=True, storage=before.storage)
    after.batch([_event(3, "b"), _event(4, "a")])
    assert sorted(row["rule"] for row in after.found) == ["far", "stays"]
    assert len(_states(after)) == 6
    after.batch([_event(5, "b")])
    found = sorted(row["rule"] for row in after.found)
    assert found == ["far", "far", "new", "stays", "stays"]


def test_columns_that_are_nested_or_always_null() -> None:
    """Null structs of what is NOT NULL, and columns that are always null, are kept and shown."""
    inner = pa.struct([pa.field("y", pa.int32(), nullable=False), ("nothing", pa.null())])
    own = {"void": None, "s": None, "l": [None, {"y": 1, "nothing": None}], "m": [("p", None)]}
    schema = pa.schema(
        [*SCHEMA, ("void", pa.null()), ("s", inner), ("l", pa.list_(inner)),
         ("m", pa.map_(pa.string(), inner))]
    )  # fmt: skip
    bucket = RuleBucket([Rule("r", PAIR), Rule("far", FAR, ("k",))], schema)
    for event in (_event(1, "a"), _event(2, "b")):
        bucket.batch([{**event, **own}])
    bucket.close()
    shown = [event for row in bucket.found for _, events in row["events"] for event in events]
    assert shown == [{**event, **own} for event in (_event(1, "a"), _event(2, "b"))] * 2


def test_keys_are_compared_as_each_rule_does() -> None:
    """Numbers that one rule compares with fractions, and another not; times by the millisecond."""
    at = datetime(2020, 1, 1, tzinfo=UTC)
    times = [at + timedelta(microseconds=micros) for micros in (7, 8, 1008)]
    schema = pa.schema(
        [*SCHEMA, ("n", pa.int64()), ("x", pa.float64()), ("at", pa.timestamp("us", "UTC"))]
    )
    whole = [
        {**_event(1, "a"), "n": 2**53 + 1, "x": 0.0, "at": times[0]},
        {**_event(2, "b"), "n": 2**53, "x": float(2**53), "at": times[1]},
        {**_event(3, "b"), "n": 2**53 + 1, "x": 0.5, "at": times[2]},
    ]
    queries = {
        "whole": Eql("sequence by n, k [a where true] [b where true]"),
        "fractions": Eql("sequence [a where true] by n, k [b where true] by x, k"),
        "times": Eql("sequence by at [a where true] [b where true]"),
        "two times": Eql("sequence [a where true] by at, n [any where true] by at, n"),
        "times of k": Eql("sequence by at, k [a where true] [b where true]"),
    }
    every = [Rule(name, query) for name, query in queries.items()]
    alone = Counter(
        (rule.name, str(match[-1]["t"]))
        for rule in every
        for match in matchEql(rule.definition, whole, timestamp="t", category="name")
    )
    assert alone == {("whole", "3"): 1, ("fractions", "2"): 1, ("times", "2"): 1,
                     ("times of k", "2"): 1}  # fmt: skip
    for rules in (every, every[::-1]):
        bucket = RuleBucket(rules, schema)
        bucket.batch(whole)
        bucket.close()
        assert alone == Counter((row["rule"], str(row["matchTimestamp"])) for row in bucket.found)


def test_as_many_keys_as_events() -> None:
    """An event of two keys, and one of none, are seen with their own, as many as there are."""
    schema = pa.schema([*SCHEMA, ("tags", pa.list_(pa.string()))])
    query = Eql("sequence by tags, k [a where true] [b where true]")
    given = [("a", ["q"]), ("a", ["p", "q"]), ("b", None), ("c", ["r"]), ("b", ["p"]), ("c", [])]
    events = [{**_event(10 * n, name), "tags": own} for n, (name, own) in enumerate(given)]
    alone = matchEql(query, events, timestamp="t", category="name")
    assert [[event["t"] for event in match] for match in alone] == [[10, 40]]
    for step in (3, 4, 6):
        bucket = RuleBucket([Rule("r", query), Rule("far", FAR, ("k",))], schema)  # both by k
        for at in range(0, len(events), step):
            bucket.batch(events[at : at + step])
        bucket.close()
        found = [row for row in bucket.found if row["rule"] == "r"]
        assert [(row["matchTimestamp"], row["key"]) for row in found] == [
            (40, [("tags", "p"), ("k", "p")])
        ]


@pytest.mark.parametrize("last", [2**63 - 2, 2**63 - 30_000])
@pytest.mark.parametrize(
    "steps",
    ["[b where true]", "![b where true]", "![c where true] [b where true]",
     "[b where true] ![c where true]"],
)  # fmt: skip
def test_windows_that_end_after_all_times(steps: str, last: int) -> None:
    """A window that would end after the last time there is is over when the stream is."""
    query = Eql(f"sequence with maxspan=1m [a where true] {steps}")
    for events in ([_event(last - 1, "a")], [_event(last - 1, "a"), _event(last, "b")]):
        bucket = RuleBucket([Rule("r", query)], SCHEMA)
        for event in events:
            bucket.batch([event])
        bucket.close()
        assert len(bucket.found) == len(matchEql(query, events, timestamp="t", category="name"))


def test_events_that_nobody_wants_and_late_ones() -> None:
    """Events that no rule wants are not sent, but move the watermark, and count if they are late."""
    bucket = RuleBucket([Rule("r", PAIR), Rule("far", FAR, ("k",))], SCHEMA, delay_ms=5)
    bucket.batch([_event(10, "a"), _event(20, "c"), _event(21, "c")])
    assert bucket.sent_count == 1
    bucket.batch([_event(16, "b"), _event(17, "b"), _event(15, "c"), _event(22, "b")])
    assert (bucket.sent_count, bucket.late_count) == (4, 2)
    bucket.close()
    assert [row["matchTimestamp"] for row in bucket.found] == [17, 17]


def test_time_alone() -> None:
    """What waits for missing events, or for the end of a window, comes by the watermark alone."""
    rules = [
        Rule("eql", Eql("sequence by k with maxspan=9ms [a where true] ![b where true]")),
        Rule("not", Pattern.begin("a").where("name = 'a'").notFollowedBy("b").where("name = 'b'")
             .within(Time.milliseconds(9)), ("k",)),
        Rule("single", Eql("a where true")),
    ]  # fmt: skip
    bucket = RuleBucket(rules, SCHEMA)
    bucket.batch([_event(1, "a"), _event(2, "a", "q"), _event(3, "b", "q")])
    assert [row["rule"] for row in bucket.found] == ["single", "single"]
    bucket.batch([_event(12, "z", "other")])
    assert [(row["rule"], dict(row["key"])) for row in bucket.found[2:]] == [
        ("not", {"k": "p"}),
        ("eql", {"k": "p"}),
    ]


def _states(bucket: RuleBucket) -> RuleStates:
    page = _page(bucket)
    return RuleStates.of(_items(len(page)), page, 0)


def _items(count: int) -> Items:
    nothing = np.zeros(count, np.int64)
    return Items(np.arange(count), nothing, nothing, lambda _: None)


def _counted(kind: str, condition: Any, *names: str) -> SigmaCorrelation:
    """Return a correlation of events by their names, in a second for each k."""
    document = {"type": kind, "rules": [*names], "group-by": ["k"], "timespan": "1s"}
    document |= {} if condition is None else {"condition": condition}
    return SigmaCorrelation(document, {name: f"name = '{name}'" for name in names})


def test_correlations_keep_what_can_still_count() -> None:
    """A group keeps fewer events than alert, and nothing when its timespan has passed."""
    rules = [
        Rule("count", _counted("event_count", {"gte": 4}, "a")),
        Rule("calendar", _counted("event_count", {"lt": 3}, "b")),
        Rule("both", _counted("temporal", None, "a", "b")),
        Rule("not", _counted("temporal", "b and not a", "a", "b")),
    ]
    bucket = RuleBucket(rules, SCHEMA)
    bucket.batch([_event(at, "a") for at in range(990)])
    assert _states(bucket).counts.tolist() == [2, 1, 0]  # of the last rule a time
    bucket.batch([_event(1000, "b"), _event(1001, "b", "q")])
    assert Counter(row["rule"] for row in bucket.found) == {"count": 247, "both": 1}
    bucket.batch([_event(2100, "z"), _event(2100, "a", "z")])
    later = Counter((row["rule"], row["matchTimestamp"]) for row in bucket.found[248:])
    assert later == {(rule, at): 1 for rule in ("calendar", "not") for at in (1000, 1001)}
    assert _states(bucket).counts.tolist() == [1, 1, 0]


def test_queries_keep_their_window() -> None:
    """A key keeps the events of the last window, whichever are in matches, and then nothing."""
    query = parse("PATTERN SEQ(a x, b y) WITHIN 100 milliseconds")
    bucket = RuleBucket([Rule("pair", query, ("k",))], SCHEMA)
    bucket.batch([_event(at, "a") for at in range(0, 1000, 10)])
    assert _states(bucket).counts.tolist() == [10]
    bucket.batch([_event(1000, "b")])
    assert len(bucket.found) == 10
    bucket.batch([_event(1200, "a", "q")])
    assert _states(bucket).counts.tolist() == [1]


def test_states_of_other_releases_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a correlation or a query stores for a key has a version of its own."""
    count = _counted("event_count", {"gte": 4}, "a")
    rules = [Rule("count", count), Rule("pair", parse("PATTERN SEQ(a x, b y)"), ("k",))]
    buckets = [RuleBucket([rule], SCHEMA) for rule in rules]
    with monkeypatch.context() as later:
        later.setattr(running_correlation, "_VERSION", 2)
        later.setattr(QueryPages, "version", 2)
        for bucket in buckets:
            bucket.batch([_event(1, "a")])
    for bucket, what in zip(buckets, ("a correlation", "a query"), strict=True):
        with pytest.raises(StateFormatError, match=f"of {what} in format 2, this release reads"):
            bucket.batch([_event(2, "a")])


def test_other_rules_are_refused() -> None:
    """A checkpoint goes on with its rules in any order, and refuses one more, or one changed."""
    rules = [Rule("r", PAIR), Rule("far", FAR, ("k",))]
    bucket = RuleBucket(rules, SCHEMA)
    bucket.batch([_event(1, "a")])
    RuleBucket(rules[::-1], SCHEMA, storage=bucket.storage).batch([_event(2, "b")])
    changes = [[*rules, Rule("new", PAIR)], [rules[0], Rule("far", FAR, ("k",), 2)]]
    for changed in [*changes, [rules[0], Rule("far", FAR.where("k = 'p'"), ("k",))]]:
        with pytest.raises(PatternChangedError, match=r"rules: '2 \(.*' is now '[23] \("):
            RuleBucket(changed, SCHEMA, storage=bucket.storage).batch([_event(3, "b")])


def _written(
    counts: list[int], lengths: list[int], far: int = 0, in_place: int = 2
) -> tuple[RuleStates, Page]:
    """Return states with so many references and numbers, some in each place, and their page."""
    size = len(counts)
    handles = [far + at % 7 for count in counts for at in range(count)]
    states = RuleStates(
        np.arange(size) // in_place,
        np.arange(size) + 2**62,
        -np.arange(size),
        np.asarray(lengths),
        np.asarray(counts),
        np.arange(sum(lengths), dtype=np.int64),
        np.asarray(handles, np.int64),
    )
    written = states.written(np.arange(size))
    places = len(written.items)
    keys = pa.table({"h": np.arange(places)})
    events = pa.table({"e": written.handles})
    columns = (written.deadlines, written.lengths, written.counts, written.numbers)
    return states, Page(keys, *columns, events)


@pytest.mark.parametrize("in_place", [1, 2, 40])
@pytest.mark.parametrize(
    ("counts", "lengths"),
    [
        ([1, 2, 3, 0], [1, 1, 0, 5]),
        ([4, 5, 0, 900], [1, 0, 2, 3]),
        ([70_000, 1, 2, 1], [1, 70_000, 2, 66_000]),
        ([1, 2, 70_000, 5, 0, 0] * 10, [1, 0, 2, 3, 70_000, 4] * 10),
    ],
)
def test_states_are_read_as_written(counts: list[int], lengths: list[int], in_place: int) -> None:
    """States with few or many numbers and references come back, with the events they mean."""
    states, page = _written(counts, lengths, 5, in_place)
    read = RuleStates.of(_items(len(page)), page, 0)

    assert page.deadlines.tolist() == [*range(0, len(counts), in_place)]
    events: Ints = page.events.column("e").to_numpy()
    for name in ("items", "codes", "keys", "lengths", "counts", "numbers"):
        assert getattr(read, name).tolist() == getattr(states, name).tolist(), name
    assert events[read.handles].tolist() == states.handles.tolist()


@pytest.mark.parametrize(
    ("at", "value", "what"),
    [
        (2, 2, "states of rules in format 2, this release reads format 1"),
        (2, 1 | 1 << 7 | 99 << 8, "an entry of a rule is longer than its place"),
        (2, 1 | 1 << 7 | 4 << 24, "too many references in the head of an entry"),
        (2, 1 | 1 << 7 | 1 << 8 | 1 << 24 | 9 << 40, "a rule refers to an event that is not there"),
    ],
)
def test_damage_is_refused(at: int, value: int, what: str) -> None:
    """An entry of another version, or one that does not fit its place, is refused."""
    _, page = _written([1], [1])
    page.numbers[at] = value
    with pytest.raises(StateFormatError, match=what):
        RuleStates.of(_items(1), page, 0)
