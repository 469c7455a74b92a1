# SPDX-License-Identifier: Apache-2.0
"""Flink beside us: in a process of its own, one workload at a time."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.benchmark.events import PendingEvents, RandomEvents
from tests.benchmark.measurement import Measurement
from tests.benchmark.memory import PeakMemory

_PENDING = Path(__file__).parent / "peer" / "PendingPeer.java"
_OPEN = ("lang", "util", "util.concurrent", "time", "io", "net")


def measure_flink(command: str, source: RandomEvents, workload: str, cores: int) -> Measurement:
    """
    Run a workload on Flink.

    Parameters
    ----------
    command : str
        What to run; it gets WORKLOAD EVENTS KEYS TYPES PARALLELISM SEED and prints a line of
        JSON with ``seconds``, ``matches`` and ``checksum``.
    """
    numbers = (source.events, source.keys, source.types, cores, source.seed)
    answer, peaks = _run([*shlex.split(command), workload, *map(str, numbers)])
    return Measurement(
        engine="flink",
        workload=workload,
        variant="",
        source=source.name,
        events=source.events,
        keys=source.keys,
        seconds=answer["seconds"],
        matches=answer["matches"],
        checksum=answer["checksum"],
        details={"peak_mib": peaks},
    )


def measure_flink_pending(jars: Path, source: PendingEvents) -> Measurement:
    """Run the pattern with many partial matches on Flink, whose jars are in a folder."""
    paths = [path for path in sorted(jars.glob("*.jar")) if "table" not in path.name]
    if not paths:
        sys.exit(f"{jars} has no jars of Flink")
    jar_path = ":".join(map(str, paths))
    with tempfile.TemporaryDirectory() as classes:
        compiler = ["javac", "-nowarn", "-cp", jar_path, "-d", classes, str(_PENDING)]
        subprocess.run(compiler, check=True, stderr=subprocess.DEVNULL)
        java = ["java", *(f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in _OPEN)]
        java += ["-Xmx4g", "-Dlog4j2.level=OFF", "-cp", f"{jar_path}:{classes}", _PENDING.stem]
        answer, peaks = _run([*java, str(source.partials), str(source.others)])
    return Measurement(
        engine="flink",
        workload="pending",
        variant="",
        source=source.name,
        events=source.events,
        keys=1,
        seconds=answer["seconds"],
        matches=answer["matches"],
        checksum=answer["checksum"],
        details={"peak_mib": peaks},
    )


def _run(command: Sequence[str]) -> tuple[dict[str, Any], dict[str, int]]:
    """Run a command; give the JSON of its last line, and the memory it had."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)
    with PeakMemory(process.pid) as memory:
        output, errors = process.communicate()
    lines = output.strip().splitlines()
    if process.returncode or not lines:
        causes = [line for line in errors.splitlines() if "Caused by" in line]
        reason = causes[-1] if causes else errors[-500:]
        sys.exit(f"{shlex.join(command)}\nfailed with status {process.returncode}: {reason}")
    return json.loads(lines[-1]), memory.peaks
