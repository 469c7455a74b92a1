# SPDX-License-Identifier: Apache-2.0
"""What workers read in files of Parquet is what Spark reads in them, type by type."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from pyflinkcep.errors import InputError
from pyflinkcep.spark.arrow.internals import arrow_schema
from pyflinkcep.spark.worker.file_reader import CHUNK, FileReader
from tests.spark.support import configured

MICROS = dt.datetime(2024, 2, 29, 12, 30, 15, 123456)
MILLIS = dt.datetime(1969, 7, 20, 20, 17, 40, 999_000)
OLD = dt.datetime(1, 1, 1)
TEXTS, DECIMALS = ["a", "", None, "ä\0"], [Decimal("1.23"), Decimal("-999.99"), None]
TIMES, DAYS = [MICROS, MILLIS, None, OLD], [MICROS.date(), dt.date(1582, 10, 4), None, OLD.date()]

STORED: dict[str, tuple[pa.DataType, list[Any]]] = {
    "boolean": (pa.bool_(), [True, False, None]),
    "int8": (pa.int8(), [1, -128, None, 127]),
    "int16": (pa.int16(), [1, -5, None, 127]),
    "int32": (pa.int32(), [1, -5, None, 127]),
    "int64": (pa.int64(), [1, -5, None, 2**63 - 1]),
    "uint8": (pa.uint8(), [1, 127, None]),
    "uint16": (pa.uint16(), [1, 127, None]),
    "uint32": (pa.uint32(), [1, 2**32 - 1, None]),
    "uint64": (pa.uint64(), [1, 2**64 - 1, None]),
    "half": (pa.float16(), [1.0, None]),
    "float": (pa.float32(), [0.1, float("nan"), None, float("-inf"), -0.0]),
    "double": (pa.float64(), [0.1, float("nan"), None, float("-inf"), -0.0]),
    "string": (pa.string(), TEXTS),
    "large_string": (pa.large_string(), TEXTS),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), TEXTS),
    "binary": (pa.binary(), [b"a", b"", None, b"\xff\0"]),
    "fixed": (pa.binary(2), [b"ab", None, b"\xff\0"]),
    "date": (pa.date32(), DAYS),
    "s": (pa.timestamp("s"), [MICROS, None]),
    "ms": (pa.timestamp("ms"), [MILLIS, None, OLD]),
    "ms_zoned": (pa.timestamp("ms", "UTC"), [MILLIS, None, OLD]),
    "us": (pa.timestamp("us"), TIMES),
    "us_zoned": (pa.timestamp("us", "Europe/Berlin"), TIMES),
    "ns": (pa.timestamp("ns"), [MICROS, None]),
    "time": (pa.time64("us"), [dt.time(1), None]),
    "duration": (pa.duration("us"), [dt.timedelta(days=1), None]),
    "nothing": (pa.null(), [None]),
    "decimal5": (pa.decimal128(5, 2), DECIMALS),
    "decimal12": (pa.decimal128(12, 2), DECIMALS),
    "decimal25": (pa.decimal128(25, 5), DECIMALS),
}
WANTED = [
    *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary"),
    *("date", "timestamp", "timestamp_ntz", "decimal(5,2)", "decimal(7,3)", "decimal(10,0)"),
    *("decimal(12,2)", "decimal(13,3)", "decimal(20,0)", "decimal(22,2)", "decimal(25,5)"),
]
FLAT = (
    "n bigint, b boolean, i8 tinyint, i16 smallint, i32 int, f float, d double, s string, "
    "bytes binary, day date, t timestamp, local timestamp_ntz, small decimal(5,2), "
    "large decimal(15,3), huge decimal(30,10)"
)
LISTS = (
    "ints array<int>, texts array<string>, doubles array<double>, days array<date>, "
    "times array<timestamp>, decimals array<decimal(15,3)>, flags array<boolean>, "
    "bytes_of array<binary>"
)
EVERY = f"{FLAT}, {LISTS}"


def _arrow(schema: str) -> pa.Schema:
    return arrow_schema(StructType.fromDDL(schema))


def _both(spark: SparkSession, path: Path, schema: str) -> tuple[pa.Table, pa.Table]:
    """Return the rows of files as Spark reads them, and as workers do."""
    frame = spark.read.schema(schema).parquet(str(path))
    reader = FileReader(_arrow(schema), False, "a → b")
    chunks = frame.select(
        F.col("_metadata.file_path").alias("file"), F.col("_metadata.row_index").alias("row")
    ).where(F.col("row") % CHUNK == 0)
    return (
        frame.mapInArrow(lambda batches: batches, schema).toArrow(),
        chunks.mapInArrow(reader.read, schema).toArrow(),
    )


def _plain(column: pa.ChunkedArray) -> str:
    """Return a column as text: NaN is itself, and the sign of a zero is told."""
    is_list = pa.types.is_list(column.type)
    type_ = column.type.value_type if is_list else column.type
    if pa.types.is_temporal(type_):
        type_ = pa.int32() if pa.types.is_date(type_) else pa.int64()
    if type_ == pa.string():  # of any bytes
        type_ = pa.binary()
    return repr(column.cast(pa.list_(type_) if is_list else type_).to_pylist())


def _same(tables: tuple[pa.Table, pa.Table]) -> list[str]:
    """Return the columns that are different."""
    one, other = (table.sort_by("n") if "n" in table.column_names else table for table in tables)
    assert (one.schema, one.num_rows) == (other.schema, other.num_rows)
    return [name for name in one.column_names if _plain(one[name]) != _plain(other[name])]


def _is_read(path: Path, name: str, wanted: str) -> bool:
    """Whether workers read a column of a file as a type."""
    schema = _arrow(f"{name} {wanted}")
    chunk = pa.record_batch({"file": [f"file:{path}"], "row": [0]})
    try:
        list(FileReader(schema, False, "a → b").read(iter([chunk])))
    except InputError:
        return False
    return True


VARIANTS: dict[str, dict[str, Any]] = {
    "dictionaries": {},
    "plain": {"use_dictionary": False, "data_page_version": "2.0"},
    "INT96": {"use_deprecated_int96_timestamps": True},
    "whole decimals": {"store_decimal_as_integer": True},
}


@pytest.mark.parametrize("options", VARIANTS.values(), ids=VARIANTS)
def test_what_is_read_as_a_type_is_what_spark_reads(
    spark: SparkSession, tmp_path: Path, options: dict[str, Any]
) -> None:
    """Of all pairs of a stored and a wanted type, workers read some, and each as Spark does."""
    columns = {name: pa.array(values, type_) for name, (type_, values) in STORED.items()}
    for name, column in columns.items():
        pq.write_table(pa.table({name: column}), tmp_path / name, **options)
    pairs = [
        (name, wanted)
        for name in STORED
        for wanted in WANTED
        if _is_read(tmp_path / name, name, wanted)
    ]
    rows = max(map(len, columns.values()))
    copies = {f"c{number}": columns[name] for number, (name, _) in enumerate(pairs)}
    repeated = {
        name: pa.chunked_array([column] * rows).slice(0, rows) for name, column in copies.items()
    }
    pq.write_table(pa.table(repeated), tmp_path / "all", row_group_size=3, **options)
    schema = ", ".join(f"c{n} {wanted}" for n, (_, wanted) in enumerate(pairs))
    different = _same(_both(spark, tmp_path / "all", schema))

    assert [pairs[int(name[1:])] for name in different] == []
    assert len(pairs) > 70


def _random_events(random: Random, rows: int, first: int) -> pa.Table:
    """Return events of all types that are read, some null."""
    era = 253_402_214_400 * 10**6  # the year 9999

    def whole(bits: int) -> int:
        return random.randrange(-(2 ** (bits - 1)), 2 ** (bits - 1))

    def number() -> float:
        return random.choice([random.gauss(0, 1e9), float("nan"), -0.0, float("inf"), 0.5])

    def digits(most: int) -> int:
        return random.randrange(-(10**most) + 1, 10**most)

    makers: dict[str, Any] = {
        "b": lambda: random.random() < 0.5,
        "i8": lambda: whole(8),
        "i16": lambda: whole(16),
        "i32": lambda: whole(32),
        "f": number,
        "d": number,
        "s": lambda: random.choice(["", "ä", "text" * random.randrange(9), str(whole(64))]),
        "bytes": lambda: random.randbytes(random.randrange(12)),
        "day": lambda: random.randrange(-719_000, 2_932_000),
        "t": lambda: random.randrange(-62 * 10**15, era),
        "local": lambda: random.randrange(-62 * 10**15, era),
        "small": lambda: Decimal(digits(5)).scaleb(-2),
        "large": lambda: Decimal(digits(15)).scaleb(-3),
        "huge": lambda: Decimal(digits(28)).scaleb(-10),
    }

    def some(make: Any) -> list[Any]:
        nulls = random.choice([0, 0.1, 1])
        return [None if random.random() < nulls else make() for _ in range(random.randrange(5))]

    values_of = ("i32", "s", "d", "day", "t", "large", "b", "bytes")
    for name, of in zip(_arrow(LISTS).names, values_of, strict=True):
        makers[name] = partial(some, makers[of])
    columns = {"n": pa.array(range(first, first + rows), pa.int64())}
    for field in list(_arrow(EVERY))[1:]:
        few = [makers[field.name]() for _ in range(random.choice([3, 300]))]
        nulls = random.choice([0, 0.1, 1])
        values = [None if random.random() < nulls else random.choice(few) for _ in range(rows)]
        columns[field.name] = pa.array(values, field.type)
    return pa.table(columns)


def _write_randomly(random: Random, folder: Path) -> None:
    """Write some files with row groups of any size."""
    first = 0
    for number in range(3):
        events = _random_events(random, random.choice([1, 5_000, 20_000]), first)
        first += events.num_rows
        pq.write_table(
            events,
            folder / f"part {number}%.parquet",
            row_group_size=random.choice([700, CHUNK, 10_000]),
            data_page_size=random.choice([500, 50_000]),
            data_page_version=random.choice(["1.0", "2.0"]),
            use_dictionary=random.choice([True, False]),
            compression=random.choice(["none", "snappy", "zstd", "gzip"]),
            use_deprecated_int96_timestamps=False,
        )


WRITERS = {
    "INT96": {"spark.sql.parquet.outputTimestampType": "INT96"},
    "micros": {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"},
    "millis": {
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS",
        "spark.sql.parquet.writeLegacyFormat": "true",
    },
}


@pytest.mark.parametrize(("seed", "writer"), list(enumerate(WRITERS.values())), ids=WRITERS)
def test_random_files_are_read_as_by_spark(
    spark: SparkSession, tmp_path: Path, seed: int, writer: dict[str, str]
) -> None:
    """Written by Arrow and by Spark, in row groups and parts of any size, in any time zone."""
    random = Random(seed)
    arrow, written = tmp_path / "by Arrow ä%20#", tmp_path / "by Spark"
    arrow.mkdir()
    _write_randomly(random, arrow)
    parts = {
        "spark.sql.session.timeZone": random.choice(["America/St_Johns", "UTC"]),
        "spark.sql.files.maxPartitionBytes": random.choice([30_000, 300_000]),
        "spark.sql.files.openCostInBytes": "0",
    }
    with configured(spark, parts | writer):
        events = spark.read.schema(EVERY).parquet(str(arrow))
        events.write.option("parquet.block.size", 100_000).parquet(str(written))

        assert _same(_both(spark, arrow, EVERY)) == []
        assert _same(_both(spark, written, EVERY)) == []


def test_files_of_the_julian_calendar(spark: SparkSession, tmp_path: Path) -> None:
    """Later times in them are read as by Spark, earlier ones are refused."""
    legacy = {
        "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
        "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
        "spark.sql.parquet.outputTimestampType": "INT96",
        "spark.sql.session.timeZone": "America/St_Johns",
    }
    schema = "day date, t timestamp"
    times = {
        "new": "timestamp'1900-01-01 00:00:00Z', timestamp'2024-07-01 12:00:00'",
        "old": "timestamp'1899-12-31 23:59:59Z'",
    }
    with configured(spark, legacy):
        for name, some in times.items():
            frame = spark.sql(f"select explode(array({some})) t").selectExpr(
                "date'1582-10-15'", "t"
            )
            frame.toDF("day", "t").coalesce(1).write.parquet(str(tmp_path / name))

        assert _same(_both(spark, tmp_path / "new", schema)) == []
    (file,) = (tmp_path / "old").glob("*.parquet")
    assert _is_read(file, "day", "date")
    assert not _is_read(file, "t", "timestamp")


def test_columns_of_other_capitals_and_missing_ones(spark: SparkSession, tmp_path: Path) -> None:
    """Names are found as Spark finds them; a column that files lack is null."""
    pq.write_table(pa.table({"n": [1, 2], "Näme": ["a", "b"]}), tmp_path / "x.parquet")
    schema = "N bigint, `nÄMe` string, other double, days array<date>"
    one, other = _both(spark, tmp_path, schema)

    assert one == other
    assert one.num_rows == 2
