# SPDX-License-Identifier: Apache-2.0
"""The picture of a pattern that users hold: SVG, Mermaid and DOT of the same thing."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from pyflinkcep.show.automaton import automaton_svg
from pyflinkcep.show.flat import as_graph
from pyflinkcep.show.model import Graph, Row
from pyflinkcep.show.picture import Picture
from pyflinkcep.show.stages import stages_svg
from pyflinkcep.show.text import dot, mermaid

__all__ = ["Diagram"]


@attrs.frozen(repr=False)
class Diagram(Picture):
    """
    A picture of a pattern, a query or a clause, which notebooks show.

    Made by :meth:`pyflinkcep.Pattern.diagram`, :meth:`pyflinkcep.SaseQuery.diagram` and
    :func:`pyflinkcep.diagram`.

    Attributes
    ----------
    drawn : Row or Graph
        What is drawn: stages, or the states of the automaton.
    notes : tuple of str
        What holds for the whole pattern.
    title : str
        The pattern on one line.

    Examples
    --------
    >>> from pyflinkcep import Pattern
    >>> print(Pattern.begin("a").next("b").oneOrMore().diagram().mermaid)
    flowchart LR
      n0["a<br/>any event"]
      n1["b<br/>any event"]
      n1 -- "1 or more" --> n1
      n0 == "next" ==> n1
    """

    drawn: Row | Graph
    notes: tuple[str, ...] = ()

    @property
    def svg(self) -> str:
        """The picture as SVG, for light and dark pages."""
        if isinstance(self.drawn, Graph):
            return automaton_svg(self.drawn, self.notes, self.title)
        return stages_svg(self.drawn, self.notes, self.title)

    @property
    def mermaid(self) -> str:
        """The picture as a flowchart of Mermaid, which Markdown pages draw."""
        return mermaid(self._graph())

    @property
    def dot(self) -> str:
        """The picture in the language of Graphviz."""
        return dot(self._graph())

    def _forms(self) -> Mapping[str, Callable[[], str]]:
        others = {".mmd": lambda: self.mermaid, ".dot": lambda: self.dot, ".gv": lambda: self.dot}
        return {**super()._forms(), **others}

    def _graph(self) -> Graph:
        return self.drawn if isinstance(self.drawn, Graph) else as_graph(self.drawn, self.notes)
