# SPDX-License-Identifier: Apache-2.0
"""The user's settings for a stream."""

from __future__ import annotations

from datetime import timedelta

import attrs

from pyflinkcep.errors import InvalidArgumentError
from pyflinkcep.spark.plan.source import EventSource
from pyflinkcep.spark.state.key_groups import KeyGroups
from pyflinkcep.time import duration_ms


@attrs.frozen
class StreamSettings:
    """The user's settings for a stream; see :meth:`pyflinkcep.CEP.pattern`."""

    key_groups: int = 128  # The number of key groups
    on_pattern_change: str = "fail"  # The policy for a checkpoint of another pattern
    # Whether a key may be null, as that of a query may, where null equals nothing.
    allows_null_keys: bool = False
    # How far an event may be ahead of the others; None for any distance.
    max_ahead: timedelta | str | None = None
    # The name of the job in Spark's UI and progress; None for that of the pattern.
    name: str | None = None
    on_null_key: str = "fail"  # What becomes of events without key or time
    # The most tasks that can work at one time; None for an eighth of the key groups.
    parallel_tasks: int | None = None
    partitioned: bool = False  # Whether bounded events are already in one partition for each key
    groups: KeyGroups = attrs.field(init=False, repr=False)  # The partition of the keys
    # How far an event may be ahead of the others, in milliseconds.
    max_ahead_ms: int | None = attrs.field(init=False, repr=False)
    # Whether events without key or time are dropped.
    drops_nulls: bool = attrs.field(init=False, repr=False)

    @groups.default
    def _groups(self) -> KeyGroups:
        return KeyGroups(self.key_groups, self.parallel_tasks)

    @max_ahead_ms.default
    def _max_ahead_ms(self) -> int | None:
        return None if self.max_ahead is None else duration_ms(self.max_ahead, "maxAhead")

    @drops_nulls.default
    def _drops_nulls(self) -> bool:
        return self.on_null_key == "drop"

    def __attrs_post_init__(self) -> None:
        if self.on_pattern_change not in ("fail", "restart"):
            raise InvalidArgumentError(
                f"onPatternChange: expected 'fail' or 'restart', got {self.on_pattern_change!r}",
                'write onPatternChange="fail" or "restart"',
            )
        if self.on_null_key not in ("fail", "drop"):
            raise InvalidArgumentError(
                f"onNullKey: expected 'fail' or 'drop', got {self.on_null_key!r}",
                'write onNullKey="fail" or "drop"',
            )
        if self.name is not None and not (isinstance(self.name, str) and self.name.strip()):
            raise InvalidArgumentError(
                f"name: expected a text, got {self.name!r}", 'write name="failed logins"'
            )

    def about(self, source: EventSource) -> EventSource:
        """Return the events of a job as these settings say."""
        is_stream = source.dataframe.isStreaming
        if self.drops_nulls and not is_stream:  # the operator of a stream counts them
            is_null = source.is_null(self.allows_null_keys)
            source = attrs.evolve(source, dataframe=source.dataframe.where(~is_null))
        is_guarded = self.max_ahead is not None and is_stream
        return attrs.evolve(source, is_guarded=is_guarded, name=self.name)

    def check_null_output(self) -> None:
        """Refuse an output for events without key or time if they fail the job."""
        if not self.drops_nulls:
            raise InvalidArgumentError(
                'sideOutputNullData() with onNullKey="fail"',
                'write onNullKey="drop" in CEP.pattern',
            )

    def numbered(self, number: int) -> StreamSettings:
        """Return the settings of one of several patterns; the first has the name itself."""
        if self.name is None or number == 1:
            return self
        return attrs.evolve(self, name=f"{self.name} ({number})")

    def check_ahead_output(self) -> None:
        """Refuse an output for events too far ahead if none is."""
        if self.max_ahead is None:
            raise InvalidArgumentError(
                "sideOutputAheadData() without maxAhead, so no event is too far ahead",
                "write CEP.pattern(events, pattern, maxAhead=timedelta(hours=1))",
            )
