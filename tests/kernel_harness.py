# SPDX-License-Identifier: Apache-2.0
"""The harnesses of :mod:`pyflinkcep.testing` on the compiled kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pyflinkcep import Pattern
from pyflinkcep.engines.flink.bridge import make_kernel
from pyflinkcep.engines.flink.nfa import NFA, NFACompiler
from pyflinkcep.engines.flink.operator import CepOperator, KeyState, PartialMatchLimit
from pyflinkcep.engines.flink.stored_state import StateReader, StateWriter
from pyflinkcep.errors import CepRuntimeError
from pyflinkcep.functions import RuntimeContext
from pyflinkcep.testing import OperatorTestHarness

if TYPE_CHECKING:
    from pyflinkcep.kernel._kernel import Kernel

MANY = 1 << 40

HAS_KERNEL = make_kernel(NFACompiler.compile(Pattern.begin("a"))) is not None

needs_kernel = pytest.mark.skipif(not HAS_KERNEL, reason="built without a C compiler, or off")


def damaged(data: bytes, random: np.random.Generator) -> bytes:
    """Return bytes of which some are others, and some of the last may be missing."""
    found = bytearray(data)
    for at in random.integers(0, len(found), random.integers(1, 4)):
        found[at] = random.integers(0, 256)
    if random.random() < 0.3:
        del found[random.integers(0, len(found)) :]
    return bytes(found)


Found = tuple[int, int, dict[str, list[Any]]]
"""(1 for a match, 0 for a timeout, 2 for a stage reached; its time; stage name to events)."""


class KernelRun:
    """A kernel for a pattern, and the events it was shown."""

    def __init__(
        self,
        nfa: NFA,
        limit: PartialMatchLimit | None = None,
        processing_time: bool = False,
        gives_reached: bool = False,
        by_windows: bool = False,
    ) -> None:
        kernel = make_kernel(
            nfa, 0, limit, processing_time, gives_reached=gives_reached, by_windows=by_windows
        )
        assert kernel is not None
        self.nfa = nfa
        self.kernel: Kernel = kernel
        self.events: list[Any] = []
        self.stages = nfa.stages
        kernel.set_events(self.events.__getitem__, 0, 0, ())

    def process(self, key: Any, timestamps: Sequence[int], events: Sequence[Any]) -> None:
        """Show a key events."""
        times = np.asarray(timestamps, np.int64)
        base = len(self.events)
        self.events.extend(events)
        bounds, needed = np.asarray([0, len(times)]), np.asarray([True])
        end = self.kernel.run(key, times, None, base, None, bounds, needed, 0, 0, MANY)
        assert end[:2] == (1, len(times))

    def results(self) -> list[Found]:
        """Take the results, with the events themselves."""
        *arrays, _ = self.kernel.take_found()
        kinds, times, ends, numbers, handles = (
            np.frombuffer(data, kind).tolist()
            for data, kind in zip(arrays, ("u1", "i8", "i8", "i4", "i8"), strict=True)
        )
        found, start = [], 0
        for kind, timestamp, end in zip(kinds, times, ends, strict=True):
            match: dict[str, list[Any]] = {}
            for stage, handle in zip(numbers[start:end], handles[start:end], strict=True):
                match.setdefault(self.stages[stage], []).append(self.events[handle])
            found.append((kind, timestamp, match))
            start = end
        return found

    def written(self, key: Any) -> tuple[list[int], list[Any]]:
        """Return a key's state: its numbers, and the events beside them."""
        numbers, handles = (np.frombuffer(data, "i8") for data in self.kernel.write(key))
        return numbers.tolist(), [self.events[handle] for handle in handles.tolist()]

    def read(self, state: KeyState) -> Any:
        """Make the kernel's key of a plain one."""
        writer = StateWriter(self.nfa)
        writer.write(state)
        base = len(self.events)
        self.events.extend(writer.events)
        return self.kernel.read(np.asarray(writer.numbers, np.int64), base, len(writer.events))

    def plain(self, key: Any) -> KeyState:
        """Make a plain key of the kernel's."""
        numbers, events = self.written(key)
        reader = StateReader(self.nfa, numbers, events, list(self.nfa.tables), self.stages)
        state = reader.read()
        reader.end()
        return state


class KernelNFAHarness:
    """What ``NFATestHarness`` is, on a kernel."""

    def __init__(self, pattern: Pattern, timeoutHandling: bool = False) -> None:
        self.nfa = NFACompiler.compile(pattern, timeoutHandling)
        self.nfa.open(RuntimeContext())
        self._run = KernelRun(self.nfa)
        self._key = self._run.kernel.new_key()

    def advanceTime(self, timestamp: int) -> tuple[list[Any], list[Any]]:
        self._run.kernel.advance(self._key, timestamp)
        found = self._run.results()
        matches = [match for is_match, _, match in found if is_match]
        return matches, [(match, time) for is_match, time, match in found if not is_match]

    def process(self, event: Any, timestamp: int) -> list[Any]:
        self._run.process(self._key, [timestamp], [event])
        return [match for _, _, match in self._run.results()]

    @property
    def written(self) -> tuple[list[int], list[Any]]:
        return self._run.written(self._key)

    @property
    def partialMatches(self) -> int:
        return int(self._key.partial_count)

    @property
    def bufferNodes(self) -> int:
        return int(self._key.node_count)

    @property
    def bufferedEvents(self) -> int:
        return len(self._key.live_handles())


class KernelOperator:
    """``CepOperator`` with a kernel at work: each call reads a plain state, and writes one back."""

    def __init__(self, rules: CepOperator) -> None:
        self.nfa = rules.nfa
        self.processing_time = rules.processing_time
        self.new_key = rules.new_key
        self.timer_after = rules.timer_after
        self.is_idle = rules.is_idle
        self._run = KernelRun(rules.nfa, rules.limit, rules.processing_time)

    def process_events(
        self, key: Any, state: KeyState, timestamps: Any, events: Any, output: Any, **_: Any
    ) -> None:
        run, copy = self._run, self._run.read(state)
        copy.is_new_start = state.nfa_state.is_new_start_partial_match
        try:
            run.process(copy, timestamps, events)
        except CepRuntimeError as error:
            raise error.at_key(key) from error.__cause__
        self._finish(key, state, copy, output)

    def advance_time(self, key: Any, state: KeyState, timestamp: int, output: Any) -> None:
        copy = self._run.read(state)
        try:
            self._run.kernel.advance(copy, timestamp)
        except CepRuntimeError as error:
            raise error.at_key(key) from error.__cause__
        self._finish(key, state, copy, output)
        state.nfa_state.reset_flags()

    def _finish(self, key: Any, state: KeyState, copy: Any, output: Any) -> None:
        plain = self._run.plain(copy)
        plain.nfa_state.is_new_start_partial_match = copy.is_new_start
        state.nfa_state, state.buffer, state.timers = plain.nfa_state, plain.buffer, plain.timers
        for is_match, timestamp, match in self._run.results():
            (output.match if is_match else output.timeout)(key, timestamp, match)


class KernelOperatorHarness(OperatorTestHarness):
    """What ``OperatorTestHarness`` is, on a kernel."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        rules: Any = KernelOperator(self._operator.operator)
        self._operator.operator = rules
