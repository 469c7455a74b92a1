# SPDX-License-Identifier: Apache-2.0
"""What the monitor shows of what queries tell, without a session."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import sys
import threading
import warnings
from collections.abc import Callable
from html import escape, unescape
from pathlib import Path
from typing import Any
from uuid import UUID
from xml.etree import ElementTree

import attrs
import pytest
from pyspark.sql.streaming.listener import QueryProgressEvent

from pyflinkcep.errors import InputError, InvalidArgumentError, NotSupportedError
from pyflinkcep.monitor import Monitor, _Server
from pyflinkcep.show.live_page import (
    ALL_END,
    ALL_WAIT,
    DASHBOARD,
    HELD_BACK,
    IT_MATCHES,
    MATCHES_WAIT,
    NO_BEGINNING,
    NO_INPUT,
    OUT_OF_TIME,
    SIGNS,
    WITHOUT_KEY_OR_TIME,
    Line,
    Sign,
    body,
    chart,
    make_app,
    page,
    prometheus_text,
)
from pyflinkcep.show.query_history import History, Point, reason_of
from tests.unit.monitor.support import BAD, progress, told
from tests.unit.show.support import points, size, texts

ROOT = Path(__file__).parents[3]
FAILURE = f"""\
org.apache.spark.api.python.PythonException: thrown from the worker: Traceback (most recent call last):
  File "/job.py", line 19, in boom
    raise ValueError()
ValueError

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "worker.py", line 4327, in invoke_udf
    run_process()
    ^^^^^^^^^^^^^
pyflinkcep.errors.ConditionError: no number: {BAD} (pattern a → b, stage 'a')

Hint: make the condition return True or False
 SQLSTATE: 38000
