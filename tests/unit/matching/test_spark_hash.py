# SPDX-License-Identifier: Apache-2.0
"""Numbers of keys are those that Spark's xxhash64 gave, with the compiled kernel and without."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pyflinkcep.kernel.module import compiled_module
from pyflinkcep.matching.spark_hash import is_hashed, spark_hash
from tests.kernel_harness import needs_kernel
from tests.seeds import each_seed

both_paths = pytest.mark.usefixtures("each_path")

NUMBER = pa.decimal128(18, 2)
TIME = pa.timestamp("us")

# what Spark 4.3.0 answered
RECORDED: list[tuple[pa.DataType, Any, int]] = [
    (pa.bool_(), True, -6698625589789238999),
    (pa.bool_(), False, 3614696996920510707),
    (pa.int8(), 0, 3614696996920510707),
    (pa.int8(), -128, 4160238337661960656),
    (pa.int8(), 127, 8632298611707923906),
    (pa.int16(), -1, 2017008487422258757),
    (pa.int16(), 32767, 8952525448871805501),
    (pa.int32(), 1, -6698625589789238999),
    (pa.int32(), -1, 2017008487422258757),
    (pa.int32(), 2**31 - 1, 1508894993788531228),
    (pa.int32(), -(2**31), 2073849959933241805),
    (pa.int64(), 0, -5252525462095825812),
    (pa.int64(), 1, -7001672635703045582),
    (pa.int64(), -1, 3858142552250413010),
    (pa.int64(), 2**63 - 1, -3246596055638297850),
    (pa.int64(), -(2**63), -8619748838626508300),
    (pa.date32(), date(1970, 1, 1), 3614696996920510707),
    (pa.date32(), date(2024, 2, 29), 4183429117450946631),
    (pa.date32(), date(1, 1, 1), 6773727150484150602),
    (TIME, datetime(2024, 2, 29, 12, 34, 56, 789012), -2021281541725647388),
    (TIME, datetime(1969, 12, 31, 23, 59, 59, 999999), 3858142552250413010),
    (pa.timestamp("us", "UTC"), datetime(1969, 12, 31, 23, 59, 59, 999999), 3858142552250413010),
    (pa.string(), "", -7444071767201028348),
    (pa.string(), "a", -8582455328737087284),
    (pa.string(), "Grüße, 世界 🎉", 4840393559418948366),
    (pa.binary(), b"", -7444071767201028348),
    (pa.binary(), b"\x00", -8959994473701255385),
    (pa.binary(), b"\xff\x00\xff", -6655079901205739233),
    (NUMBER, Decimal("1.10"), 214815589036292259),
    (NUMBER, Decimal("-1.10"), 550596214553140873),
    (NUMBER, Decimal("-0.01"), 3858142552250413010),
    (pa.decimal128(18, 0), Decimal(10**18 - 1), 2162198894918931945),
]

DATA = bytes((37 * n + 200) % 256 for n in range(70))
BY_LENGTH = [
    -7444071767201028348, -2385420527237015744, -4211372384154955759, 725622989649083892,
    -1979424353419534526, 7102751641825766534, 6450129818667649292, 2705523570656914848,
    -1756639205466027772, 6216317357729403682, -8032336234781226638, 3135408999474607187,
    838790318834535276, -8245936151518583495, 139531285486617766, -6315639585171627163,
    3059702145019032675, -7647847440135883893, -7138290644209977921, 1531320632503365229,
    5617717028303695752, 6489543340113853671, -819246487889480126, -145230731246811731,
    155125124284580287, -2320562948213612437, -1127544340715206957, -4093721932808742111,
    -8969862360235795848, -8112857420244948671, 8210687410045461850, 5107606028163442169,
    4956426566639019410, 2416384264124786200, -329915371892355326, -232536449524171676,
    8728973846356849891, -2854061678612120949, -64915730413913300, 6041559748341974278,
    3608548578799736489, 5543335673490226993, 650503260053979746, -1298570750858833911,
    -7532714766125064296, -6880706450002733828, 5993664928890875464, -4993337208643200953,
    -749346441266864003, 3961881676161836764, -1365692427075995789, 8786648178046394960,
    5131194600129334447, 2267636377427666896, -7008158478027156721, 7528048928019604560,
    3718754554973386302, -8213374812394977338, 1318602302654692514, 1831655289378113375,
    -2081782184141876056, -2354512503767266674, -1956769633539604158, 6690007585754425391,
    6183639671459033888, -7911255450881407554, -3399070985533418882, -3917661820326799785,
    -7345297602487927320, 7994093056126126972, 8899294523168934868,
]  # fmt: skip
"""What Spark 4.3.0 answered for the first 0 to 70 bytes of `DATA`."""


@both_paths
@pytest.mark.parametrize(("type_", "value", "expected"), RECORDED)
def test_one_value(type_: pa.DataType, value: Any, expected: int) -> None:
    """A value of each type has Spark's number, between others and NULL, and in a dictionary."""
    column = pa.array([None, value, None, value], type_)

    assert is_hashed(type_)
    assert spark_hash([column]).tolist() == [42, expected, 42, expected]
    assert spark_hash([column.slice(1, 2)]).tolist() == [expected, 42]
    assert spark_hash([column.dictionary_encode()]).tolist() == [42, expected, 42, expected]


