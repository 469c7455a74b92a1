# SPDX-License-Identifier: Apache-2.0
"""Clauses ``MATCH_RECOGNIZE`` on DataFrames, planned on the driver, in either dialect."""
