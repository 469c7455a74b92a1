# SPDX-License-Identifier: Apache-2.0
"""Sorted events as Arrow columns in, matches out: for Spark's tasks and for tables."""
