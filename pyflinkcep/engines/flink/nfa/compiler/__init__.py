# SPDX-License-Identifier: Apache-2.0
"""From a pattern to the states and transitions of its NFA."""
