# SPDX-License-Identifier: Apache-2.0
"""Sigma rules on DataFrames: as in memory."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pyflinkcep import CEP, InputError, NotSupportedError, keyBy, matchSigma, sigmaRules
from pyflinkcep.errors import InvalidArgumentError

pytest.importorskip("sigma.rule")

RULES = """
title: Shell of a server
name: shell
level: high
logsource: {category: process}
detection:
  selection: {Image|endswith: [/sh, /Bash], parent.name|contains: HTTP}
  admin: {user: root}
  number: {pid|gt: 3}
  condition: selection and not admin and number
---
title: Address
name: address
logsource: {product: network}
detection: {selection: {ip|cidr: [10.0.0.0/8, 'fe80::/10']}, condition: selection}
---
title: Any argument
name: argument
logsource: {category: process}
detection: {selection: {args: '-C*'}, short: {Image: null}, condition: selection or short}
"""
SCHEMA = (
    "id int, kind string, Image string, parent struct<name: string>, user string, pid int, "
    "ip string, args array<string>"
)


def _events() -> list[dict[str, Any]]:
    return [
        {
            "id": n,
            "kind": ("p", "n", None)[n % 3 % 2 if n % 7 else 2],
            "Image": ("/bin/SH", "/usr/bash", None, "/bin/ls")[n % 4],
            "parent": {"name": "httpd"} if n % 5 else None,
            "user": ("ann", "root", None)[n % 3],
            "pid": n % 9,
            "ip": ("10.1.1.1", "fe80::2", "11.0.0.1", None)[n % 4],
            "args": ([], None, ["x", "-c y"])[n % 3],
        }
        for n in range(300)
    ]


@pytest.mark.spark
def test_alerts_of_memory(spark: SparkSession, tmp_path: Path) -> None:
    """Bounded and streaming, alerts are those of the same events in memory."""
    (tmp_path / "rules.yml").write_text(RULES)
    rules = sigmaRules(tmp_path, logsources={"process": "kind = 'p'", "*/network": "kind = 'n'"})
    found = matchSigma(rules, _events())
    expected = Counter((name, event["id"]) for name in found for [event] in found[name])
    assert {*found} == {"shell", "address", "argument"}

    frame = spark.createDataFrame(_events(), SCHEMA)
    alerts = CEP.sigma(frame, rules)
    assert alerts.schema["event"].dataType == frame.schema
    assert Counter((row.rule, row.event.id) for row in alerts.collect()) == expected
    levels = {(row.rule, row.title, row.level) for row in alerts.collect()}
    assert ("shell", "Shell of a server", "high") in levels
    assert ("address", "Address", None) in levels

    frame.write.parquet(str(tmp_path / "events"))
    stream = spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "events"))
    query = (
        CEP.sigma(stream, rules)
        .writeStream.format("memory")
        .queryName("sigma_alerts")
        .trigger(availableNow=True)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    query.awaitTermination()
    rows = spark.table("sigma_alerts").collect()
    assert Counter((row.rule, row.event.id) for row in rows) == expected


@pytest.mark.spark
def test_refusals(spark: SparkSession) -> None:
    """Correlations, keyed DataFrames, and fields that are missing or numbers, are refused."""
    known = {"process": "kind = 'p'", "*/network": "kind = 'n'"}
    rules = sigmaRules([RULES], logsources=known)
    frame = spark.createDataFrame([], SCHEMA)
    count = "name: many\ncorrelation: {type: event_count, rules: [shell], timespan: 1m, condition: {gte: 2}}\n"

    for wrong, why in (
        ("kin = 'p'", "the log source \"kin = 'p'\" cannot be evaluated.*kin"),
        ("(((", "cannot be evaluated"),
        ("id + 1", "expected boolean"),
    ):
        with pytest.raises(InputError, match=why) as error:
            CEP.sigma(frame, sigmaRules([RULES], logsources={**known, "process": wrong}))
        assert error.value.hint
    with pytest.raises(InputError, match="address: the events have no field 'ip'"):
        CEP.sigma(frame.drop("ip"), rules)
    with pytest.raises(NotSupportedError, match="the correlation 'many' needs several events"):
        CEP.sigma(frame, sigmaRules([RULES, count], logsources=known))
    of_texts = sigmaRules([RULES.replace("parent.name", "load")], logsources=known)
    for type_ in ("double", "decimal(5, 2)", "array<double>"):
        with pytest.raises(NotSupportedError, match="rule 'shell': a cast to string"):
            CEP.sigma(frame.selectExpr("*", f"cast(null as {type_}) AS load"), of_texts)
    with pytest.raises(InputError, match="'months' is interval month, which Spark cannot hand"):
        CEP.sigma(frame.selectExpr("*", "interval '1' month AS months"), rules)
    with pytest.raises(InvalidArgumentError, match="expected a DataFrame"):
        CEP.sigma(keyBy(frame, "id"), rules)  # type: ignore[arg-type]
