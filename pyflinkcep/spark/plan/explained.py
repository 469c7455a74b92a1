# SPDX-License-Identifier: Apache-2.0
"""What explanations of patterns, queries and clauses have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyflinkcep.spark.plan.watermark import StreamWatermark

__all__ = ["in_sections", "watermark_line"]


def in_sections(sections: Mapping[str, Sequence[str]]) -> str:
    """Return titles with the lines below each, indented; a title without lines is left out."""
    return "\n".join(
        line
        for title, body in sections.items()
        if body
        for line in (title, *(f"  {line}" for line in body))
    )


def watermark_line(watermark: StreamWatermark) -> str:
    """Return the line that says which watermark a stream follows."""
    return f"watermark: {watermark}"
