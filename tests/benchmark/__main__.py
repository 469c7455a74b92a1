# SPDX-License-Identifier: Apache-2.0
"""
The benchmark: events a second, latency and memory, beside Flink and beside code by hand.

From the checkout: python -m tests.benchmark all --events 2000000 --keys 1000 500000
"""

from __future__ import annotations

import argparse
import compileall
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyflinkcep
from tests.benchmark import in_process
from tests.benchmark.events import RandomEvents
from tests.benchmark.measurement import Measurement, disagreements, load, machine, save
from tests.benchmark.report import markdown
from tests.benchmark.rule_sets import PARTS, RuleSets
from tests.benchmark.session import benchmark_session
from tests.benchmark.suites import Settings, Suites
from tests.benchmark.workloads import VARIANTS, WORKLOADS

COMMANDS = {
    "all": Suites.everything,
    "batch": Suites.batch,
    "stream": Suites.stream,
    "latency": Suites.latency,
    "scaling": Suites.scaling,
    "pending": Suites.pending,
    "sql": Suites.sql,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a sub-command; give the status of the process, 1 where an answer is wrong."""
    args = _parser().parse_args(arguments)
    if args.command == "report":
        documents = [load(path) for path in args.results]
        # Each run stands alone: ratios across runs would compare different moments.
        print("\n\n".join(markdown(document, runs) for document, runs in documents))
        return _complain([m for _, runs in documents for m in runs])
    # As if installed: workers compile no modules, even where bytecode is not written.
    compileall.compile_dir(Path(pyflinkcep.__file__).parent, quiet=2)
    told = {name: value for name, value in vars(args).items() if name not in _PRIVATE}
    measurements = []
    for measurement in _OTHERS.get(args.command, _measured)(args):
        print(measurement, file=sys.stderr, flush=True)
        measurements.append(measurement)
        save(args.json, measurements, told)
    print(markdown({"machine": machine(), "settings": told}, measurements))
    return _complain(measurements)


def _measured(args: argparse.Namespace) -> Iterator[Measurement]:
    settings = _settings(args)
    with benchmark_session(args.session, settings.cores, args.driver_memory) as spark:
        yield from COMMANDS[args.command](Suites(spark, settings))


def _peers(args: argparse.Namespace) -> Iterator[Measurement]:
    for events in args.events:
        for keys in args.keys:
            source = RandomEvents(events, keys, args.types, args.seed)
            yield from in_process.measured(
                source, args.cores, args.repeat, args.cache, args.engines
            )


def _rules(args: argparse.Namespace) -> Iterator[Measurement]:
    with benchmark_session("spark", args.cores, args.driver_memory) as spark:
        sets = RuleSets(
            spark, args.events, args.keys, args.seed, args.cores, args.cache, args.flink_jars,
            args.flink_events, args.published, args.micro_batch, args.parts,
        )  # fmt: skip
        yield from sets.measured()


_OTHERS = {"peers": _peers, "rules": _rules}
"""Sub-commands with options of their own."""

_PRIVATE = frozenset(["flink", "flink_jars", "cache", "json", "published"])
"""Arguments that name places; they are nobody else's business."""


def _complain(measurements: Sequence[Measurement]) -> int:
    wrong = disagreements(measurements)
    for line in wrong:
        print(f"*** {line}", file=sys.stderr)
    return 1 if wrong else 0


def _settings(args: argparse.Namespace) -> Settings:
    return Settings(
        events=args.events,
        keys=tuple(args.keys),
        types=args.types,
        seed=args.seed,
        workloads=tuple(args.workloads),
        variants=tuple(args.variants),
        cores=args.cores,
        micro_batch=args.micro_batch,
        sink=args.sink,
        small_batch=args.small_batch,
        warm_up=args.warm_up,
        repeat=args.repeat,
        partials=tuple(args.partials),
        flink=args.flink,
        flink_jars=args.flink_jars,
        cache=args.cache,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmark",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, run in COMMANDS.items():
        _add_options(commands.add_parser(name, help=run.__doc__, formatter_class=_Defaults))
    _add_options_of_peers(
        commands.add_parser(
            "peers",
            help="Put questions to match, ClickHouse, DuckDB and polars, on a file.",
            formatter_class=_Defaults,
        )
    )
    _add_options_of_rules(
        commands.add_parser(
            "rules",
            help="Run many rules in one job, beside one, a job for each, and Flink.",
            formatter_class=_Defaults,
        )
    )
    report = commands.add_parser("report", help="Print results as Markdown.")
    report.add_argument("results", nargs="+", type=Path, help="files that --json wrote")
    return parser


_CACHE = Path(tempfile.gettempdir()) / "pyflinkcep-benchmark"
_Defaults = argparse.ArgumentDefaultsHelpFormatter


def _add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--events", type=int, default=500_000, help="events of the stream")
    add("--keys", type=int, nargs="+", default=[1_000], help="numbers of keys")
    add("--types", type=int, default=10, help="types of events")
    add("--seed", type=int, default=7)
    add("--workloads", nargs="+", default=list(WORKLOADS), choices=WORKLOADS)
    add("--variants", nargs="+", default=list(VARIANTS), choices=VARIANTS)
    add("--cores", type=int, default=2, help="cores of Spark and slots of Flink")
    add("--session", choices=["spark", "sail"], default="spark", help="sail is for batch")
    add("--driver-memory", default="4g", help="heap of Spark's JVM")
    add("--micro-batch", type=int, default=500_000, help="events in a micro-batch")
    add("--sink", choices=["noop", "parquet"], default="noop", help="where a stream's matches go")
    add("--small-batch", type=int, default=1_000, help="events in a micro-batch for latency")
    add("--warm-up", type=int, default=100_000, help="events of the run before a measured one")
    add("--repeat", type=int, default=1, help="runs of each; the report shows the fastest")
    add("--partials", type=int, nargs="+", default=[100, 1_000, 5_000], help="for pending")
    add("--flink", metavar="COMMAND", help="runs Flink; see tests/benchmark/README.md")
    add("--flink-jars", metavar="FOLDER", type=Path, help="Flink's jars, for pending and sql")
    add("--cache", type=Path, default=_CACHE, help="folder for generated events")
    add("--json", type=Path, default=Path("benchmark.json"), help="file for the results")


def _add_options_of_peers(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--events", type=int, nargs="+", default=[4_000_000, 40_000_000], help="sizes of files")
    add("--keys", type=int, nargs="+", default=[1_000, 500_000], help="numbers of keys")
    add("--types", type=int, default=10, help="types of events")
    add("--seed", type=int, default=7)
    add("--cores", type=int, default=2)
    add("--repeat", type=int, default=3, help="runs of each; the fastest is told")
    add("--engines", nargs="*", default=list(in_process.PEERS), choices=in_process.PEERS)
    add("--cache", type=Path, default=_CACHE, help="folder for generated events")
    add("--json", type=Path, default=Path("benchmark.json"), help="file for the results")


def _add_options_of_rules(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--events", type=int, default=2_000_000, help="events of the stream")
    add("--keys", type=int, default=1_000, help="number of keys")
    add("--seed", type=int, default=7)
    add("--cores", type=int, default=2)
    add("--driver-memory", default="4g", help="heap of Spark's JVM")
    add("--parts", nargs="+", default=list(PARTS), choices=PARTS)
    add("--flink-jars", metavar="FOLDER", type=Path, help="Flink's jars")
    add("--flink-events", type=int, default=100_000, help="events for Flink")
    add("--published", metavar="FOLDER", type=Path, help="rules of EQL and Sigma, and their events")
    add("--micro-batch", type=int, default=20_000, help="events in a micro-batch, for live")
    add("--repeat", type=int, default=1, help=argparse.SUPPRESS)
    add("--cache", type=Path, default=_CACHE, help="folder for generated events")
    add("--json", type=Path, default=Path("benchmark.json"), help="file for the results")


if __name__ == "__main__":
    sys.exit(main())
