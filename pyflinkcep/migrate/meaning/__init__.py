# SPDX-License-Identifier: Apache-2.0
"""What Java's expressions and statements mean, and how SQL and Python say the same."""
