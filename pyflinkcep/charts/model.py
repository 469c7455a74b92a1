# SPDX-License-Identifier: Apache-2.0
"""A chart that users hold: a Vega-Lite specification, and the same as SVG."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from pyflinkcep.errors import NotSupportedError
from pyflinkcep.show import Picture

__all__ = ["COLOURS", "Chart", "specification"]

COLOURS = ("#3b82d0", "#3a9a52", "#b8860b", "#9a6ce0", "#dd4f56", "#2a9d9d", "#d05aa0", "#808890")
"""Seen on white and on dark paper alike, since a specification cannot know which there is."""
_TEXT = "#737b85"
_SCRIPT = re.compile(r"<(?=[/!]|script)", re.IGNORECASE)


@attrs.frozen(repr=False)
class Chart(Picture):
    """
    A chart, which notebooks show.

    Attributes
    ----------
    spec : dict
        The chart as a Vega-Lite specification, with its data.

    Examples
    --------
    >>> from pyflinkcep.charts import funnel_chart
    >>> rows = [{"stage": "view", "step": 1, "keys": 5, "partialMatches": 9, "ofFirst": 1.0}]
    >>> chart = funnel_chart(rows)
    >>> chart.spec["data"]["values"][0]["stage"], chart.svg[:4]
    ('view', '<svg')
    """

    spec: dict[str, Any] = attrs.field(kw_only=True)
    _drawn: Callable[[], str] = attrs.field(kw_only=True, eq=False)

    @property
    def svg(self) -> str:
        """The picture as SVG, for light and dark pages."""
        return self._drawn()

    def altair(self) -> Any:
        """
        Return the chart as one of Altair's, to change it or to save it in other forms.

        In names and values that would end or begin a script in Altair's pages, which do not escape
        them, a character without a width follows ``<``.

        Raises
        ------
        NotSupportedError
            If Altair is not installed.
        """
        try:
            import altair
        except ImportError as cause:
            raise NotSupportedError(
                "altair() needs the package altair",
                "pip install 'pyflinkcep[charts]'; chart.svg and chart.spec need no package",
            ) from cause
        return altair.Chart.from_dict(_harmless(self.spec))

    def _forms(self) -> Mapping[str, Callable[[], str]]:
        return {**super()._forms(), ".json": lambda: json.dumps(self.spec, indent=2)}

    def _repr_html_(self) -> str:
        return self.svg

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return {
            "application/vnd.vegalite.v5+json": self.spec,
            "text/html": self.svg,
            "text/plain": repr(self),
        }

    def __repr__(self) -> str:
        return f"Chart({self.title!r})"


def _harmless(value: Any) -> Any:
    if isinstance(value, str):
        return _SCRIPT.sub("<\u200b", value)
    if isinstance(value, dict):
        return {_harmless(name): _harmless(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_harmless(part) for part in value]
    return value


def specification(title: str, **parts: Any) -> dict[str, Any]:
    """Return a Vega-Lite specification that is readable on light and dark pages."""
    axis = {
        "labelColor": _TEXT, "titleColor": _TEXT, "domainColor": _TEXT, "tickColor": _TEXT,
        "gridColor": _TEXT, "gridOpacity": 0.25, "labelLimit": 240,
    }  # fmt: skip
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": {"text": title, "anchor": "start"},
        "background": "transparent",
        "config": {
            "view": {"stroke": "transparent"},
            "axis": axis,
            "title": {"color": _TEXT},
            "header": {"labelColor": _TEXT, "titleColor": _TEXT},
            "legend": {"labelColor": _TEXT, "titleColor": _TEXT},
            "text": {"color": _TEXT},
            "range": {"category": list(COLOURS)},
        },
        **parts,
    }
