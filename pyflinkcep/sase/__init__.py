# SPDX-License-Identifier: Apache-2.0
"""
Queries in the SASE+ language and in OptiSeq's form.

``parse(text)`` reads them, ``seq`` and ``elements`` build them from pieces; ``CEP.pattern`` and
``pyflinkcep.matchSase`` run them.
"""

from pyflinkcep.sase.query import SaseQuery, elements, parse, seq

__all__ = ["SaseQuery", "elements", "parse", "seq"]
