# SPDX-License-Identifier: Apache-2.0
"""SQL about one event for an engine that is not Spark, with the values that Spark computes."""
