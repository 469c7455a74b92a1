# SPDX-License-Identifier: Apache-2.0
"""Flink's CEP operator: queues, the watermark, late data, timers, snapshots."""

from pyflinkcep.operator.cep_operator import CepOperator, KeyState, Output, is_late
from pyflinkcep.operator.comparator import Comparator, comparator_key
from pyflinkcep.operator.keyed_operator import KeyedCepOperator, KeyedOutput
from pyflinkcep.operator.limit import PartialMatchLimit
from pyflinkcep.operator.snapshot import restore, snapshot
from pyflinkcep.operator.state_format import STATE_FORMAT, Serializer

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
