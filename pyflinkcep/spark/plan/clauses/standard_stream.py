# SPDX-License-Identifier: Apache-2.0
"""A clause with the standard's meaning on a stream: what can be decided in time, or refused."""

from __future__ import annotations

import json

import attrs
from pyspark.sql.types import LongType, TimestampNTZType, TimestampType

from pyflinkcep.engines.rows.program import Op
from pyflinkcep.errors import CepError, InputError, NotSupportedError
from pyflinkcep.spark.arrow.layout import Layout
from pyflinkcep.spark.matching.order import OrderColumns
from pyflinkcep.spark.plan.clauses.input import order_after_time, own_name
from pyflinkcep.spark.plan.clauses.matched import Matched
from pyflinkcep.spark.plan.clauses.standard_job import LANGUAGE, StandardJob
from pyflinkcep.spark.plan.held_back import HeldBack
from pyflinkcep.spark.plan.job import Prepared
from pyflinkcep.spark.plan.settings import StreamSettings
from pyflinkcep.spark.plan.source import EventSource
from pyflinkcep.spark.plan.stream import StreamJob, StreamOutput, watermark_of
from pyflinkcep.spark.state.fingerprint import layout_facts
from pyflinkcep.spark.state.key_groups import KeyGroups
from pyflinkcep.spark.worker.standard_stream import ClauseMatching
from pyflinkcep.spark.worker.unpack import RowsTask

__all__ = ["run_stream"]


def run_stream(job: StandardJob, settings: StreamSettings) -> Matched:
    """
    Plan a clause on a stream.

    Parameters
    ----------
    job : StandardJob
        The clause.
    settings : StreamSettings
        The number of key groups, and the policy for a checkpoint of another clause.

    Raises
    ------
    CepError
        If the clause needs what is known only at the end of the input, or rows have no order in
        time.
    """
    _check_decidable(job)
    dataframe, clause = job.dataframe, job.read.clause
    time = _time_column(job)
    order = order_after_time(dataframe, clause)
    keys = [own_name(dataframe, key.text) for key in clause.partition]
    events = job.arguments.added_to(dataframe)
    source = EventSource.of(events, keys, time, str(clause.pattern))
    kept = [*keys, time, *([] if order is None else order.names), *job.rows.shown]
    kept += job.rows.measures.values()
    source = attrs.evolve(source, kept=tuple(dict.fromkeys(kept)), language=LANGUAGE)
    source = settings.about(source)
    stream = _stream(job, source, order, settings)
    watermark = watermark_of(source)
    return Matched(
        job.output(stream.run()),
        job.name,
        flush=lambda checkpoint, operator: job.output(stream.flush(checkpoint, operator)),
        behind=lambda milliseconds: job.output(stream.behind(milliseconds).run()),
        held_ms=stream.output.held_back.events_ms,
        delay_ms=stream.delay_ms,
        watermark=watermark,
    )


def _stream(
    job: StandardJob, source: EventSource, order: OrderColumns | None, settings: StreamSettings
) -> StreamJob:
    conditions = job.condition_columns()
    layout = source.layout((), always_hash=True)
    layout = attrs.evolve(layout, payload=(*layout.payload, *conditions))
    events = source.prepare({**source.key_hash(always=True), **conditions})
    bound = None if job.plan.looks_back else job.plan.within or None
    return StreamJob.of(
        source,
        attrs.evolve(settings, allows_null_keys=True),
        Prepared(events, layout),
        ClauseMatching(rows=job.rows, order=order),
        _fingerprint(job, layout, order, settings.groups),
        StreamOutput(RowsTask(), job.rows.schema, HeldBack(bound, None)),
    )


def _fingerprint(
    job: StandardJob, layout: Layout, order: OrderColumns | None, key_groups: KeyGroups
) -> dict[str, str]:
    """Return what must stay the same for stored state to be reused."""
    plan, clause = job.plan, job.read.clause
    defined = {name: expression.text for name, expression in plan.conditions.items()}
    return {
        "pattern": str(clause.pattern),
        "after match": f"{plan.skip.to.name} {plan.skip.variable or ''}".strip(),
        "window": f"{plan.within} ms",
        "rows per match": plan.rows.name,
        "subsets": json.dumps(plan.subsets),
        **{f"DEFINE {name}": text for name, text in defined.items()},
        "rows looked back": str(plan.looks_back),
        "counts rows": str(plan.counts_rows),
        "order": "" if order is None else str(order),
        **layout_facts(layout, key_groups),
        "computed columns": json.dumps([job.arguments.sql, list(job.kinds)]),
    }


# --- what is refused


def _check_decidable(job: StandardJob) -> None:
    """Refuse what reads rows after a match: only the end of the input decides it."""
    if any(op is Op.END for op, _, _ in job.plan.program.code):
        raise _refused(job, "$ on a stream", job.read.clause.pattern_span)
    texts = [(f"DEFINE {d.variable}", d.condition) for d in job.read.clause.definitions]
    texts += [(f"measure {m.name}", m.expression) for m in job.read.clause.measures]
    read = {**job.read.conditions, **job.read.measures}
    for where, text in texts:
        expression = read.get(where.partition(" ")[2])
        if expression is None:
            continue
        if any(leaf.shift > 0 for leaf in expression.leaves):
            raise _refused(job, f"{where}: NEXT on a stream", text.span)
        folds = [leaf for leaf in expression.leaves if leaf.function == "fold"]
        if folds and where.startswith("measure"):
            name = str(folds[0].pieces[0]).upper()
            raise job.read.names.source.error(
                f"{where}: {name} on a stream, where COUNT, SUM, AVG, MIN, MAX and ARRAY_AGG are "
                "computed",
                "write ARRAY_AGG and a function of arrays: size(array_distinct(ARRAY_AGG(A.x))), "
                "filter(ARRAY_AGG(A.x), x -> x > 0), aggregate(ARRAY_AGG(A.x), …)",
                *text.span,
                NotSupportedError,
            )


def _refused(job: StandardJob, what: str, span: tuple[int, int]) -> CepError:
    return job.read.names.source.error(
        f"{what}: later rows decide it",
        "write the stream to a table and match that, or add one more variable at the end",
        *span,
        NotSupportedError,
    )


def _time_column(job: StandardJob) -> str:
    """Return the first column of ORDER BY, which must be the event time."""
    clause, source = job.read.clause, job.read.names.source
    what = 'dialect="standard" on a stream: ORDER BY must begin with the event time, ascending'
    if not clause.order:
        raise source.error(what, "write ORDER BY ts", *clause.pattern_span, InputError)
    first = clause.order[0]
    name = own_name(job.dataframe, first.name.text)
    type_ = job.dataframe.schema[name].dataType
    if first.descending or not isinstance(type_, TimestampType | TimestampNTZType | LongType):
        shown = "descending" if first.descending else type_.simpleString()
        hint = f"put the watermarked time first: {name} is {shown}"
        raise source.error(what, hint, *first.name.span, InputError)
    return name