@both_paths
@pytest.mark.parametrize("type_", [pa.binary(), pa.large_binary()])
def test_texts_of_each_length(type_: pa.DataType) -> None:
    """Whole blocks of 32 bytes, words of 8 and of 4, and single bytes are all hashed."""
    column = pa.array([DATA[:size] for size in range(71)], type_)

    assert spark_hash([column]).tolist() == BY_LENGTH
    assert spark_hash([column.slice(33)]).tolist() == BY_LENGTH[33:]


def _rows(types: list[pa.DataType], *values: Any) -> list[int]:
    """Return the number of one row, whose values have types; a NULL row stands before it."""
    columns = [pa.array([None, value], type_) for type_, value in zip(types, values, strict=True)]
    return spark_hash(columns).tolist()


@both_paths
def test_several_columns() -> None:
    """Each column goes on from those before it, and a NULL changes nothing."""
    text = pa.string()
    assert _rows([pa.int32(), text, pa.int64()], 1, "a", 2) == [42, 3570513804248678426]
    assert _rows([pa.int32(), text], None, "a") == [42, -8582455328737087284]
    several = [text, text, pa.bool_(), pa.decimal128(3, 2)]
    assert _rows(several, "a", None, True, Decimal("-1.10")) == [42, -7375100385096686523]
    mixed = [pa.binary(), pa.date32(), text]
    assert _rows(mixed, b"", date(1970, 1, 1), "b") == [42, 6023168590488393403]
    assert _rows([pa.large_string(), text], "", "") == [42, 6372822119346140258]


def _random(rng: np.random.Generator, size: int) -> dict[str, pa.Array]:
    """Return columns of all forms that a value can have, with NULLs."""
    nulls = rng.random(size) < 0.2
    texts = [("é" * 40)[: rng.integers(0, 40)] for _ in range(size)]
    words = pa.array(rng.choice(["", "a", "bc", DATA.hex()], size), mask=nulls)
    numbers = rng.integers(-(2**62), 2**62, size)
    codes = pa.array(rng.integers(0, 4, size), pa.int8(), mask=nulls)
    return {
        "text": pa.array(texts, mask=nulls),
        "large": pa.array(texts, pa.large_string(), mask=nulls),
        "dictionary": words.dictionary_encode(),
        "dictionary with NULL": pa.DictionaryArray.from_arrays(codes, ["a", None, "b", "a"]),
        "longer dictionary": pa.DictionaryArray.from_arrays(codes, [*map(str, range(size + 5))]),
        "flags": pa.array(numbers % 2 == 0, mask=nulls),
        "short": pa.array((numbers % 99).astype(np.int16), mask=nulls),
        "long": pa.array(numbers, mask=nulls),
        "decimal": pa.array([Decimal(int(n)) / 4 for n in numbers % 99], NUMBER, mask=nulls),
        "missing": pa.nulls(size, pa.string()),
    }


