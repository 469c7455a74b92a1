# SPDX-License-Identifier: Apache-2.0
"""The picture of a pattern that users hold: SVG, Mermaid and DOT of the same thing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path

import attrs

from pyflinkcep.errors import InvalidArgumentError
from pyflinkcep.show.automaton import automaton_svg
from pyflinkcep.show.model import Graph, Row
from pyflinkcep.show.stages import stages_svg
from pyflinkcep.show.text import as_graph, dot, mermaid


@attrs.frozen(repr=False)
class Picture:
    """
    A picture, which notebooks show.

    Attributes
    ----------
    title : str
        What it shows, on one line.
    """

    title: str = attrs.field(kw_only=True)

    @property
    def svg(self) -> str:
        """The picture as SVG, for light and dark pages."""
        raise NotImplementedError

    def save(self, path: str | Path) -> None:
        """
        Write the picture to a file, in the form that its name ends with.

        Parameters
        ----------
        path : str or Path
            A name that ends in ``.svg`` or ``.html``; for patterns also ``.mmd`` (Mermaid) or
            ``.dot``.

        Raises
        ------
        InvalidArgumentError
            If it ends with something else.
        """
        file, forms = Path(path), self._forms()
        form = forms.get(file.suffix.lower())
        if form is None:
            raise InvalidArgumentError(
                f"save: expected a name that ends in {', '.join(forms)}, got {str(path)!r}",
                "write picture.save('pattern.svg')",
            )
        file.write_text(form() + "\n", encoding="utf-8")

    def _forms(self) -> Mapping[str, Callable[[], str]]:
        return {".svg": lambda: self.svg, ".html": self._page}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.title})"

    def _repr_html_(self) -> str:
        return self.svg

    def _page(self) -> str:
        style = "body{margin:2em;background:Canvas;color-scheme:light dark}"
        return (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Pattern</title>'
            f"<style>{style}</style><body>{self.svg}</body></html>"
        )


@attrs.frozen(repr=False)
class DrawnPicture(Picture):
    """A picture that a function draws when it is asked for."""

    _draw: Callable[[], str] = attrs.field(kw_only=True, eq=False)

    @property
    def svg(self) -> str:
        """The picture as SVG, for light and dark pages."""
        return self._draw()


class Report:
    """What is told as text and as a picture; a notebook shows both."""

    __slots__ = ()

    def text(self) -> str:
        """Return it as text."""
        raise NotImplementedError

    def diagram(self) -> Picture:
        """Return it as a picture, with ``svg`` and ``save(path)``."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return f"{self.diagram().svg}<pre>{escape(self.text())}</pre>"


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
