# SPDX-License-Identifier: Apache-2.0
"""What explanations have in common."""

from __future__ import annotations

from pyflinkcep.spark.plan.watermark import in_sections


def test_a_section_without_lines_is_left_out() -> None:
    """A heading is printed only above lines of its own."""
    assert in_sections({"job": ["key: k"], "Conditions": [], "Warnings": ["it grows"]}) == (
        "job\n  key: k\nWarnings\n  it grows"
    )
