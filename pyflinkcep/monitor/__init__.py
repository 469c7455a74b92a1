# SPDX-License-Identifier: Apache-2.0
"""A small page that shows what the patterns of running queries do."""

from pyflinkcep.monitor.monitor import Monitor

__all__ = ["Monitor"]
