# SPDX-License-Identifier: Apache-2.0
"""An id for each match, so that a sink can tell whether it has it already."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from pyflinkcep.errors import InvalidArgumentError

_AS_TEXT = {
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "ignoreNullFields": "false",
}


def matchId(*columns: str) -> Column:
    """
    Return an id of a match: a hash of what it consists of.

    It is the same whether the events are a table or a stream, however they are cut into
    micro-batches, and after a restart. A sink that may see rows twice, or a job that is run again,
    can so replace what it has: ``MERGE`` of Delta, ``ON CONFLICT`` of PostgreSQL. Matches of events
    that are alike in all columns have one id: let events have a column that tells them apart.

    Parameters
    ----------
    *columns : str
        The columns that make the match: of ``toDF()`` the key and the stages. Structs, arrays and
        maps are hashed whole; the session's time zone does not matter.

    Returns
    -------
    Column
        64 hexadecimal digits: SHA-256 of the columns as JSON, times to the microsecond.

    Raises
    ------
    InvalidArgumentError
        Without columns, or if one is not given by name.

    Examples
    --------
    >>> found.toDF().select("user", matchId("user", "fail", "ok").alias("id")).count()
    1
    """
    if not columns or not all(isinstance(name, str) for name in columns):
        raise InvalidArgumentError(
            f"matchId: expected names of columns, got {columns!r}",
            'write matchId("user", "fail", "ok") with the key and the stages',
        )
    return F.sha2(F.to_json(F.struct(*columns), _AS_TEXT), 256)
