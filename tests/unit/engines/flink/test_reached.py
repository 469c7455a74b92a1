# SPDX-License-Identifier: Apache-2.0
"""The kernel and the plain path tell of the same stages that partial matches reach."""

from __future__ import annotations

from typing import Any

import attrs
from hypothesis import given

from pyflinkcep.engines.flink.nfa import NFA, NFACompiler
from pyflinkcep.engines.flink.nfa.observer import StageObserver
from pyflinkcep.engines.flink.operator import CepOperator
from tests.kernel_harness import Found, KernelRun, needs_kernel
from tests.property.strategies import PatternSpec, is_buildable, patterns
from tests.unit.engines.flink.test_same_as_plain import Both, steps

pytestmark = needs_kernel

_REACHED = 2


class BothTelling(Both):
    """One key on both paths, which tell of stages."""

    def __init__(self, nfa: NFA) -> None:
        super().__init__(nfa)
        self.rules = CepOperator(attrs.evolve(nfa, observer=StageObserver(self._reached)))
        self.state = self.rules.new_key()
        self.run = KernelRun(nfa, gives_reached=True)
        self.key = self.run.kernel.new_key()

    def _reached(self, timestamp: int, match: Any) -> None:
        self.output.found.append((_REACHED, timestamp, match))


@given(spec=patterns().filter(is_buildable), todo=steps())
def test_stages_reached(spec: PatternSpec, todo: Any) -> None:
    """Both tell of the same stages in the same order, and find what they find without."""
    nfa = NFACompiler.compile(spec.build())
    both, silent = BothTelling(nfa), Both(nfa)

    for time, events, exchange in todo:
        for one in (both, silent):
            one.process([at for at, _ in events], [event for _, event in events])
            one.advance(time)
        assert both.states() == silent.states()
        plain, kernel = map(_apart, both.found())
        assert kernel == plain
        assert kernel[1] == silent.found()[1]
        if exchange:
            both.exchange()
            silent.exchange()


def _apart(found: list[Found]) -> tuple[list[Found], list[Found]]:
    """Return stages reached, and the other results."""
    return (
        [one for one in found if one[0] == _REACHED],
        [one for one in found if one[0] != _REACHED],
    )
