# SPDX-License-Identifier: Apache-2.0
"""The machine on columns in the kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from pyflinkcep.engines.latest.columns import FoundRuns, Ints, KeyStates, LatestColumns, Offers
from pyflinkcep.engines.latest.rule import LatestRule
from pyflinkcep.errors import StateFormatError
from pyflinkcep.kernel.module import compiled_module, naming_memory_errors

if TYPE_CHECKING:
    from pyflinkcep.kernel import _kernel

_DOING = "runs of rules are kept"


def latest_rules(rules: Sequence[LatestRule]) -> RunningRules:
    """Return rules ready to run on columns: in the kernel, if there is one."""
    module = compiled_module()
    if module is None:
        return LatestColumns(rules)
    specs = tuple((-1 if rule.maxspan is None else rule.maxspan, rule.roles) for rule in rules)
    with naming_memory_errors(_DOING):
        return KernelColumns(rules, module.Latest(specs))


@attrs.frozen(eq=False)
class KernelColumns:
    """Rules over events in columns, as `LatestColumns`."""

    rules: Sequence[LatestRule]
    _latest: _kernel.Latest

    def process(
        self, times: Ints, offers: Offers, first: int = 0, *, is_last: bool = False
    ) -> FoundRuns:
        """Offer events to rules, and return the matches that this decides."""
        with naming_memory_errors(_DOING):
            found = self._process(times, offers, first, is_last)
            if found is None:  # the events of a step are not in order
                order = np.argsort(offers.events, kind="stable")
                by_event = Offers(offers.events[order], offers.steps[order], offers.keys[order])
                found = self._process(times, by_event, first, is_last)
        assert found is not None
        return _found(found)

    def _process(
        self, times: Ints, offers: Offers, first: int, is_last: bool
    ) -> tuple[bytes, bytes, bytes, bytes] | None:
        contiguous = np.ascontiguousarray
        return self._latest.process(
            contiguous(times),
            contiguous(offers.events),
            contiguous(offers.steps),
            contiguous(offers.keys),
            first,
            is_last,
        )

    def advance(self, time: int) -> FoundRuns:
        """Return the matches decided by that no event up to `time` will still come."""
        with naming_memory_errors(_DOING):
            return _found(self._latest.advance(time))

    def prune(self, time: int) -> None:
        """Drop what is garbage if no event up to `time` will still come."""
        self._latest.prune(time)

    def clear(self) -> None:
        """Drop the state of all keys."""
        self._latest.clear()

    def written(self) -> KeyStates:
        """Return the state of all keys, by rule; keys are in the order in which they came."""
        with naming_memory_errors(_DOING):
            arrays = [np.frombuffer(data, np.int64) for data in self._latest.written()]
        return KeyStates(*arrays)

    def read(self, states: KeyStates, time_of: Callable[[Ints], Ints]) -> None:
        """Go on from the state of keys; `time_of` tells the times of handles."""
        times = np.ascontiguousarray(time_of(states.handles), np.int64)
        try:
            with naming_memory_errors(_DOING):
                self._latest.read(
                    states.rules,
                    states.keys,
                    states.numbers,
                    states.number_ends,
                    states.handles,
                    states.handle_ends,
                    times,
                )
        except ValueError as error:
            raise StateFormatError(f"the state of a rule {error}", "restore a backup") from None


def _found(arrays: tuple[bytes, bytes, bytes, bytes]) -> FoundRuns:
    kinds: tuple[Any, ...] = (np.int32, np.int64, np.int64, np.int64)
    return FoundRuns(*(np.frombuffer(data, kind) for data, kind in zip(arrays, kinds, strict=True)))


RunningRules = LatestColumns | KernelColumns
"""Rules ready to run on columns."""
