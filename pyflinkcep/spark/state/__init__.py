# SPDX-License-Identifier: Apache-2.0
"""The state that a stream keeps between micro-batches."""
