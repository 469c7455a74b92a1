# SPDX-License-Identifier: Apache-2.0
"""Queued events bring along what Spark computed for match expressions, by its SQL."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyflinkcep import Pattern
from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.errors import PatternChangedError
from pyflinkcep.expressions.compiler import compiled
from pyflinkcep.expressions.numbers import Digits
from pyflinkcep.expressions.program import CompiledExpressions, Field, Kind
from pyflinkcep.expressions.tree import MatchExpression
from pyflinkcep.sase import parse
from pyflinkcep.sase.analysis import AnalysedQuery
from pyflinkcep.spark.state.fingerprint import changes, requeued

QUEUED = pa.table({"id": [1, 2], "__cep_value0": [0.5, None], "__cep_value1": [7, 8]})
FINGERPRINT = {"value 0": "price", "value 1": "volume", "window": "5 ms"}
NFA = NFACompiler.compile(Pattern.begin("a"))


def expressions(*texts: str) -> CompiledExpressions:
    """Return match expressions that need these fields."""
    return CompiledExpressions(tuple(Field(text, Kind.BIGINT) for text in texts), (), {}, True)


def test_fields_are_found_by_their_sql() -> None:
    """The number of a field may change with the pattern; what is not needed is dropped."""
    schema = pa.schema([("id", pa.int64()), ("__cep_value0", pa.int64())])
    table = requeued(QUEUED, schema, FINGERPRINT, NFA, expressions("volume"))

    assert table.to_pydict() == {"id": [1, 2], "__cep_value0": [7, 8]}
    without = pa.schema([("id", pa.int64())])
    assert requeued(QUEUED, without, FINGERPRINT, NFA).column_names == ["id"]


def test_fields_that_were_not_computed_are_refused() -> None:
    """Nothing can be made up for events that Spark was not asked about."""
    schema = pa.schema([("id", pa.int64()), ("__cep_value0", pa.int64())])

    with pytest.raises(
        PatternChangedError, match=r"2 buffered events were never evaluated against 'qty', which a"
    ):
        requeued(QUEUED, schema, FINGERPRINT, NFA, expressions("qty"))


@pytest.mark.parametrize(
    ("condition", "digits", "said"),
    [
        ("b.p > a.p", (20, 0), ["value 0: '`p`' is now '`p` as decimal(20,0)'"]),
        ("b.p > a.p", (10, 2), []),
        ("b.n > a.n", (20, 0), []),
        ("b.q > sum(a[].p)", (10, 2), ["value 1: '`p`' is now '`p` as decimal(10,2) exact'"]),
    ],
)
def test_a_query_whose_decimals_were_stored_as_doubles_is_refused_by_name(
    condition: str, digits: tuple[int, int], said: list[str]
) -> None:
    """Its checkpoint by an earlier build is another one; those of other queries are the same."""
    loop = "A+ a[]" if "[]" in condition else "A a"
    text = f"PATTERN SEQ({loop}, B b) WHERE skip_till_next_match AND {condition} WITHIN 1 s"
    atoms = NFACompiler.compile(AnalysedQuery(parse(text)).pattern).atoms
    named = [(a.stage, a.condition) for a in atoms if isinstance(a.condition, MatchExpression)]

    def facts(kind: Kind) -> dict[str, str]:
        kinds = {"`p`": kind, "`n`": Kind.BIGINT, "`q`": Kind.DOUBLE}
        fields = compiled(named, kinds, ansi=True).fields
        return {f"value {number}": field.stored for number, field in enumerate(fields)}

    before, now = facts(Kind.DOUBLE), facts(Kind.decimal(Digits(*digits)))
    assert before
    assert changes(before, now) == said
