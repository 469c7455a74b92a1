# SPDX-License-Identifier: Apache-2.0
"""MATCH_RECOGNIZE: reading, checking and matching the clause, without an engine."""
