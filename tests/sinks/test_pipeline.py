# SPDX-License-Identifier: Apache-2.0
"""The pipeline of the page of Declarative Pipelines runs as it stands there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark

from tests.sinks.test_kill import pytestmark  # noqa: F401 - the same

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "places" / "pipelines.md"


def test_both_tables_have_the_match(tmp_path: Path) -> None:
    """A view that is computed again and a table that grows have the same match with one id."""
    page = PAGE.read_text(encoding="utf-8").replace("/data", str(tmp_path))
    (specification,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    after = page.partition("`transformations/logins.py`")[2].partition("\n* ")[0]
    program = "\n".join(line[4:] for line in after.splitlines()[2:])
    events = tmp_path / "logins"
    events.mkdir()
    days = [("ann", 1, "fail"), ("ann", 1, "fail"), ("ann", 1, "ok")], [("bob", 2, "ok")]
    for number, rows in enumerate(days):
        lines = [
            {"user": user, "ts": f"2026-01-0{day}T00:00:0{second}Z", "result": result}
            for second, (user, day, result) in enumerate(rows)
        ]
        (events / f"{number}.json").write_text("\n".join(map(json.dumps, lines)))
    (tmp_path / "spark-pipeline.yml").write_text(specification)
    (tmp_path / "transformations").mkdir()
    (tmp_path / "transformations" / "logins.py").write_text(program)
    home = Path(pyspark.__file__).parent
    done = subprocess.run(
        ["bash", home / "bin" / "spark-pipelines", "run"],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "SPARK_HOME": str(home),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-6000:]

    tables = {}
    for name in ("login_alerts", "live_login_alerts"):
        files = (tmp_path / "spark-warehouse" / name).glob("*.parquet")
        tables[name] = pa.concat_tables(pq.ParquetFile(file).read() for file in files).to_pylist()
    assert tables["login_alerts"] == tables["live_login_alerts"]
    assert [row["user"] for row in tables["login_alerts"]] == ["ann"]
