# SPDX-License-Identifier: Apache-2.0
"""NFAᵇ: the automaton of SEQ queries, and its runs over the events of a partition."""
