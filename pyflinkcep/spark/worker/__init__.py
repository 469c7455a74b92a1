# SPDX-License-Identifier: Apache-2.0
"""The executors: what runs inside a task."""
