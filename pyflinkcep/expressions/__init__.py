# SPDX-License-Identifier: Apache-2.0
"""SQL over stages: parsed, compiled to programs, and run."""
