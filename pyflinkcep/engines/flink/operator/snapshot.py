# SPDX-License-Identifier: Apache-2.0
"""Snapshots of a whole :class:`~pyflinkcep.engines.flink.operator.KeyedCepOperator`."""

from __future__ import annotations

from typing import Any

from pyflinkcep.engines.flink.nfa import NFA
from pyflinkcep.engines.flink.operator.keyed_operator import KeyContext, KeyedCepOperator
from pyflinkcep.engines.flink.operator.state_codec import StateReader, StateWriter
from pyflinkcep.engines.flink.operator.state_format import (
    Serializer,
    bytes_to_ints,
    damaged_state,
    ints_to_bytes,
    pack,
    refuse_damage,
    unpack,
)

__all__ = ["restore", "snapshot"]


def snapshot(operator: KeyedCepOperator, events: Serializer, keys: Serializer) -> bytes:
    """
    Return the operator's state as bytes.

    Parameters
    ----------
    operator : KeyedCepOperator
        The operator; it is not changed.
    events, keys : Serializer
        How to write events and keys.
    """
    writer = StateWriter(operator.operator.nfa)
    put = writer.numbers.append
    for context in operator.keys.values():
        put(len(context.queue))
        for timestamp, waiting in context.queue.items():
            put(timestamp)
            put(len(waiting))
            writer.numbers.extend(map(writer.add_event, waiting))
        writer.write(context.state)
    header = {
        "states": list(writer.nfa.tables),
        "stages": writer.nfa.stages,
        "watermark": operator.watermark,
        "lateDropped": operator.late_dropped,
        "keys": len(operator.keys),
    }
    parts = [ints_to_bytes(writer.numbers), events.dumps(writer.events)]
    return pack(header, [*parts, keys.dumps(list(operator.keys))])


def restore(operator: KeyedCepOperator, data: bytes, events: Serializer, keys: Serializer) -> None:
    """
    Fill a new operator from the bytes of a snapshot.

    Parameters
    ----------
    operator : KeyedCepOperator
        An operator for the same pattern.
    data : bytes
        The result of :func:`snapshot`.
    events, keys : Serializer
        How events and keys were written.

    Raises
    ------
    StateFormatError
        If the bytes are damaged or of an unknown format version.
    PatternChangedError
        If the pattern lacks a state that the snapshot names.
    """
    nfa: NFA = operator.operator.nfa
    contexts: dict[Any, KeyContext] = {}
    with refuse_damage():
        header, (numbers, event_bytes, key_bytes) = unpack(data)
        reader = StateReader(
            nfa,
            bytes_to_ints(numbers),
            events.loads(event_bytes),
            header["states"],
            header["stages"],
        )
        for key in keys.loads(key_bytes):
            context = contexts[key] = KeyContext(operator.operator.new_key())
            for _ in reader.count(2):
                timestamp = reader.number()
                context.queue[timestamp] = [reader.event() for _ in reader.count(1)]
            context.state = reader.read()
        reader.end()
        if len(contexts) != header["keys"] or not isinstance(header["watermark"], int):
            raise damaged_state("its header does not match")
        operator.watermark, operator.late_dropped = header["watermark"], header["lateDropped"]
    operator.keys.update(contexts)
