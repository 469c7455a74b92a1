# SPDX-License-Identifier: Apache-2.0
"""From sorted events to matches, by the kernel or in Python."""