\tat org.apache.spark.api.python.PythonRunner.handle(PythonRunner.scala:1097)
\t... 3 more
"""


def get(app: Any, path: str, host: str = "127.0.0.1") -> tuple[int, dict[str, str], str]:
    """Ask an application for a path; of a stream return the first part."""
    sent: list[Any] = []
    scope = {
        "type": "http", "method": "GET", "path": path, "raw_path": path.encode(),
        "query_string": b"", "root_path": "", "scheme": "http", "http_version": "1.1",
        "headers": [(b"host", host.encode())], "client": ("127.0.0.1", 1), "server": (host, 80),
    }  # fmt: skip

    async def receive() -> Any:
        await asyncio.sleep(3600)

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], headers, b"".join(m.get("body", b"") for m in sent[1:]).decode()


def test_history_adds_up_and_keeps_the_last() -> None:
    """Counters add up over all micro-batches, charts have the last, own observations are left."""
    history = told(20)

    (query,) = history.read()
    assert (query.batches, len(query.points), query.status) == (20, 15, "running")
    assert list(query.totals) == [f"CEP: a & {BAD}"]
    assert query.totals[f"CEP: a & {BAD}"]["numMatches"] == 80
    assert query.rows == sum(1_000 + 10 * number for number in range(20))
    history.ended("run-1", "E: no disk")
    assert [each.status for each in history.read()] == ["failed"]


def test_a_micro_batch_that_saw_no_state_keeps_what_was_left() -> None:
    """Without a watermark nothing is known of what is left, so it is what it was."""
    history = told(1)
    history.progressed(progress(1, watermark=None, numKeys=0, partialMatches={"fail": 0, BAD: 0}))

    (query,) = history.read()
    (point,) = query.last.values()
    assert point.gauges["numKeys"] == 10
    assert point.stages["fail"] == 10


def test_a_micro_batch_that_tells_nothing_of_a_pattern() -> None:
    """Then nothing happened: its counters are not shown again, and what was left still is."""
    history = told(1)
    history.progressed({**progress(1), "observedMetrics": {}})

    (query,) = history.read()
    (point,) = query.last.values()
    assert set(point.counters.values()) == {0}
    assert point.gauges["numKeys"] == 10
    assert point.stages["fail"] == 10
    assert query.totals[f"CEP: a & {BAD}"]["numMatches"] == 2


def test_queries_that_ended_long_ago_are_forgotten() -> None:
    """A session that starts queries all day keeps the last of those that ended."""
    history = History()
    for number in range(50):
        history.started(f"run-{number}", "q")
        history.ended(f"run-{number}")
    assert len(list(history.read())) == 21


def test_names_stay_text() -> None:
    """Whatever queries, patterns and stages are named, the page has one script: its own."""
    shown = page(told())

    assert shown.count("<script") == 1
    assert BAD not in shown
    assert "&lt;script&gt;" in shown
    for svg in re.findall(r"<svg.*?</svg>", shown, re.DOTALL):
        ElementTree.fromstring(svg)
    assert "No query" in body(History())


def ended_at(*times: float) -> list[Point]:
    """Return micro-batches that ended at some seconds."""
    return [Point(number, time, 0.1, 1, {}) for number, time in enumerate(times, 1_208)]


@pytest.mark.parametrize(
    ("times", "shown"),
    [
        ([5.0], ["1,208 · 00:00:05"]),
        ([5.0, 6.0], ["1,208 · 00:00:05", "1,209 · 00:00:06"]),
        ([0.0, 40.0, 50.0, 90.0], ["1,208 · 00:00:00", "1,209 · 00:00:40", "1,211 · 00:01:30"]),
        ([0.0, 1.0, 2.0, 90.0], ["1,208 · 00:00:00", "1,211 · 00:01:30"]),
    ],
)
def test_an_axis_has_micro_batches_and_the_clock(times: list[float], shown: list[str]) -> None:
    """The first and the last micro-batch have number and time, one between them if it has room."""
    svg = chart("title", ended_at(*times), [Line("a", [1.0] * len(times))])

    assert [text for text in texts(svg) if " · " in text] == shown
    assert "NaN" not in chart("title", ended_at(9.0, 9.0), [Line("a", [None, 1.0])])


def test_what_a_failure_says() -> None:
    """A query that failed shows when, after which micro-batch, and the error without its frames."""
    history = told(3)
    history.ended("run-1", FAILURE)
    shown = body(history)

    assert re.search(r"failed at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC · 3 micro-batches", shown)
    said = re.search(r'<p class="failed" role="alert">(.*?)</p>', shown, re.DOTALL)
    assert said is not None
    assert unescape(said[1]) == (
        f"Failed after micro-batch 2: pyflinkcep.errors.ConditionError: no number: {BAD} "
        "(pattern a → b, stage 'a')\n\nHint: make the condition return True or False\n SQLSTATE: 38000"
    )
    assert "in boom" in shown
    assert 'class="sign"' not in shown


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ("E: no disk", "E: no disk"),
        ("E: at work\n\tat a.B\nCaused by: F: full\n\tat c.D\n\t... 3 more", "F: full"),
        ("", ""),
        ("  all is a frame", "all is a frame"),
        ("E" * 9_999, "E" * 2_000 + "…"),
    ],
)
def test_the_reason_of_an_error(error: str, reason: str) -> None:
    """It is the last cause, not too long; what has no such form is shown as it is."""
    assert reason_of(error) == reason


def test_a_query_that_stopped() -> None:
    """Its last micro-batches stay, with when it ended; it has no reason, and nothing helps it."""
    history = told()
    history.ended("run-1")

    assert re.search(r"stopped at [-\d]+ [:\d]+ UTC", body(history))
    assert "failed" not in body(history)


def test_charts_have_tables() -> None:
    """For those who cannot see a chart there is a table of its last values, with its name."""
    shown = body(told())
    titles = re.findall(r'<svg[^>]*aria-label="([^"]*)"', shown)

    assert re.findall("<summary>Table: (.*?)</summary>", shown) == titles
    first = re.search(r"<table>.*?</table>", shown)
    assert first is not None
    table = ElementTree.fromstring(first[0])
    rows = [[cell.text for cell in row] for row in table.iter("tr")]
    assert rows[:2] == [["micro-batch", "ended, UTC", "rows"], ["19", "22:13:19", "1.19k"]]
    assert len(rows) == 16
    assert [cell.get("scope") for cell in table.iter("th")][:4] == ["col", "col", "col", "row"]


def test_the_name_of_the_application() -> None:
    """It is the page's heading and title."""
    history = History(f"shop {BAD}")
    shown = page(history)

    assert shown.count(f"shop {escape(BAD)}") == 2
    assert BAD not in shown
    assert "<h1>Patterns</h1>" in page(History())


