# SPDX-License-Identifier: Apache-2.0
"""The tool that translates jobs of Flink CEP."""