@both_paths
@each_seed(4)
def test_forms_of_columns(seed: int) -> None:
    """Slices, pieces and dictionaries of a column, first or later, have the numbers of its values."""
    rng = np.random.default_rng(seed)
    size = 60
    for name, column in _random(rng, size).items():
        values = column.to_pylist()
        plain = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        one_by_one = [int(spark_hash([pa.array([value], plain)])[0]) for value in values]
        begin, middle, end = sorted(rng.integers(0, size, 3).tolist())
        pieces = pa.chunked_array([column[begin:middle], column[:0], column[middle:end]])
        first = pa.array(np.arange(size) % 5)
        both = spark_hash([first, pa.array(values, plain)])

        assert spark_hash([column]).tolist() == one_by_one, name
        assert spark_hash([pieces]).tolist() == one_by_one[begin:end], name
        assert spark_hash([first, column]).tolist() == both.tolist(), name
        assert spark_hash([first[begin:end], pieces]).tolist() == both[begin:end].tolist(), name


@both_paths
def test_a_long_dictionary_of_short_codes() -> None:
    """All codes of 8 bits can be taken, with NULLs besides."""
    words = [*map(str, range(128))]
    codes = pa.array([127, None, 0] * 50, pa.int8())

    column = pa.DictionaryArray.from_arrays(codes, words)
    assert spark_hash([column]).tolist() == spark_hash([column.cast(pa.string())]).tolist()


@both_paths
@pytest.mark.parametrize("rows", [[], [pa.array([], pa.string())]])
def test_no_rows(rows: list[pa.Array]) -> None:
    """A column without rows has no numbers, whether or not it has a piece."""
    assert spark_hash([pa.chunked_array(rows, pa.string()), pa.array([], pa.int8())]).tolist() == []


def test_other_types() -> None:
    """Numbers are known of no other types than Spark's own that keys are hashed by as they are."""
    others = [
        pa.float32(), pa.float64(), pa.decimal128(19, 2), pa.list_(pa.int32()), pa.uint8(),
        pa.null(), pa.struct([("a", pa.int32())]), pa.timestamp("ns"), pa.date64(), pa.duration("us"),
        pa.dictionary(pa.int32(), pa.float64()),
    ]  # fmt: skip
    assert not any(map(is_hashed, others))
    assert is_hashed(pa.dictionary(pa.int32(), pa.string()))


@needs_kernel
def test_kernel_and_plain_path_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of longer texts too, and of any numbers, chained."""
    rng = np.random.default_rng(5)
    lengths = rng.integers(0, 300, 200)
    columns = [*_random(rng, 200).values(), pa.array([rng.bytes(int(size)) for size in lengths])]
    answers = []
    for switch in "10":
        monkeypatch.setenv("PYFLINKCEP_KERNEL", switch)
        answers.append([spark_hash(columns[at:]).tolist() for at in range(len(columns))])

    assert answers[0] == answers[1]


@needs_kernel
def test_what_does_not_fit_is_refused() -> None:
    """C reads no text outside of its data, and as many values as there are seeds."""
    module = compiled_module()
    assert module is not None
    seeds = np.full(2, 42, np.uint64)

    for bounds in ([0, 1], [0, 1, 2, 3], [0, 3, 2], [-1, 0, 1], [0, 1, 4]):
        for width in (np.int32, np.int64):
            values = np.array(bounds, width)
            with pytest.raises(ValueError, match="do not fit"):
                module.hash_values(values, values.itemsize, b"abc", seeds)
    for values in (np.zeros(3, np.int64), np.zeros(1, np.int32)):
        with pytest.raises(ValueError, match="do not fit"):
            module.hash_values(values, values.itemsize, None, seeds)
    with pytest.raises(ValueError, match="do not fit"):
        module.hash_values(np.zeros(2, np.int16), 2, None, seeds)
