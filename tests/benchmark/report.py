# SPDX-License-Identifier: Apache-2.0
"""Results as Markdown tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tests.benchmark.in_process import PEERS
from tests.benchmark.measurement import Measurement
from tests.benchmark.workloads import WORKLOADS

_SPEED = (
    ("batch", "columns"),
    ("batch", "python"),
    ("sail", "columns"),
    ("sail", "python"),
    ("stream", "columns"),
    ("stream", "python"),
)
_OF_CHANGES = ("changed_s", "changed_cpu_s", "change_s", "change_cpu_s")
_PARTS = ("addBatch", "queryPlanning", "latestOffset", "walCommit", "commitOffsets")


def markdown(document: dict[str, Any], measurements: Sequence[Measurement]) -> str:
    """Give the report of a benchmark."""
    best = _fastest(measurements)
    sections = [
        ("", _setting(document)),
        ("Events per second", _speed(best)),
        ("Beside engines in a process", _in_process(best)),
        ("Streams", _streams(best)),
        ("Latency", _latency(best)),
        ("Peak memory", _memory(best)),
        ("Growth", _growth(best)),
        ("Partial matches on one key", _pending(best)),
        ("Many rules", _rules(best)),
        ("Rules on a stream", _live(best)),
    ]
    parts = [f"### {title}\n\n{text}" if title else text for title, text in sections if text]
    return "\n\n".join(parts)


def _fastest(measurements: Iterable[Measurement]) -> list[Measurement]:
    """Return the fastest of the runs of the same thing."""
    best: dict[Any, Measurement] = {}
    for m in measurements:
        what = (m.engine, m.variant, *m.question, m.details.get("grows"))
        if what not in best or m.seconds < best[what].seconds:
            best[what] = m
    return list(best.values())


def _setting(document: dict[str, Any]) -> str:
    m, s = document["machine"], document["settings"]
    versions = ", ".join(f"{name} {m[name]}" for name in ("python", "pyspark", "pyarrow", "numpy"))
    return (
        f"{m['date']}, {m['cores']} cores, {m['memory_gib']} GiB, {m['system']}; {versions}; "
        f"{_events(s['events'])} events, the best of {s['repeat']} run(s)."
    )


def _events(events: int | Sequence[int]) -> str:
    sizes = [events] if isinstance(events, int) else events
    return " and ".join(f"{size:,}" for size in sizes)


def _speed(best: Sequence[Measurement]) -> str:
    runs = {
        (m.engine, m.variant, *m.question): m
        for m in best
        if m.workload in WORKLOADS and "grows" not in m.details
    }
    rows = []
    seen = dict.fromkeys((m.workload, m.keys, m.source) for m in runs.values())
    for workload, keys, source in seen:
        flink = runs.get(("flink", "", workload, source))
        cells = [_against(runs.get((*way, workload, source)), flink) for way in _SPEED]
        if any(cells):
            rows.append([workload, f"{keys:,}", flink and f"{flink.rate:,.0f}", *cells])
    ways = [" ".join(way).strip() for way in _SPEED]
    return _table(*_without_empty_columns(["workload", "keys", "Flink", *ways], rows))


def _in_process(best: Sequence[Measurement]) -> str:
    runs = {(m.workload, m.source, m.engine): m for m in best}
    engines = ["match", *dict.fromkeys(m.engine for m in best if m.engine in PEERS)]
    rows = []
    for own in _of(best, "match"):
        others = [runs.get((own.workload, own.source, name)) for name in engines[1:]]
        least = min((m.seconds for m in others if m is not None), default=None)
        rows.append(
            [
                own.workload,
                f"{own.events:,}",
                f"{own.keys:,}",
                *("" if m is None else f"{m.rate / 1e6:.1f}" for m in (own, *others)),
                "" if least is None else f"{least / own.seconds:.2f} ×",
            ]
        )
    units = [f"{name}, M events/s" for name in engines]
    return _table(["question", "events", "keys", *units, "the fastest other takes"], rows)


def _against(run: Measurement | None, flink: Measurement | None) -> str:
    if run is None:
        return ""
    ratio = "" if flink is None else f" ({flink.seconds / run.seconds:.2f} ×)"
    return f"{run.rate:,.0f}{ratio}"


def _streams(best: Sequence[Measurement]) -> str:
    rows = []
    for m in _of(best, "stream"):
        d = m.details
        rows.append(
            [
                f"{m.workload}, {m.variant}",
                f"{m.keys:,}",
                f"{d['micro_batch']:,}",
                f"{m.rate:,.0f}",
                f"{d['steady_rate']:,.0f}" if "steady_rate" in d else "",
                _kib(d.get("state_bytes_read")),
                _kib(d.get("state_bytes_written")),
                _seconds_by(d.get("parts_s", {}), _PARTS),
                f"{d['flush_seconds']:.1f}",
            ]
        )
    head = ["workload", "keys", "events a batch", "events/s", "steady events/s", "state read KiB"]
    head += ["state written KiB", "mean parts of a batch, s", "flush, s"]
    return _table(head, rows)


def _latency(best: Sequence[Measurement]) -> str:
    rows = []
    for m in _of(best, "latency"):
        d = m.details
        if not d["micro_batches"]:
            continue
        rows.append(
            [
                m.workload,
                f"{m.keys:,}",
                f"{d['micro_batch']:,}",
                d["micro_batches"],
                *(f"{d[name]:.2f}" for name in ("median_s", "p95_s", "max_s")),
                _seconds_by(d.get("parts_s", {}), _PARTS),
                _kib(d.get("state_bytes_read")),
                _kib(d.get("state_bytes_written")),
            ]
        )
    head = ["workload", "keys", "events a batch", "batches", "median, s", "95 %, s", "longest, s"]
    head += ["mean parts of a batch, s", "state read KiB", "state written KiB"]
    return _table(head, rows)


def _memory(best: Sequence[Measurement]) -> str:
    rows = []
    for m in best:
        if "peak_mib" in m.details and "grows" not in m.details and m.workload in WORKLOADS:
            peaks = m.details["peak_mib"]
            way = f"{m.engine} {m.variant}".strip()
            rows.append([m.workload, f"{m.keys:,}", way, peaks["java"], peaks["workers"]])
    return _table(["workload", "keys", "engine", "Java MiB", "Python workers MiB"], rows)


def _growth(best: Sequence[Measurement]) -> str:
    rows = []
    for m in best:
        if "grows" in m.details:
            peaks = m.details["peak_mib"]
            rows.append(
                [
                    m.details["grows"],
                    m.workload,
                    f"{m.events:,}",
                    f"{m.keys:,}",
                    f"{m.matches:,}",
                    f"{m.seconds:.2f}",
                    f"{m.rate:,.0f}",
                    peaks["java"],
                    peaks["workers"],
                ]
            )
    head = ["what grows", "pattern", "events", "keys", "matches", "seconds", "events/s"]
    return _table([*head, "Java MiB", "Python workers MiB"], rows)


def _pending(best: Sequence[Measurement]) -> str:
    runs = [m for m in best if m.workload == "pending"]
    flink = {m.source: m for m in runs if m.engine == "flink"}
    rows = []
    for m in runs:
        peer = flink.get(m.source)
        ratio = "" if peer is None or m is peer else f"{peer.seconds / m.seconds:.1f} ×"
        way = f"{m.engine} {m.variant}".strip()
        rows.append([f"{m.matches:,}", f"{m.events:,}", way, f"{m.seconds:.2f}", ratio])
    return _table(["partial matches", "events", "engine", "seconds", "against Flink"], rows)


def _rules(best: Sequence[Measurement]) -> str:
    alone: dict[str, list[float]] = {}
    for m in _of(best, "job"):
        alone.setdefault(m.details["set"], []).append(m.seconds)
    flink = {m.question: m for m in best if m.engine == "flink"}
    rows = []
    for m in best:
        d = m.details
        if m.engine not in ("rules", "sigma", "core"):
            continue
        one, peer = alone.get(d.get("set", ""), []), flink.get(m.question)
        each = sum(one) / len(one) * d["rules"] if one else 0
        rows.append(
            [
                m.workload,
                f"{m.events:,}",
                f"{m.matches:,}",
                f"{m.seconds:.2f}",
                *(f"{d[name]:.2f}" if name in d else "" for name in ("cpu_s", "plan_s")),
                f"{max(d['peak_mib'].values()):,}" if "peak_mib" in d else "",
                f"{m.seconds / max(one):.1f} ×" if one else "",
                f"{each / m.seconds:.1f} ×" if d.get("rules", 0) > 1 and one else "",
                f"{peer.seconds / m.seconds:.0f} ×" if peer else "",
                f"{d['ns_an_offer']:.0f}" if "ns_an_offer" in d else "",
            ]
        )
    head = ["rules", "events", "matches", "seconds", "CPU, s", "of these planning, s", "peak MiB"]
    head += ["of the dearest alone", "jobs for each take", "Flink takes", "ns a rule and event"]
    return _table(*_without_empty_columns(head, rows))


def _live(best: Sequence[Measurement]) -> str:
    rows = []
    for m in (m for m in best if m.engine in ("live", "fixed")):
        d = m.details
        more = [f"{d[name]:.2f}" if name in d else "" for name in _OF_CHANGES]
        by_kind = d.get("change_by_kind_s", {})
        rows.append(
            [
                "may change" if m.engine == "live" else "fixed",
                f"{d['rules']:,}",
                d["partitions"],
                f"{m.events:,}",
                f"{m.rate:,.0f}",
                f"{d['first_s']:.1f}",
                f"{m.seconds:.2f}",
                f"{d['cpu_s']:.2f}",
                *more,
                _seconds_by(by_kind, list(by_kind)),
                _kib(d["state_bytes_read"]),
                _kib(d["state_bytes_written"]),
                _kib(d["store_bytes"]),
            ]
        )
    head = ["rules", "how many", "partitions", "events a batch", "events/s", "first batch, s"]
    head += [
        "a batch, s",
        "its CPU, s",
        "one with a change, s",
        "its CPU, s",
        "more than beside, s",
    ]
    head += ["more CPU, s", "by kind, s", "state read KiB", "state written KiB", "store KiB"]
    return _table(head, rows)


# --- helpers


def _of(best: Sequence[Measurement], engine: str) -> list[Measurement]:
    return [m for m in best if m.engine == engine]


def _kib(number: int | None) -> str:
    return "" if number is None else f"{number / 1024:,.0f}"


def _seconds_by(parts: dict[str, float], names: Sequence[str]) -> str:
    return ", ".join(f"{name} {parts[name]:.2f}" for name in names if name in parts)


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    if not rows:
        return ""
    return "\n".join(map(_line, [head, ["---"] * len(head), *rows]))


def _without_empty_columns(
    head: Sequence[str], rows: Sequence[Sequence[Any]]
) -> tuple[list[str], list[list[Any]]]:
    used = [at for at in range(len(head)) if any(row[at] for row in rows)]
    return [head[at] for at in used], [[row[at] for at in used] for row in rows]


def _line(cells: Iterable[Any]) -> str:
    return "| " + " | ".join("" if cell is None else str(cell) for cell in cells) + " |"
