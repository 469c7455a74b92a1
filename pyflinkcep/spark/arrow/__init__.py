# SPDX-License-Identifier: Apache-2.0
"""Columns and rows: the ground that the other rooms stand on."""
