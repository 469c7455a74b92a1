# SPDX-License-Identifier: Apache-2.0
"""What a stream keeps between micro-batches."""
