# SPDX-License-Identifier: Apache-2.0
"""Matches in compact form: shared nodes, counts and sums over all of them."""
