# SPDX-License-Identifier: Apache-2.0
"""The output of MATCH_RECOGNIZE on files that do not fit memory."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pyflinkcep.engines.flink.operator import PartialMatchLimit
from pyflinkcep.match_recognize.names import Names
from pyflinkcep.match_recognize.tree import Clause
from pyflinkcep.matching.columns import Ints
from pyflinkcep.matching.spill import SpillFile
from pyflinkcep.tables.clauses import FlinkJob, standard_output
from pyflinkcep.tables.matches import OutputTable
from pyflinkcep.tables.spilled_match import SpilledMatch
from pyflinkcep.tables.spilled_rows import OutputPart, OutputWriter, Results, Run
from pyflinkcep.tables.spilling import Spilling


def spilled_flink_output(
    events: Spilling,
    clause: Clause,
    names: Names,
    limit: PartialMatchLimit | None,
    threads: int,
    schema: pa.Schema,
) -> OutputTable:
    """Return the output of a clause in Flink's dialect; `schema` is that of no events."""
    job, key = FlinkJob.of(events.nothing, clause, names), clause.keys or None
    with job.analysing():
        match = SpilledMatch(job.read.pattern, events, job.time, key, limit, threads, job.ties)
        matches, dropped = match.rows()
    run, writer = Run(SpillFile(), OutputPart), OutputWriter(schema)
    for part in matches.results.parts():
        output = job.output(part.events, part.found(matches.stages), matches.times)
        writer.write(run, output, *part.places)
    return OutputTable.spilled(writer.output(Results([run], OutputPart)), dropped)


def spilled_standard_output(
    events: Spilling, clause: Clause, names: Names, threads: int, schema: pa.Schema
) -> OutputTable:
    """Return the output of a clause in the standard's dialect; `schema` is that of no events."""
    writer = OutputWriter(schema)

    def match(rows: pa.Table, places: Ints, run: Run[OutputPart]) -> int:
        found = standard_output(rows, clause, names, threads)
        first = places[found.first_rows]  # keys are in the order of their first rows
        writer.write(run, found.table, np.zeros_like(first), first)
        return found.keys

    results = events.found(clause.keys, match, OutputPart)
    return OutputTable.spilled(writer.output(results))
