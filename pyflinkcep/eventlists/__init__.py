# SPDX-License-Identifier: Apache-2.0
"""Evaluation over ordered lists of events, in the order that is cheapest."""
