# SPDX-License-Identifier: Apache-2.0
"""The shared buffer that the events of all partial matches of a key live in."""

from pyflinkcep.sharedbuffer.buffer import (
    SharedBuffer,
    extract_path,
    live_nodes,
    materialize_match,
)
from pyflinkcep.sharedbuffer.elements import EventId, NodeId, SharedBufferNode

__all__ = [
    "EventId",
    "NodeId",
    "SharedBuffer",
    "SharedBufferNode",
    "extract_path",
    "live_nodes",
    "materialize_match",
]
