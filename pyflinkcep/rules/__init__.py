# SPDX-License-Identifier: Apache-2.0
"""Rules as data: patterns from and to documents."""
