# SPDX-License-Identifier: Apache-2.0
"""Sigma correlations over events whose rules are known: counts in windows, and rules together."""
