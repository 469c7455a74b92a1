# SPDX-License-Identifier: Apache-2.0
"""The versioned shared buffer, which stores all partial matches of a key."""

from pyflinkcep.sharedbuffer.buffer import SharedBuffer, SharedBufferAccessor
from pyflinkcep.sharedbuffer.dewey import DeweyNumber
from pyflinkcep.sharedbuffer.elements import (
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
