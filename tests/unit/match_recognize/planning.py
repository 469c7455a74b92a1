# SPDX-License-Identifier: Apache-2.0
"""Plans of statements without Spark: everything up to the types of columns."""

from __future__ import annotations

from collections.abc import Sequence

from pyflinkcep.engines.rows.plan import StandardClause, read_clause
from pyflinkcep.match_recognize.checks import check_clause
from pyflinkcep.match_recognize.flink import FlinkClause, read_flink_clause
from pyflinkcep.match_recognize.names import Names, spelled_alike
from pyflinkcep.match_recognize.parser import standard_window_ms, window_ms
from pyflinkcep.match_recognize.statement import Statement


def plans(sql: str, columns: Sequence[str], dialect: str) -> list[FlinkClause | StandardClause]:
    """Return the plan of each clause of a statement."""
    statement, found = Statement(sql), []
    while (use := statement.next_use()) is not None:
        standard = dialect == "standard"
        clause = spelled_alike(use.clause) if standard else use.clause
        names = Names.of(clause, statement.source, columns, use.alias, standard)
        within = (standard_window_ms if standard else window_ms)(clause, statement.source)
        check_clause(clause, names, case_sensitive=False)
        found.append(
            read_clause(clause, names) if standard else read_flink_clause(clause, names, within)
        )
        statement.replaced(use, f"__cep_view_{len(found)}")
    return found