QUIET = {
    "numLateRecordsDropped": 0, "endedByWindow": 0, "endedBySkipStrategy": 0, "endedByNotStage": 0,
    "numMatches": 0, "numEventsQueued": 0, "numMatchesHeldBack": 0,
    "partialMatches": {"fail": 0, "ok": 0},
}  # fmt: skip


@pytest.mark.parametrize(
    ("more", "chart", "sign"),
    [
        (lambda n: {}, "Partial matches that wait, by last stage", NO_BEGINNING),
        (
            lambda n: {"numEventsQueued": n, "watermark": 7},
            "Watermark behind the clock",
            HELD_BACK,
        ),
        (lambda n: {"numLateRecordsDropped": 1}, "Events dropped", OUT_OF_TIME),
        (lambda n: {"numAheadRecordsDropped": 1}, "Events dropped", OUT_OF_TIME),
        (lambda n: {"numNullRecordsDropped": 1}, "Events dropped", WITHOUT_KEY_OR_TIME),
        (
            lambda n: {"partialMatches": {"fail": 5 + n, "ok": 2}},
            "Partial matches that wait, by last stage",
            ALL_WAIT,
        ),
        (lambda n: {"endedByWindow": 3}, "Partial matches that ended, by reason", ALL_END),
        (lambda n: {"endedByContiguity": 3}, "Partial matches that ended, by reason", ALL_END),
        (lambda n: {"numMatchesHeldBack": n}, "State", MATCHES_WAIT),
        (lambda n: {"numMatches": 1}, "Matches per micro-batch", IT_MATCHES),
    ],
)
def test_what_a_counter_means(
    more: Callable[[int], dict[str, Any]], chart: str, sign: Sign
) -> None:
    """What the counters of the last micro-batches mean stands below the chart of the counter."""
    history = History()
    for number in range(8):
        history.progressed(progress(number, **QUIET | more(number)))
    beside = figures(body(history))

    assert beside[chart] == [sign.text("fail" if sign == ALL_WAIT else "")]
    others = [text for title, told in beside.items() if title != chart for text in told]
    assert set(others) <= {NO_BEGINNING.text()}


def figures(shown: str) -> dict[str, list[str]]:
    """Return what stands below each chart, by its title."""
    cut = re.findall(r'<figure data-key="([^"]*)">(.*?)</figure>', shown, re.DOTALL)
    return {
        title: [unescape(text) for text in re.findall(r'<p class="sign">(.*?)</p>', inside)]
        for title, inside in cut
    }


def test_no_input() -> None:
    """No events arrive if Spark says that a query is idle, until it tells of a micro-batch."""
    history = told()
    chart = "Input, rows per micro-batch"
    assert figures(body(history))[chart] == []
    history.idled("run-1")
    assert figures(body(history))[chart] == [NO_INPUT.text()]
    history.progressed(progress(20))
    assert figures(body(history))[chart] == []
    for number in range(21, 24):
        history.progressed({**progress(number), "numInputRows": 0})
    assert figures(body(history))[chart] == [NO_INPUT.text()]


def test_a_single_micro_batch_means_little() -> None:
    """What must stand still or grow is said of three micro-batches or more, not of less."""
    history = History()
    for number in range(2):
        history.progressed(progress(number, **QUIET | {"numEventsQueued": number, "watermark": 7}))

    assert set(itertools.chain(*figures(body(history)).values())) == set()


