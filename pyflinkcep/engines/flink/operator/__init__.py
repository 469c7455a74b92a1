# SPDX-License-Identifier: Apache-2.0
"""Flink's CEP operator: queues, the watermark, late data, timers, snapshots."""

from pyflinkcep.engines.flink.operator.cep_operator import CepOperator, KeyState, Output, is_late
from pyflinkcep.engines.flink.operator.comparator import Comparator, comparator_key
from pyflinkcep.engines.flink.operator.keyed_operator import KeyedCepOperator, KeyedOutput
from pyflinkcep.engines.flink.operator.limit import PartialMatchLimit
from pyflinkcep.engines.flink.operator.snapshot import restore, snapshot
from pyflinkcep.engines.flink.operator.state_format import STATE_FORMAT, Serializer

__all__ = [
    "STATE_FORMAT",
    "CepOperator",
    "Comparator",
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
