# SPDX-License-Identifier: Apache-2.0
"""The pages of sinks, on real sinks whose writers are killed; ``python -m tests.sinks`` runs it."""
