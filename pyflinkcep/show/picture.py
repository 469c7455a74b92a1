# SPDX-License-Identifier: Apache-2.0
"""A picture that users hold, show in a notebook and save."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import attrs

from pyflinkcep.errors import InvalidArgumentError

__all__ = ["Picture"]


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
