# SPDX-License-Identifier: Apache-2.0
"""Keys matched on several cores: the answers, errors and signals of one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pyflinkcep import AfterMatchSkipStrategy, Pattern, match, matchRecognize, matchSase
from pyflinkcep.errors import (
    CepError,
    ConditionError,
    InvalidArgumentError,
    NotSupportedError,
    StateLimitError,
)
from pyflinkcep.kernel.module import compiled_module
from pyflinkcep.matching import threads
from pyflinkcep.tables import column_match, placing
from pyflinkcep.tables.column_match import ColumnMatch
from tests.kernel_harness import needs_kernel


@pytest.fixture(autouse=True)
def small_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut tables of a few hundred events, and deal them to more threads than there are keys."""
    for module in (threads, column_match):
        monkeypatch.setattr(module, "LEAST_SHARE", 8)
    monkeypatch.setattr(placing, "_LEAST_PART", 8)
    monkeypatch.setattr(placing, "_AT_ONCE", 50)


def events(seed: int, size: int, keys: int) -> pa.Table:
    """Return random events, more of some keys than of others, out of order."""
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "key": (random.integers(0, keys, size) * random.integers(0, 2, size)),
            "at": random.integers(0, 300, size) * 10,
            "kind": random.choice(list("abc"), size),
            "n": pa.array(random.integers(0, 9, size), mask=random.random(size) < 0.1),
            "x": random.random(size),
        }
    )


A = Pattern.begin("a").where("kind = 'a'")
WITHIN = timedelta(milliseconds=400)
PATTERNS = {
    "strict": A.next("b").where("kind = 'b'"),
    "timeouts": A.followedBy("b").where("n = 1").within(WITHIN),
    "loop": A.followedBy("b").where("kind = 'b'").oneOrMore().followedBy("c").where("n > 4"),
    "over stages": A.followedBy("b").where("n > avg(a.n) and x > min(b.x)").oneOrMore(),
    "texts over stages": A.followedBy("b").where("kind > last(a.kind)"),
    "functions": A.followedBy("b").where(lambda event: event.x > 0.5),
    "rounded": A.followedBy("b").where("round(avg(a.x), 1) < x"),
    "skipping": Pattern.begin("a", AfterMatchSkipStrategy.skipPastLastEvent())
    .where("n < 5").oneOrMore().followedBy("b").where("n >= 5"),
    "absence": A.notFollowedBy("b").where("kind = 'b'").within(WITHIN),
}  # fmt: skip


@pytest.mark.parametrize("keys", [1, 2, 7, 100])
@pytest.mark.parametrize("name", PATTERNS)
def test_matches_are_those_of_one_thread(name: str, keys: int) -> None:
    """Whatever the pattern, and however few keys there are."""
    pattern = PATTERNS[name].within(WITHIN)
    table = events(keys, 400, keys)
    one = match(pattern, table, timestamp="at", key="key", threads=1)
    for count in (2, 5):
        found = match(pattern, table, timestamp="at", key="key", threads=count)
        assert found == one
        assert found.timeouts == one.timeouts


def test_dropped_partial_matches_are_counted_over_all_keys() -> None:
    """The number is the sum of what the threads dropped."""
    pattern = Pattern.begin("a").followedBy("b").where("n > 7")

    def dropped(count: int) -> int:
        found = match(
            pattern, events(3, 300, 20), "at", "key",
            maxPartialMatches=2, onTooManyPartialMatches="dropOldest", threads=count,
        )  # fmt: skip
        return found.numPartialMatchesDropped

    assert dropped(4) == dropped(1) > 0


def test_the_error_is_that_of_the_first_key() -> None:
    """As if the keys were matched one after the other."""
    table = pa.table({"key": np.repeat(np.arange(40), 10), "n": np.tile(np.arange(10), 40)})
    pattern = Pattern.begin("a").followedBy("b").where("10 / (n - 5 * count(a)) > 100")
    for count in (1, 4):
        with pytest.raises(ConditionError) as raised:
            match(pattern, table, key="key", threads=count)
        assert raised.value.key == "0"
    with pytest.raises(StateLimitError) as limited:
        match(pattern.where("n < 0"), table, key="key", maxPartialMatches=3, threads=4)
    assert limited.value.key == "0"


