# SPDX-License-Identifier: Apache-2.0
"""EQL queries on a DataFrame: fields, conditions, keys, and the job."""
