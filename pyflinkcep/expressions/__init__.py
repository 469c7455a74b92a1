# SPDX-License-Identifier: Apache-2.0
"""SQL over stages: parsing, compiling to programs, and evaluation."""
