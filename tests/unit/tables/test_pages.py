# SPDX-License-Identifier: Apache-2.0
"""Pages of Parquet, read in C: the numbers that Arrow reads, or an error."""

from __future__ import annotations

import io
from itertools import pairwise, product
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyflinkcep.kernel.module import compiled_module
from tests.kernel_harness import damaged, needs_kernel

pytestmark = needs_kernel

SIZE = 2_000


def columns(random: np.random.Generator) -> dict[str, Any]:
    """Return numbers that are compressed in many ways, by what they are."""
    few = random.integers(-3, 9, SIZE)
    return {
        "few": few.astype(np.int32),
        "runs": np.repeat(few, 7)[:SIZE].astype(np.int64),
        "one": np.full(SIZE, 7, np.int32),
        "rising": np.arange(SIZE) * 1_000 + (1 << 40),
        "rising by chance": np.cumsum(random.integers(0, 90, SIZE)) - (1 << 50),
        "rising slowly": np.arange(SIZE, dtype=np.int32) // 3,
        "any": random.integers(-(1 << 63), 1 << 63, SIZE),
        "any of 32 bits": random.integers(-(1 << 31), 1 << 31, SIZE).astype(np.int32),
        "periods": np.tile(random.integers(0, 1 << 20, 17), SIZE)[:SIZE],
        "floats": random.random(SIZE),
        "prices": (random.integers(0, 99, SIZE) / 4).astype(np.float32),
    }


def written(table: pa.Table, **options: Any) -> tuple[bytes, Any]:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue(), pq.read_metadata(sink)


def pages_of(data: bytes, metadata: Any, group: int, place: int, width: int) -> Any:
    """Return the pages of a column, and how many values it has."""
    column, own = metadata.row_group(group).column(place), metadata.schema.column(place)
    begin = column.data_page_offset
    if column.has_dictionary_page:
        begin = min(begin, column.dictionary_page_offset)
    module = compiled_module()
    assert module is not None
    stored = data[begin : begin + column.total_compressed_size]
    is_snappy = column.compression == "SNAPPY"
    return stored, module.Pages(stored, width, is_snappy, own.max_definition_level > 0)


FORMS = [
    {"compression": compression, "data_page_version": version, "use_dictionary": dictionary}
    for compression, version, dictionary in product(
        ["snappy", "none"], ["1.0", "2.0"], [True, False]
    )
]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: " ".join(map(str, form.values())))
@pytest.mark.parametrize("nullable", [True, False])
def test_numbers_are_those_of_arrow(form: dict[str, Any], nullable: bool) -> None:
    """In pages and dictionaries of any size, read any number at a time."""
    random = np.random.default_rng(1)
    made = columns(random)
    fields = [pa.field(name, pa.array(own).type, nullable) for name, own in made.items()]
    table = pa.table(list(made.values()), schema=pa.schema(fields))
    for page, dictionary in ((100, 1 << 20), (5_000, 1 << 20), (700, 500)):
        data, metadata = written(
            table, row_group_size=1_500, data_page_size=page, write_batch_size=50,
            dictionary_pagesize_limit=dictionary, **form,
        )  # fmt: skip
        for place, own in enumerate(made.values()):
            found = []
            for group in range(metadata.num_row_groups):
                _, pages = pages_of(data, metadata, group, place, own.itemsize)
                left = metadata.row_group(group).num_rows
                while left:
                    count = min(int(random.integers(1, 900)), left)
                    numbers = np.empty(count, f"int{8 * own.itemsize}")
                    assert pages.read(numbers) == count
                    found.append(numbers)
                    left -= count
                assert pages.read(np.empty(3, numbers.dtype)) == 0
            assert (np.concatenate(found) == own.view(found[0].dtype)).all()


def test_null_is_an_error() -> None:
    """Whatever comes before it is not told either."""
    for version in ("1.0", "2.0"):
        table = pa.table({"n": [*range(99), None, 5]})
        data, metadata = written(table, data_page_version=version)
        _, pages = pages_of(data, metadata, 0, 0, 8)
        with pytest.raises(ValueError, match="of another form"):
            pages.read(np.empty(101, np.int64))
        assert pages.read(np.empty(9, np.int64)) == 0


@pytest.mark.parametrize("form", FORMS, ids=lambda form: " ".join(map(str, form.values())))
def test_damaged_pages_are_an_error(form: dict[str, Any]) -> None:
    """Or other numbers: nothing is read from, or written to, memory that is not theirs."""
    random = np.random.default_rng(2)
    module = compiled_module()
    assert module is not None
    for own in columns(random).values():
        table = pa.table({"n": own[:300]})
        data, metadata = written(table, data_page_size=400, write_batch_size=50, **form)
        stored, _ = pages_of(data, metadata, 0, 0, own.itemsize)
        errors = 0
        for _ in range(60):
            other = damaged(stored, random)
            is_snappy, has_levels = form["compression"] == "snappy", bool(random.random() < 0.9)
            pages = module.Pages(other, own.itemsize, is_snappy, has_levels)
            try:
                assert pages.read(np.empty(300, f"int{8 * own.itemsize}")) <= 300
            except (ValueError, MemoryError):
                errors += 1
        assert errors