def test_clauses_with_flinks_meaning_use_them_too() -> None:
    """A clause has the same rows, in the same order."""
    clause = (
        "PARTITION BY key ORDER BY at MEASURES A.x AS x, LAST(B.n) AS n ONE ROW PER MATCH "
        "AFTER MATCH SKIP PAST LAST ROW PATTERN (A B+ C) DEFINE A AS A.n < 5, B AS B.n < 8"
    )
    times = pa.array(np.arange(400) * 1000, pa.timestamp("us"))
    table = events(5, 400, 30).set_column(1, "at", times)
    found = [matchRecognize(table, clause, threads=count).toArrow() for count in (1, 4)]
    assert found[0].num_rows > 10
    assert found[0].equals(found[1])


_CLAUSES = [
    "{rows} {skip} PATTERN (A B* C?) DEFINE A AS kind = 'a', B AS x > PREV(x), C AS n > 4",
    "{rows} {skip} PATTERN (A+? B | C* B) DEFINE A AS n < AVG(A.n) + 2, B AS x > 0.3, C AS n > 2",
    "{rows} {skip} PATTERN (A B*) DEFINE A AS n >= 0, B AS x > A.x AND word > 'm'",
    "{rows} {skip} PATTERN (A*) DEFINE A AS x > 0.7",
    "{rows} {skip} PATTERN ({{- A -}} B C+) DEFINE B AS SUM(C.n) IS NULL, C AS COUNT(C.n) < 4",
    "{rows} {skip} PATTERN (A B) DEFINE A AS n > 0, B AS 1 / (n - 5) > 100",
]


_SKIPS = ["PAST LAST ROW", "TO NEXT ROW", "TO LAST B", "TO FIRST B"]
_SHOWN = [
    "ONE ROW PER MATCH",
    "ALL ROWS PER MATCH",
    "ALL ROWS PER MATCH OMIT EMPTY MATCHES",
    "ALL ROWS PER MATCH WITH UNMATCHED ROWS",
]


