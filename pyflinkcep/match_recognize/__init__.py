# SPDX-License-Identifier: Apache-2.0
"""MATCH_RECOGNIZE: the clause read, checked, and matched; without an engine."""
