# SPDX-License-Identifier: Apache-2.0
"""Pictures of patterns and of what happens in them: data in, SVG, Mermaid and DOT out."""

from pyflinkcep.show.diagram import Diagram, Picture

__all__ = ["Diagram", "Picture"]
