# SPDX-License-Identifier: Apache-2.0
"""How matches are found: one room for each engine, and the choice between them."""
