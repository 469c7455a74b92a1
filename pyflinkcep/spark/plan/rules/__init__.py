# SPDX-License-Identifier: Apache-2.0
"""Many rules on one DataFrame."""
