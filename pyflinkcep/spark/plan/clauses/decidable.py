# SPDX-License-Identifier: Apache-2.0
"""What of a clause with the standard's meaning a stream can decide in time."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import DataFrame
from pyspark.sql.types import LongType, TimestampNTZType, TimestampType

from pyflinkcep.engines.rows.plan import StandardClause
from pyflinkcep.engines.rows.program import Op
from pyflinkcep.errors import CepError, InputError, NotSupportedError
from pyflinkcep.match_recognize.expressions import Expression
from pyflinkcep.spark.plan.analysis import own_name

__all__ = ["check_decidable", "stream_time"]


def check_decidable(read: StandardClause) -> None:
    """
    Refuse what only the end of the input decides.

    Raises
    ------
    NotSupportedError
        If the clause reads rows after a match, or all rows of one.
    """
    if any(op is Op.END for op, _, _ in read.program.code):
        raise _refused(read, "$ on a stream", read.clause.pattern_span)
    for what, name, expression in _expressions(read):
        where = f"{what} {name}"
        if any(leaf.shift > 0 for leaf in expression.leaves):
            raise _refused(read, f"{where}: NEXT on a stream", expression.span)
        fold = next((leaf.fold for leaf in expression.leaves if leaf.fold is not None), None)
        if fold is not None and what == "measure":
            raise read.names.source.error(
                f"{where}: {fold.name.upper()} on a stream, where COUNT, SUM, AVG, MIN, "
                "MAX and ARRAY_AGG are computed",
                "write ARRAY_AGG and a function of arrays: size(array_distinct(ARRAY_AGG(A.x))), "
                "filter(ARRAY_AGG(A.x), x -> x > 0), aggregate(ARRAY_AGG(A.x), …)",
                *expression.span,
                NotSupportedError,
            )


def _expressions(read: StandardClause) -> Iterator[tuple[str, str, Expression]]:
    """Yield DEFINE and MEASURES, each with what it is and its name."""
    for name, expression in read.conditions.items():
        yield "DEFINE", name, expression
    for name, expression in read.measures.items():
        yield "measure", name, expression


def _refused(read: StandardClause, what: str, span: tuple[int, int]) -> CepError:
    return read.names.source.error(
        f"{what}: later rows decide it",
        "write the stream to a table and match that, or add one more variable at the end",
        *span,
        NotSupportedError,
    )


def stream_time(dataframe: DataFrame, read: StandardClause) -> str:
    """
    Return the first column of ORDER BY, which must be the event time.

    Raises
    ------
    InputError
        If it is not.
    """
    clause, source = read.clause, read.names.source
    what = 'dialect="standard" on a stream: ORDER BY must begin with the event time, ascending'
    if not clause.order:
        raise source.error(what, "write ORDER BY ts", *clause.pattern_span, InputError)
    first = clause.order[0]
    name = own_name(dataframe, first.name.text)
    type_ = dataframe.schema[name].dataType
    if first.descending or not isinstance(type_, TimestampType | TimestampNTZType | LongType):
        shown = "descending" if first.descending else type_.simpleString()
        hint = f"put the watermarked time first: {name} is {shown}"
        raise source.error(what, hint, *first.name.span, InputError)
    return name
