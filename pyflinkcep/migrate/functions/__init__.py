# SPDX-License-Identifier: Apache-2.0
"""Translates conditions and selectors of events, and functions of matches."""
