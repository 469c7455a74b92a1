# SPDX-License-Identifier: Apache-2.0
"""Columns and rows, on which the other rooms build."""
