# SPDX-License-Identifier: Apache-2.0
"""Sigma: rules as conditions, correlations, and what is refused of them."""

from pyflinkcep.sigma.rule import SigmaRules, sigmaRules

__all__ = ["SigmaRules", "sigmaRules"]
