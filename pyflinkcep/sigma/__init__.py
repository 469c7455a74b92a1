# SPDX-License-Identifier: Apache-2.0
"""Sigma: correlations, their conditions and checks."""