def test_the_manual_says_the_same() -> None:
    """Each sign stands in the manual's table of counters, in the words of the page."""
    lines = (ROOT / "docs/why.md").read_text("utf-8").splitlines()
    start = lines.index("| what you see | what it is | what helps |")
    rows = itertools.takewhile(lambda line: line.startswith("|"), lines[start + 2 :])
    cells = [
        [re.sub(r"\[([^\]]*)\]\([^)]*\)|`", r"\1", cell).strip() for cell in row.split("|")[2:4]]
        for row in rows
    ]

    assert [what for what, _ in cells] == [sign.what for sign in SIGNS]
    for (_, helps), sign in zip(cells, SIGNS, strict=True):
        assert helps.startswith(sign.helps)


@pytest.mark.parametrize(("count", "shown"), [(1, 1), (7, 7), (40, 12)])
def test_a_legend_has_as_many_rows_as_it_needs(count: int, shown: int) -> None:
    """No line is without its name, unless there are very many; all names are inside the picture."""
    lines = [Line(f"a stage of the pattern {number}", [1.0, 2.0]) for number in range(count)]
    svg = chart("title", ended_at(1.0, 2.0), lines)
    width, height = size(svg)

    assert sum(text.startswith("a stage of") for text in texts(svg)) == shown
    assert (f"and {count - shown} more" in texts(svg)) == (shown < count)
    assert [p for p in points(svg) if not (0 <= p[0] <= width and 0 <= p[1] <= height)] == []


def test_times_that_no_calendar_has() -> None:
    """A watermark in the far future is shown all the same."""
    history = told(1)
    history.progressed(progress(1, watermark=1 << 62))
    assert "watermark 53.4G d" in page(history)


def samples_of(text: str) -> list[tuple[str, dict[str, str]]]:
    """Return the name and the labels of each sample; each line must be one, or say of what."""
    label = r'(\w+)="((?:\\[\\n"]|[^"\\\n])*)"'
    found = []
    for line in text.removesuffix("\n").split("\n"):
        if line.startswith("#"):
            assert re.fullmatch(r"# (HELP \w+ .+|TYPE \w+ (counter|gauge))", line)
            continue
        parts = re.fullmatch(rf"(\w+)\{{({label}(?:,{label})*)\}} (\S+)", line)
        assert parts is not None, line
        float(parts[parts.lastindex or 0])
        found.append((parts[1], dict(re.findall(label, parts[2]))))
    return found


def test_prometheus() -> None:
    """Each metric has its type once, and each of its samples other labels, whose texts are quoted."""
    text = prometheus_text(told(20))
    samples = samples_of(text)
    types = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]

    assert len(types) == len(set(types))
    assert {name for name, _ in samples} == set(types)
    assert len({(name, *labels.items()) for name, labels in samples}) == len(samples)
    assert any('stage="fail"} 29' in line for line in text.splitlines())
    matches = next(line for line in text.splitlines() if line.startswith("pyflinkcep_matches"))
    assert matches.endswith("} 80")
    quoted = History()
    quoted.started("r", 'a "b" \\ \n c')
    assert samples_of(prometheus_text(quoted))[0][1]["query"] == r"a \"b\" \\ \n c"


def test_grafana_asks_for_what_there_is() -> None:
    """The dashboard has a panel for each metric, and each panel names labels that it has."""
    known = dict(samples_of(prometheus_text(told(20))))
    panels = json.loads(DASHBOARD.read_text("utf-8"))["panels"]
    asked = set()
    for target in (target for panel in panels for target in panel["targets"]):
        names = re.findall(r"pyflinkcep_\w+", target["expr"])
        shown = re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])
        for name in names:
            assert {*shown, *re.findall(r"(\w+)=~", target["expr"])} <= known[name].keys()
        asked.update(names)

    assert asked == known.keys()


