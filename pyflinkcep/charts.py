# SPDX-License-Identifier: Apache-2.0
"""
Charts of what patterns find: as Vega-Lite specifications, and as SVG.

Each takes rows, as dicts or Spark's Rows, or a DataFrame, which it collects.
"""

from pyflinkcep.show.charts import Chart, durations_chart, funnel_chart, timeline_chart

__all__ = ["Chart", "durations_chart", "funnel_chart", "timeline_chart"]
