# SPDX-License-Identifier: Apache-2.0
"""Follows a program of Java to the patterns that it builds, and to what it does with them."""
