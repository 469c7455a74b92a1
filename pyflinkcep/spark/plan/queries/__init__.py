# SPDX-License-Identifier: Apache-2.0
"""SASE+ queries on DataFrames, planned on the driver."""
