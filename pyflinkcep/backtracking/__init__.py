# SPDX-License-Identifier: Apache-2.0
"""Evaluation of SEQ queries one run at a time."""
