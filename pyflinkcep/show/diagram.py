# SPDX-License-Identifier: Apache-2.0
"""The picture of a pattern that users hold: SVG, Mermaid and DOT of the same thing."""

from __future__ import annotations

from pathlib import Path

import attrs

from pyflinkcep.errors import InvalidArgumentError
from pyflinkcep.show.automaton import automaton_svg
from pyflinkcep.show.flat import as_graph
from pyflinkcep.show.model import Graph, Row
from pyflinkcep.show.stages import stages_svg
from pyflinkcep.show.text import dot, mermaid

__all__ = ["Diagram"]


@attrs.frozen(repr=False)
class Diagram:
    """
    A picture of a pattern, a query or a clause, which notebooks show.

    Made by :meth:`pyflinkcep.Pattern.diagram`, :meth:`pyflinkcep.SaseQuery.diagram` and
    :func:`pyflinkcep.diagram`.

    Attributes
    ----------
    drawn : Row or Graph
        What is drawn: stages, or the states of the automaton.
    title : str
        The pattern on one line.
    notes : tuple of str
        What holds for the whole pattern.

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
    title: str
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

    def save(self, path: str | Path) -> None:
        """
        Write the picture to a file, in the form that its name ends with.

        Parameters
        ----------
        path : str or Path
            A name that ends in ``.svg``, ``.html``, ``.mmd`` (Mermaid) or ``.dot``.

        Raises
        ------
        InvalidArgumentError
            If it ends with something else.
        """
        file = Path(path)
        forms = {".svg": "svg", ".html": "html", ".mmd": "mermaid", ".dot": "dot", ".gv": "dot"}
        form = forms.get(file.suffix.lower())
        if form is None:
            raise InvalidArgumentError(
                f"save: expected a name that ends in {', '.join(forms)}, got {str(path)!r}",
                "write diagram.save('pattern.svg')",
            )
        text = self._page() if form == "html" else str(getattr(self, form))
        file.write_text(text + "\n", encoding="utf-8")

    def __repr__(self) -> str:
        return f"Diagram({self.title})"

    def _repr_html_(self) -> str:
        return self.svg

    def _page(self) -> str:
        style = "body{margin:2em;background:Canvas;color-scheme:light dark}"
        return (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Pattern</title>'
            f"<style>{style}</style><body>{self.svg}</body></html>"
        )

    def _graph(self) -> Graph:
        return self.drawn if isinstance(self.drawn, Graph) else as_graph(self.drawn, self.notes)