def test_the_application() -> None:
    """It answers local names only, sends what changes, and allows no script but its own."""
    pytest.importorskip("starlette")
    history, over = told(), [False]
    app = make_app(history, "127.0.0.1", lambda: over[0])

    status, headers, text = get(app, "/")
    assert (status, "CEP: a" in text) == (200, True)
    assert "script-src 'self'" in headers["content-security-policy"]
    assert get(app, "/metrics")[1]["content-type"].startswith("text/plain; version=0.0.4")
    assert json.loads(get(app, "/grafana.json")[2])["title"] == "pyflinkcep"
    assert "EventSource" in get(app, "/monitor.js")[2]
    assert get(app, "/", host="elsewhere.example")[0] == 400
    assert get(make_app(history, "0.0.0.0", bool), "/", host="elsewhere.example")[0] == 200

    ask = iter([False, True])
    once = make_app(history, "127.0.0.1", lambda: next(ask))
    _, headers, text = get(once, "/events")
    assert headers["content-type"].startswith("text/event-stream")
    assert json.loads(text.removeprefix("data: ")) == body(history)


def test_a_port_that_is_taken() -> None:
    """It is an error with what to do, not a thread that dies."""
    pytest.importorskip("uvicorn")
    server = _Server(History(), "127.0.0.1", 0)
    port = int(server.url.rstrip("/").rpartition(":")[2])
    try:
        with pytest.raises(InputError, match="port=0"):
            _Server(History(), "127.0.0.1", port)
    finally:
        server.stop()
    assert not server._thread.is_alive()


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where starlette or uvicorn is missing, the error names the extra."""
    for name in ("starlette.routing", "uvicorn"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(NotSupportedError, match=r"pyflinkcep\[monitor\]"):
        make_app(History(), "127.0.0.1", bool)
    with pytest.raises(NotSupportedError, match=r"needs uvicorn"):
        _Server(History(), "127.0.0.1", 0)


@attrs.define(eq=False)
class Session:
    """What the monitor asks of a session, such as one of Spark Connect; `warns` as on Sail."""

    warns: bool = False
    listeners: list[Any] = attrs.field(factory=list)
    threads: list[threading.Thread] = attrs.field(factory=list)

    @property
    def streams(self) -> Session:
        """Itself."""
        return self

    conf = streams

    def get(self, name: str, default: str) -> str:
        """Return a setting."""
        return {"spark.app.name": "shop"}.get(name, default)

    def addListener(self, listener: Any) -> None:
        """Add a listener, or warn."""
        if self.warns:
            warnings.warn("Failed to add the listener", stacklevel=2)
        else:
            self.listeners.append(listener)
            self.threads.append(threading.current_thread())

    def removeListener(self, listener: Any) -> None:
        """Remove a listener."""
        self.listeners.remove(listener)


def test_a_session_of_spark_connect() -> None:
    """What it tells is on the page; its thread is a daemon's, so that the process can end."""
    pytest.importorskip("uvicorn")
    session = Session()
    told_json = {
        **progress(1), "id": str(UUID(int=1)), "runId": str(UUID(int=2)), "durationMs": {}, "stateOperators": [], "sources": [],
        "sink": {"description": "noop", "numOutputRows": 0}, "inputRowsPerSecond": 1.0,
        "processedRowsPerSecond": 1.0, "eventTime": {},
    }  # fmt: skip
    with Monitor(session, port=0) as monitor:  # type: ignore[arg-type]
        (listener,) = session.listeners
        listener.onQueryProgress(QueryProgressEvent.fromJson({"progress": told_json}))
        (query,) = monitor.history.read()
        assert monitor.history.application == "shop"

    assert query.last[f"CEP: a & {BAD}"].stages == {"fail": 11, BAD: 3}
    assert [thread.daemon for thread in session.threads] == [True]
    assert session.listeners == []


def test_what_tells_of_no_streams_is_refused() -> None:
    """An engine that does not take the listener, and what is no session, are named."""
    pytest.importorskip("uvicorn")
    with pytest.raises(NotSupportedError, match=r"Failed to add[\s\S]*Sail"):
        Monitor(Session(warns=True), port=0)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match=r"expected a SparkSession, got int"):
        Monitor(3)  # type: ignore[arg-type]
    local = "127.0.0.1"
    for host, port in ((None, 0), ("", 0), (local, "4050"), (local, True), (local, 70_000)):
        with pytest.raises(InvalidArgumentError, match="a host as text and a whole number as port"):
            Monitor(Session(), host, port)  # type: ignore[arg-type]
