# SPDX-License-Identifier: Apache-2.0
"""Flink's CEP operator: queues, the watermark, late data, timers, snapshots."""

from pyflinkcep.engines.flink.operator.cep_operator import (
    CepOperator,
    Comparator,
    Input,
    KeyedCepOperator,
    KeyedOutput,
    KeyState,
    Output,
    PartialMatchLimit,
    comparator_key,
    is_late,
)
from pyflinkcep.engines.flink.operator.state_codec import restore, snapshot
from pyflinkcep.engines.flink.operator.state_format import STATE_FORMAT, Serializer

__all__ = [
    "STATE_FORMAT",
    "CepOperator",
    "Comparator",
    "Input",
    "KeyState",
    "KeyedCepOperator",
    "KeyedOutput",
    "Output",
    "PartialMatchLimit",
    "Serializer",
    "comparator_key",
    "is_late",
    "restore",
    "snapshot",
]
