# SPDX-License-Identifier: Apache-2.0
"""The driver: everything about a job that is known before it runs."""
