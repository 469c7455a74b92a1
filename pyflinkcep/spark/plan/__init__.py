# SPDX-License-Identifier: Apache-2.0
"""The driver's part of a job: everything decided before it runs."""
