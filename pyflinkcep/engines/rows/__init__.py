# SPDX-License-Identifier: Apache-2.0
"""SQL:2016's own meaning: one preferred match for each starting row."""
