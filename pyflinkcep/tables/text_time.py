# SPDX-License-Identifier: Apache-2.0
"""Times that events have as texts."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import attrs

from pyflinkcep.errors import InputError, InvalidArgumentError, suggesting
from pyflinkcep.tables.events import Table
from pyflinkcep.tables.values import field_getter

if TYPE_CHECKING:
    import pyarrow as pa


@attrs.frozen
class TextTime:
    """The time of an event whose field has it as text; made by :func:`textTime`."""

    field: str
    format: str | None = None

    def __call__(self, event: Any) -> Any:
        """Return the time of an event; what is no text as it is."""
        return self._time(field_getter(self.field, "timestamp")(event))

    def table(self, events: Table | Iterable[Any]) -> pa.Table:
        """Return events as a table of Arrow in which the field is a timestamp, for any function."""
        import pyarrow as pa

        from pyflinkcep.tables.order import column_of
        from pyflinkcep.tables.recognize import table_of

        table = table_of(events)
        column = column_of(table, self.field, "textTime")
        if not pa.types.is_string(column.type) and not pa.types.is_large_string(column.type):
            return table
        times = {value: self._time(value) for value in column.unique().to_pylist()}
        found = pa.array(map(times.get, column.to_pylist()), pa.timestamp("us", "UTC"))
        return table.set_column(table.column_names.index(self.field), self.field, found)

    def _time(self, text: Any) -> Any:
        if not isinstance(text, str):
            return text
        try:
            if self.format is not None:
                time = datetime.strptime(text.strip(), self.format)
            else:
                time = datetime.fromisoformat(text.strip())
        except ValueError as cause:
            raise InputError(
                f"textTime({self.field!r}): expected {self.format or 'ISO 8601'}, got {text!r}",
                f"write textTime({self.field!r}, '%d.%m.%Y %H:%M'), in the form of the texts",
            ) from cause
        return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


@suggesting
def textTime(field: str, format: str | None = None) -> TextTime:
    """
    Return the `timestamp` of events whose time is a text.

    Parameters
    ----------
    field : str
        The field that has the text.
    format : str, optional
        Its form, as for :meth:`datetime.datetime.strptime`; by default ISO 8601, such as
        ``2024-05-01T10:00:00Z``.

    Returns
    -------
    TextTime
        What ``match``, ``matchSase``, ``trace``, ``whyNot``, ``funnel``, ``compare`` and charts
        take as time. Its ``table(events)`` is the events as a table of Arrow with that field as
        timestamp, which is matched column by column and which ``matchRecognize`` takes. Texts
        without a zone are UTC.

    Raises
    ------
    InvalidArgumentError
        If `field` or `format` is no text.

    Examples
    --------
    >>> from pyflinkcep import Pattern, match
    >>> pattern = Pattern.begin("in").where("what = 'in'").next("out").where("what = 'out'")
    >>> log = [{"at": "01.05.2024 10:30", "what": "out"}, {"at": "01.05.2024 09:00", "what": "in"}]
    >>> time = textTime("at", "%d.%m.%Y %H:%M")
    >>> [len(stages) for stages in match(pattern, log, timestamp=time)]
    [2]
    >>> time.table(log)["at"][0].as_py().isoformat()
    '2024-05-01T10:30:00+00:00'
    """
    if not isinstance(field, str) or not isinstance(format, str | None):
        raise InvalidArgumentError(
            f"textTime: expected a field and its format as texts, got {field!r} and {format!r}",
            "write textTime('ts'), or textTime('ts', '%d.%m.%Y %H:%M')",
        )
    return TextTime(field, format)