@pytest.mark.parametrize("text", _CLAUSES)
@pytest.mark.parametrize("skip", _SKIPS)
@pytest.mark.parametrize("keys", [1, 40])
def test_clauses_with_the_standards_meaning_have_the_rows_of_one_thread(
    text: str, skip: str, keys: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Rows and errors, whatever is shown, on a file too; those of the plain path of one of these."""
    table = events(len(text), 240, keys)
    table = table.append_column("word", table.column("kind"))
    path = tmp_path / "events.parquet"
    pq.write_table(table, path)

    def answer(given: Any, rows: str, count: int) -> Any:
        own = text.format(rows=rows, skip=f"AFTER MATCH SKIP {skip}")
        clause = (
            f"PARTITION BY key ORDER BY at, x MEASURES LAST(x) AS y, COUNT(*) AS c, "
            f"MATCH_NUMBER() AS m {own}"
        )
        try:
            return matchRecognize(given, clause, "standard", threads=count).toArrow().to_pylist()
        except CepError as error:
            return type(error), f"{error}", error.__dict__.get("key")

    found = {rows: answer(table, rows, 1) for rows in _SHOWN}
    for rows, one in found.items():
        assert answer(table, rows, 2) == answer(path, rows, 3) == one
    monkeypatch.setenv("PYFLINKCEP_KERNEL", "0")
    rows = _SHOWN[(_CLAUSES.index(text) + _SKIPS.index(skip)) % len(_SHOWN)]
    assert answer(table, rows, 2) == found[rows]


QUERIES = [
    "SEQ(a x, b y, c z) WHERE skip_till_any_match AND [key] WITHIN 300 milliseconds",
    "SEQ(a x, b y) WHERE skip_till_next_match AND [word] AND y.n > x.n WITHIN 300 milliseconds",
    "SEQ(a x, b+ y[], c z) WHERE skip_till_any_match AND [key] AND y[i].x > avg(y[..i-1].x) "
    "WITHIN 90 milliseconds",
    "SEQ(a x, !(b y), c z) WHERE skip_till_any_match AND [key, word] WITHIN 300 milliseconds",
    "SEQ(a x, b y) WHERE partition_contiguity AND [word] WITHIN 300 milliseconds",
    "SEQ(a x, (b y | c z), b w) WHERE skip_till_any_match AND [key] WITHIN 200 milliseconds",
    "SEQ(a x, (b y & c z)) WHERE skip_till_next_match AND [key] WITHIN 200 milliseconds",
    "a x ; b y WHERE [key] AND x.n < y.n WITHIN 200 milliseconds",
    "SEQ(a x, b y) WHERE skip_till_any_match AND [key] AND y.word >= x.word WITHIN 90 milliseconds",
    "SEQ(a x, b y) WHERE skip_till_any_match AND [key] WITHIN 90 milliseconds HAVING x.n > 3 "
    "RETURN x.n, y.x AS later",
]


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize(
    ("evaluation", "output"),
    [("auto", "all"), ("nfa", "all"), ("eventLists", "all"), ("backtracking", "onePerStart"),
     ("auto", "nonOverlapping")],
)  # fmt: skip
def test_queries_have_the_matches_of_one_thread(
    query: str, evaluation: Any, output: Any, tmp_path: Path
) -> None:
    """On a file too, and in the order of a list of the same events if that is one."""
    table = events(len(query), 400, 13)
    words = pa.array([None, "no", "", "yes"]).take(pc.bit_wise_and(table.column("key"), 3))
    table = table.append_column("word", words)
    path = tmp_path / "events.parquet"
    pq.write_table(table, path)

    def answer(given: Any, **more: Any) -> Any:
        try:
            how: Any = {"evaluation": evaluation, "output": output, **more}
            return list(matchSase(f"PATTERN {query}", given, "at", "kind", **how))
        except (InvalidArgumentError, NotSupportedError) as error:
            return str(error)

    one = answer(table, threads=1)
    assert one
    for count in (2, 3):
        assert answer(table, threads=count) == one
    assert answer(path, threads=2) == one
    if (evaluation, output) == ("auto", "all"):
        assert answer(table.to_pylist()) == one


def test_too_many_partial_matches_of_a_query_are_those_of_the_first_partition() -> None:
    """As if partitions were matched one after the other."""
    query = "PATTERN SEQ(a x, b+ y[], c z) WHERE skip_till_any_match AND [key] WITHIN 2 seconds"
    told = []
    for count in (1, 3):
        with pytest.raises(StateLimitError) as raised:
            matchSase(query, events(3, 300, 20), "at", "kind", maxPartialMatches=2, threads=count)
        told.append(str(raised.value))
    assert told[0] == told[1]


@needs_kernel
@pytest.mark.parametrize("name", PATTERNS)
def test_what_needs_python_is_matched_by_the_thread_that_hears_signals(name: str) -> None:
    """Texts over stages and functions keep Python's lock: another thread could not be stopped."""
    job = ColumnMatch.analysed(PATTERNS[name], events(1, 400, 20), "at", "key").in_order(4)
    assert (len(job.shares(None, 4)) == 1) == (name in ("texts over stages", "functions"))


@pytest.mark.parametrize("count", [0, -1, 1.5, True, "2"])
def test_wrong_numbers_of_threads_are_refused(count: Any) -> None:
    """It is a whole number from 1."""
    with pytest.raises(InvalidArgumentError, match="threads="):
        match(A, [], threads=count)


@pytest.mark.slow
@needs_kernel
def test_python_runs_while_the_kernel_matches() -> None:
    """A long run without conditions in Python gives its lock up."""
    table = pa.table({"n": np.zeros(17, np.int64)})
    pattern = Pattern.begin("a").oneOrMore().allowCombinations().followedBy("b").where("n > 0")
    counted, done = 0, threading.Event()

    def count() -> None:
        nonlocal counted
        while not done.is_set():
            counted += 1
            time.sleep(0.001)

    other = threading.Thread(target=count)
    other.start()
    match(pattern, table[:2])
    before = counted
    match(pattern, table)
    during = counted - before
    done.set()
    other.join()
    assert during > 5


INTERRUPTED = """
import os, signal, threading, time
import numpy as np, pyarrow as pa
from pyflinkcep import Pattern, match
from pyflinkcep.matching import threads
threads.LEAST_SHARE = 8
pattern = Pattern.begin("a").oneOrMore().allowCombinations().followedBy("b").where("n > 0")
table = pa.table({"key": np.repeat(np.arange(4), 40), "n": np.zeros(160, np.int64)})
threading.Timer(0.7, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    match(pattern, table, key="key", threads=3)
except KeyboardInterrupt:
    time.sleep(0.5)  # for the others to hear of it
    print("interrupted with", threading.active_count(), "thread")
"""


@needs_kernel
@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT to send")
def test_ctrl_c_ends_all_threads() -> None:
    """The main thread hears the signal, and the others stop."""
    assert signal.getsignal(signal.SIGINT) is not None
    run = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=60
    )
    assert run.stdout == "interrupted with 1 thread\n", run.stderr


