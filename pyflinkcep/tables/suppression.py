# SPDX-License-Identifier: Apache-2.0
"""Alerts in memory, of which the first of each period are shown."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

from pyflinkcep.errors import InputError, InvalidArgumentError, check_columns, suggesting
from pyflinkcep.tables.events import Table
from pyflinkcep.tables.rows import table_or_rest
from pyflinkcep.time import duration_ms

if TYPE_CHECKING:
    import pyarrow as pa

RULE, KEY, TIME = "rule", "key", "matchTimestamp"


class HasTable(Protocol):
    """Is a table when asked for it, such as the matches of rules."""

    def toArrow(self) -> pa.Table:
        """Return the table."""


@suggesting
def suppress(
    alerts: Table | HasTable,
    period: timedelta | str,
    key: str | Sequence[str] | None = None,
    timestamp: str = TIME,
) -> pa.Table:
    """
    Show of the alerts of a rule and key the first in each period, and count the others.

    The first alert opens a window; alerts of the same rule and key whose time is less than `period`
    after its time are suppressed, and the next one opens another. Alerts of one time are in the
    order of their column ``matchId``; without it, of their place.

    Parameters
    ----------
    alerts : table, Matches or RuleMatches
        A row for each alert: what :func:`matchMany` returns, a pandas or polars DataFrame, an Arrow
        table, columns by name, or the path of a file.
    period : timedelta or str
        How long alerts are suppressed, at least a millisecond.
    key : str or list of str, optional
        The columns that suppressed alerts have in common beside ``rule``, if they have that; ``[]``
        for none. By default the column ``key``. Null is a value like any other.
    timestamp : str
        The column of an alert's time: timestamps, or epoch milliseconds.

    Returns
    -------
    pyarrow.Table
        The alerts that are shown, in the order given, with the number of others in ``suppressed``.

    Raises
    ------
    InvalidArgumentError
        If the period is less than a millisecond, there is no column ``key`` and none named, or the
        alerts are no table.
    InputError
        If a column is missing, an alert has no time, or a key cannot be compared.

    See Also
    --------
    CEP.suppress : The same on Spark, bounded and on streams.

    Examples
    --------
    >>> from pyflinkcep import Pattern, matchMany
    >>> events = {"at": [0, 4000, 9000, 10_000, 11_000], "n": [9, 8, 9, 8, 1]}
    >>> found = matchMany({"high": Pattern.begin("a").where("n > 7")}, events, timestamp="at")
    >>> suppress(found, "10 seconds").select(["matchTimestamp", "suppressed"]).to_pylist()
    [{'matchTimestamp': 0, 'suppressed': 2}, {'matchTimestamp': 10000, 'suppressed': 0}]
    """
    period_ms = duration_ms(period, "period")
    check_columns("suppress", timestamp=timestamp)
    found = alerts.toArrow() if hasattr(alerts, "toArrow") else table_or_rest(alerts)[0]
    if found is None:
        raise InvalidArgumentError(
            f"suppress: expected a table of alerts, got {type(alerts).__name__}",
            "pass what matchMany returns, or a table; for a DataFrame of Spark CEP.suppress",
        )
    keys = suppression_keys("suppress", key, found.column_names, (str,))
    return _shown(found, period_ms, keys, timestamp)


def suppression_keys(
    function: str, key: Any, columns: Sequence[str], kinds: tuple[type, ...]
) -> list[Any]:
    """Return what alerts that suppress each other have in common: their rule, and a key."""
    if key is None:
        if KEY not in columns:
            raise InvalidArgumentError(
                f"{function}: the alerts have no column {KEY!r} by which to suppress them",
                f"name columns, as in key=['user'], or none, key=[]; they are {list(columns)}",
            )
        key = [KEY]
    own = list(key) if isinstance(key, list | tuple) else [key]
    for one in own:
        if not isinstance(one, kinds):
            raise InvalidArgumentError(
                f"{function}: expected names of columns as key, got {one!r}",
                "write key=['user']",
            )
    is_named = any(isinstance(one, str) and one == RULE for one in own)
    return own if is_named or RULE not in columns else [RULE, *own]


def _shown(alerts: pa.Table, period_ms: int, names: Sequence[str], timestamp: str) -> pa.Table:
    import numpy as np
    import pyarrow as pa

    from pyflinkcep.matching.columns import integers, values_of
    from pyflinkcep.matching.suppression import (
        MATCH_ID,
        SUPPRESSED,
        Suppression,
        by_time,
        with_counts,
    )
    from pyflinkcep.tables.order import Keys, Times, column_of

    if SUPPRESSED in alerts.column_names:
        raise InputError(
            f"suppress: the alerts have a column {SUPPRESSED!r}",
            "rename it: the number of alerts that are suppressed has this name",
        )
    times = Times.of(alerts, timestamp)
    keyed = alerts
    for name in names:
        column = column_of(alerts, name, "key")
        if pa.types.is_map(column.type):  # whose entries have no order
            texts = [None if value is None else repr(sorted(value.items()))
                     for value in values_of(column)]  # fmt: skip
            place = alerts.column_names.index(name)
            keyed = keyed.set_column(place, name, pa.chunked_array([pa.array(texts, pa.string())]))
    codes = Keys.of(keyed, list(names) or None).codes
    if codes is None:
        codes = np.zeros(alerts.num_rows, np.int64)
    has_ids = MATCH_ID in alerts.column_names
    order = by_time(times.exact(), codes, (lambda: alerts.column(MATCH_ID)) if has_ids else None)
    ends = np.flatnonzero(np.diff(codes[order])) + 1
    bounds = np.r_[0, ends, len(order)] if len(order) else np.zeros(1, np.int64)
    per_ms = min(times.per_ms, 1000)
    rows, counts = Suppression(period_ms * per_ms, per_ms).first(times.exact()[order], bounds)
    places = order[rows]
    by_place = np.argsort(places)
    return with_counts(alerts.take(integers(places[by_place])), counts[by_place])
