# SPDX-License-Identifier: Apache-2.0
"""What became of each event and of each partial match: traces, and what they say."""
