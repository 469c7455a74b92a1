# SPDX-License-Identifier: Apache-2.0
"""EQL, Elastic's Event Query Language: read, checked, and its conditions as SQL."""

from pyflinkcep.eql.query import Eql

__all__ = ["Eql"]
