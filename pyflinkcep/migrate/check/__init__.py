# SPDX-License-Identifier: Apache-2.0
"""Compares a translation with the original: on a real Flink, with the same events."""
