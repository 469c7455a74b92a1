# SPDX-License-Identifier: Apache-2.0
"""Matches on events in memory: tables of Arrow, pandas and polars, files of Parquet, and lists."""
