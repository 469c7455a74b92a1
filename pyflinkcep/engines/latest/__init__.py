# SPDX-License-Identifier: Apache-2.0
"""Sequences of which the latest run at each step lives: constant state for each rule and key."""
