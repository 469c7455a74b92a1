# SPDX-License-Identifier: Apache-2.0
"""Footers of Parquet, read in C: what Arrow reads, or nothing."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyflinkcep.kernel.module import compiled_module
from tests.kernel_harness import damaged, needs_kernel

pytestmark = needs_kernel

TABLE = pa.table(
    {
        "a": pa.array([None, 3, -(1 << 31), (1 << 31) - 1], pa.int32()),
        "b": pa.array([5, 1 << 62, -(1 << 63), 0]),
        "c": [0.5, float("nan"), -0.0, 1.0],
        "d": pa.array([1, 2, 3, 4], pa.timestamp("ms", "UTC")),
        "e": ["x", None, "z", "y" * 99],
        "f": [{"g": 1, "h": [1, 2]}] * 4,
        "i": pa.array([1, 2, 3, 1 << 30], pa.int32()).view(pa.date32()),
    }
)
ENCODINGS = {"PLAIN": 0, "PLAIN_DICTIONARY": 2, "RLE": 3, "BIT_PACKED": 4, "RLE_DICTIONARY": 8}
CODECS = {"UNCOMPRESSED": 0, "SNAPPY": 1, "GZIP": 2, "ZSTD": 6}


def footer_of(**options: Any) -> tuple[bytes, Any]:
    sink = io.BytesIO()
    pq.write_table(TABLE, sink, row_group_size=3, **options)
    data = sink.getvalue()
    length = int.from_bytes(data[-8:-4], "little")
    return data[-8 - length : -8], pq.read_metadata(sink)


def row_groups(footer: bytes, places: tuple[int, ...]) -> Any:
    module = compiled_module()
    assert module is not None
    return module.row_groups(footer, places)


@pytest.mark.parametrize(
    "form", [*product(["none", "snappy", "zstd"], [True, False], [True, False])]
)
def test_what_is_told_is_what_arrow_tells(form: tuple[str, bool, bool]) -> None:
    """Of any columns, in any order, of files with and without statistics and an index of pages."""
    compression, dictionary, more = form
    footer, metadata = footer_of(
        compression=compression, use_dictionary=dictionary, write_statistics=more,
        write_page_index=more, data_page_version="2.0" if more else "1.0",
    )  # fmt: skip
    places = (3, 0, 1, 2, 4, 5, 6, 7)
    found = row_groups(footer, places)
    assert [rows for rows, _ in found] == [3, 1]
    for number, (_, columns) in enumerate(found):
        for place, own in zip(places, columns, strict=True):
            column = metadata.row_group(number).column(place)
            told = column.statistics
            ends = None
            if told is not None and told.has_min_max and column.physical_type in ("INT32", "INT64"):
                ends = (told.min_raw, told.max_raw)
            assert own == (
                CODECS[column.compression],
                sum(1 << ENCODINGS[name] for name in set(column.encodings)),
                column.num_values,
                column.total_compressed_size,
                column.data_page_offset,
                column.dictionary_page_offset or 0,
                told.null_count if told is not None and told.has_null_count else -1,
                ends,
            )


def test_columns_that_are_not_there_are_damage() -> None:
    """Whoever asks for a place has it from the names of the same footer."""
    footer, _ = footer_of()
    assert row_groups(footer, (0, 9)) is None
    assert row_groups(footer, ()) == [(3, ()), (1, ())]
    assert row_groups(b"", (0,)) is None
    assert row_groups(b"\x00", (0,)) == []
    with pytest.raises(OverflowError):
        row_groups(footer, (-1,))


def test_lists_in_lists_have_an_end() -> None:
    """Footers that nest without end, or promise more items than they have bytes, are damaged."""
    for nested in (
        b"\x19" * 100_000,
        b"\x19\xf9\xff\xff\xff\xff\x7f",
        b"\x19\xf1\xff\xff\xff\xff\x7f",
    ):
        assert row_groups(b"\x29" + nested[1:], (0,)) is None
        assert row_groups(b"\x49" + nested[1:], (0,)) is None
        assert row_groups(b"\x49\x1c" + nested, (0,)) is None


def test_damaged_footers_are_no_error() -> None:
    """They tell nothing, or something else: nothing is read from memory that is not theirs."""
    random = np.random.default_rng(1)
    footer, _ = footer_of(write_page_index=True)
    unknown = 0
    for _ in range(2_000):
        found = row_groups(damaged(footer, random), (0, 2, 4))
        unknown += found is None
        assert found is None or len(found) <= len(footer)
    assert 0 < unknown < 2_000


def test_a_damaged_footer_does_not_end_the_process(tmp_path: Path) -> None:
    """Arrow's view of a compression that it does not know aborts Python: no view is asked for."""
    path = tmp_path / "events.parquet"
    events = pa.table({"kind": [1, 2, 1], "at": [1_000, 2_000, 3_000], "note": ["x"] * 3})
    pq.write_table(events, path, compression="gzip")
    data = path.read_bytes()
    damaged = data.replace(b"\x04kind\x15\x04", b"\x04kind\x15\x30")
    assert damaged != data
    path.write_bytes(damaged)
    program = f"""
from pyflinkcep import Pattern, match
from pyflinkcep.errors import InputError
try:
    match(Pattern.begin("a").where("kind = 1"), {os.fspath(path)!r}, timestamp="at")
except InputError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "cannot be read as Parquet" in done.stdout
