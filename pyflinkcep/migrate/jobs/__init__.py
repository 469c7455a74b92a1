# SPDX-License-Identifier: Apache-2.0
"""The job around a pattern: keys, times, sources, outputs and SQL statements."""
