# SPDX-License-Identifier: Apache-2.0
"""Pictures of patterns and of what happens in them: data in, SVG, Mermaid and DOT out."""

from pyflinkcep.show.diagram import Diagram
from pyflinkcep.show.picture import Picture

__all__ = ["Diagram", "Picture"]
