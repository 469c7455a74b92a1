# SPDX-License-Identifier: Apache-2.0
"""
Queries in the language of SASE+, and in OptiSeq's form.

``parse(text)`` reads them, ``seq`` and ``elements`` make them of pieces; ``CEP.pattern`` and
``pyflinkcep.testing.matchSase`` run them.
"""

from pyflinkcep.sase.query import SaseQuery, elements, parse, seq

__all__ = ["SaseQuery", "elements", "parse", "seq"]