def test_a_header_that_promises_too_much_takes_no_memory() -> None:
    """A page is given room only for what its bytes can become."""
    module = compiled_module()
    assert module is not None
    huge = b"\xfe\xff\xff\xff\x0f"  # as an integer of Thrift: 2**31 - 1
    body = b"\xff\xff\xff\xff\x07" + bytes(20)
    head = b"\x15\x00\x15" + huge + b"\x15\x32\x2c\x15\x80\x02\x15\x00\x15\x06\x15\x06\x00\x00"
    resource = pytest.importorskip("resource")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for is_snappy in (True, False):
        with pytest.raises(ValueError, match="of another form"):
            module.Pages(head + body, 8, is_snappy, True).read(np.empty(128, np.int64))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20  # KiB


def test_widths_are_checked() -> None:
    """Numbers have 4 or 8 bytes, and so has the array that they are written to."""
    module = compiled_module()
    assert module is not None
    with pytest.raises(ValueError, match="4 or 8 bytes"):
        module.Pages(b"", 2, True, True)
    with pytest.raises(TypeError, match="with items of 4 bytes"):
        module.Pages(b"", 4, True, True).read(np.empty(1, np.int64))


def texts_of(data: bytes, metadata: Any, place: int) -> tuple[bytes, bytes, bool]:
    """Return the dictionary of a column, all of its pages, and whether they are compressed."""
    column = metadata.row_group(0).column(place)
    begin, end = column.dictionary_page_offset, column.data_page_offset
    whole = data[begin : begin + column.total_compressed_size]
    return data[begin:end], whole, column.compression == "SNAPPY"


WORDS = ["", "a", "ü" * 50, "user-1", "user-12"]


@pytest.mark.parametrize("form", FORMS[::2], ids=lambda form: " ".join(map(str, form.values())))
@pytest.mark.parametrize("nullable", [True, False])
def test_texts_of_dictionaries(form: dict[str, Any], nullable: bool) -> None:
    """Texts are those of Arrow, and each event has the code that is given for its text."""
    random = np.random.default_rng(3)
    module = compiled_module()
    assert module is not None
    words = [*WORDS, *(f"word {number}" for number in range(200))]
    for count in (1, 2, 5, len(words)):
        chosen = [words[at] for at in random.integers(0, count, SIZE)]
        table = pa.table([chosen], schema=pa.schema([pa.field("t", pa.string(), nullable)]))
        data, metadata = written(table, data_page_size=300, write_batch_size=50, **form)
        first, whole, is_snappy = texts_of(data, metadata, 0)
        found = module.texts(first, is_snappy)
        assert found is not None
        ends, texts = np.frombuffer(found[0], np.int32).tolist(), found[1]
        own = [texts[begin:end].decode() for begin, end in pairwise(ends)]
        assert sorted(own) == sorted(set(chosen))
        codes = random.permutation(len(own)).astype(np.int32)
        numbers = np.empty(SIZE, np.int32)
        pages = module.Pages(whole, 4, is_snappy, nullable, codes)
        assert pages.read(numbers) == SIZE
        code_of = dict(zip(own, codes.tolist(), strict=True))
        assert numbers.tolist() == [code_of[text] for text in chosen]
        short = module.Pages(whole, 4, is_snappy, nullable, codes[:-1])
        with pytest.raises(ValueError, match="of another form"):
            short.read(numbers)


@pytest.mark.parametrize("form", FORMS[::2], ids=lambda form: " ".join(map(str, form.values())))
def test_damaged_texts_are_none(form: dict[str, Any]) -> None:
    """Or other texts, within their bytes; and codes of damaged pages are an error, or others."""
    random = np.random.default_rng(4)
    module = compiled_module()
    assert module is not None
    chosen = [WORDS[at] for at in random.integers(0, len(WORDS), 300)]
    data, metadata = written(pa.table({"t": chosen}), data_page_size=200, **form)
    first, whole, is_snappy = texts_of(data, metadata, 0)
    codes, failed = np.arange(len(WORDS), dtype=np.int32), 0
    for _ in range(400):
        damaged = bytearray(first if random.random() < 0.5 else whole)
        for at in random.integers(0, min(len(damaged), 200), random.integers(1, 4)):
            damaged[at] = random.integers(0, 256)
        if random.random() < 0.3:
            del damaged[random.integers(0, len(damaged)) :]
        found = module.texts(bytes(damaged), bool(is_snappy))
        failed += found is None
        if found is not None:
            ends = np.frombuffer(found[0], np.int32)
            assert ends[0] == 0
            assert ends[-1] == len(found[1])
            assert (np.diff(ends) >= 0).all()
        pages = module.Pages(bytes(damaged), 4, is_snappy, True, codes)
        numbers = np.zeros(300, np.int32)
        try:
            pages.read(numbers)
        except (ValueError, MemoryError):
            failed += 1
        else:
            assert numbers.max() < len(WORDS)
    assert failed > 100


def test_codes_have_four_bytes() -> None:
    """Codes are read as numbers of 32 bits, and given as such."""
    module = compiled_module()
    assert module is not None
    with pytest.raises(ValueError, match="4 bytes"):
        module.Pages(b"", 8, True, True, np.zeros(1, np.int32))
    with pytest.raises(TypeError, match="4 bytes"):
        module.Pages(b"", 4, True, True, np.zeros(1, np.int64))
    assert module.texts(b"", True) is None
