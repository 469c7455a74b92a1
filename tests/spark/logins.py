# SPDX-License-Identifier: Apache-2.0
"""Logins, some of which fail, and a clause that finds a success after failures."""

from __future__ import annotations

from pathlib import Path

from tests.spark.streams import FileSource

SCHEMA = "user string, ts bigint, result string"
CLAUSE = """
    PARTITION BY user ORDER BY time
    MEASURES COUNT(F.ts) AS fails, O.ts AS at, MATCH_ROWTIME() AS mrt
    AFTER MATCH SKIP PAST LAST ROW
    PATTERN (F{2,} O) WITHIN INTERVAL '1' MINUTE
    DEFINE F AS result = 'fail', O AS result = 'ok'
"""


def logins(folder: Path) -> FileSource:
    """Return the logins in files; a null user is a user."""
    source = FileSource(folder / "in", SCHEMA)
    source.add(
        [("u", 1000, "fail"), ("v", 1500, "fail"), ("u", 2000, "fail")],
        [("u", 3000, "ok"), ("v", 4000, "ok"), (None, 4500, "fail"), (None, 4600, "fail")],
        [("v", 9000, "fail"), (None, 9500, "ok"), ("v", 10_000, "fail"), ("v", 11_000, "ok")],
    )
    return source
