# SPDX-License-Identifier: Apache-2.0
"""The executors' part of a job: the code that runs inside a task."""
