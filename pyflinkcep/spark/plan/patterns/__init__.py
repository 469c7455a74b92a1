# SPDX-License-Identifier: Apache-2.0
"""Patterns on DataFrames, planned on the driver."""
