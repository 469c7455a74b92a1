# SPDX-License-Identifier: Apache-2.0
"""The trace that users hold."""

from __future__ import annotations

from html import escape

import attrs

from pyflinkcep.show import Picture
from pyflinkcep.trace.drawn import trace_svg
from pyflinkcep.trace.record import Record
from pyflinkcep.trace.text import beginnings_text, full_text

__all__ = ["Trace", "TracePicture"]


@attrs.frozen(repr=False)
class TracePicture(Picture):
    """The picture of a trace: events on an axis of time, a lane for each partial match."""

    drawn: Record = attrs.field(kw_only=True)

    @property
    def svg(self) -> str:
        """The picture as SVG, for light and dark pages."""
        return trace_svg(self.drawn, self.title)


@attrs.frozen(repr=False)
class Trace(Record):
    """
    What a pattern did with events; made by :func:`pyflinkcep.testing.trace`.

    Its text says for each event that could begin a match how far it got, and what failed there.
    """

    def text(self, full: bool = False) -> str:
        """
        Return the trace as text.

        Parameters
        ----------
        full : bool
            Whether to tell all that each event did, instead of how far each beginning got.
        """
        return full_text(self) if full else beginnings_text(self)

    def diagram(self) -> TracePicture:
        """Return the trace as a picture, with ``svg`` and ``save(path)``."""
        return TracePicture(title=f"trace of {self.pattern}", drawn=self)

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return f"{self.diagram().svg}<pre>{escape(self.text())}</pre>"
