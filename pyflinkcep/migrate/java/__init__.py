# SPDX-License-Identifier: Apache-2.0
"""Reads Java: files, and what a project declares."""
