# SPDX-License-Identifier: Apache-2.0
"""Evaluation over ordered event lists, joined in the cheapest order."""
