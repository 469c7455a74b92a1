# SPDX-License-Identifier: Apache-2.0
"""Flink's automaton: compiled from a pattern, run over the events of a key, in Python or in C."""
