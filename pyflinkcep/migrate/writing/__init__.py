# SPDX-License-Identifier: Apache-2.0
"""Writes Python: modules, patterns and jobs."""