LENT = """
import signal, threading
import pyarrow as pa
from pyflinkcep import Pattern, match
from pyflinkcep.matching import threads

begun, ended = threading.Event(), threading.Event()
pattern = Pattern.begin("a").oneOrMore().allowCombinations().followedBy("b")
pattern = pattern.where("kind > last(a.kind)")  # a text over stages, which needs Python's lock
table = pa.table({"kind": ["a"] * 24})

class Part:
    def __call__(self):
        if threading.current_thread() is threading.main_thread():
            begun.wait()
        else:
            begun.set()
            match(pattern, table)
            ended.set()

signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, 0.5)
try:
    threads.results([Part(), Part()], 2)
except KeyboardInterrupt:
    print("heard late" if ended.is_set() else "heard while it ran")
"""


@needs_kernel
@pytest.mark.skipif(os.name == "nt", reason="Windows has no such timer")
def test_threads_that_need_the_lock_lend_it_to_the_main_one() -> None:
    """Conditions on decimals or lists need it in queries and clauses: Ctrl-C is heard anyway."""
    run = subprocess.run([sys.executable, "-c", LENT], capture_output=True, text=True, timeout=60)
    assert run.stdout == "heard while it ran\n", run.stderr


RAISED = """
import signal, time
import numpy as np, pyarrow as pa
from pyflinkcep import matchSase

size = 100_000
table = pa.table({
    "at": np.arange(size), "kind": ["a", "b"] * (size // 2),
    "n": pa.array(np.arange(size) % 1000, pa.int32()).cast(pa.decimal128(12, 2)),
})
query = "PATTERN SEQ(a x, b y) WHERE skip_till_any_match AND y.n > x.n / 3 + 1000000"
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, 1)
start = time.monotonic()
try:
    matchSase(query, table, "at", "kind", evaluation="nfa", threads=1)
except KeyboardInterrupt:
    print("heard" if time.monotonic() - start < 20 else "heard late")  # without end, in effect
"""


@needs_kernel
@pytest.mark.skipif(os.name == "nt", reason="Windows has no such timer")
def test_ctrl_c_in_a_function_of_decimals_ends_a_query() -> None:
    """A condition that raises is not only false: the run ends soon."""
    run = subprocess.run([sys.executable, "-c", RAISED], capture_output=True, text=True, timeout=60)
    assert run.stdout == "heard\n", run.stderr


class _Part:
    def __init__(self, fails: BaseException | None = None, waits: bool = False) -> None:
        self.fails, self.waits, self.stopped = fails, waits, False

    def __call__(self) -> int:
        for _ in range(1000 if self.waits else 0):
            try:
                threads.heed()
            except InterruptedError:
                self.stopped = True
                raise
            time.sleep(0.01)
        if self.fails is not None:
            raise self.fails
        return 1


def test_an_error_stops_later_parts_but_not_earlier_ones() -> None:
    """Since an earlier one may have an error that goes first."""
    parts = [_Part(), _Part(ValueError("second")), _Part(waits=True), _Part(waits=True)]
    with pytest.raises(ValueError, match="second"):
        threads.results(parts, 3)
    assert [part.stopped for part in parts] == [False, False, parts[2].stopped, False]
    assert threads.results([_Part(), _Part(), _Part()], 2) == [1, 1, 1]


@needs_kernel
@pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python always has its lock"
)
def test_the_kernel_does_not_bring_the_lock_back() -> None:
    """A Python without its lock has none once the kernel is loaded."""
    assert compiled_module() is not None
    assert not sys._is_gil_enabled()  # type: ignore[attr-defined]  # from 3.13
