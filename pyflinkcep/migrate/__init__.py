# SPDX-License-Identifier: Apache-2.0
"""Translates Flink CEP jobs in Java to this library: ``python -m pyflinkcep.migrate``."""
