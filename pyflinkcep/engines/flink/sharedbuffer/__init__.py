# SPDX-License-Identifier: Apache-2.0
"""The versioned shared buffer, which stores all partial matches of a key."""

from pyflinkcep.engines.flink.sharedbuffer.buffer import SharedBuffer, SharedBufferAccessor
from pyflinkcep.engines.flink.sharedbuffer.elements import (
    DeweyNumber,
    EventId,
    Lockable,
    LockableEvent,
    NodeId,
    SharedBufferEdge,
    SharedBufferNode,
)

__all__ = [
    "DeweyNumber",
    "EventId",
    "Lockable",
    "LockableEvent",
    "NodeId",
    "SharedBuffer",
    "SharedBufferAccessor",
    "SharedBufferEdge",
    "SharedBufferNode",
]
