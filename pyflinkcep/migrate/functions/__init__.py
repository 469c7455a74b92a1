# SPDX-License-Identifier: Apache-2.0
"""Translates select, process and timeout functions."""
