# SPDX-License-Identifier: Apache-2.0
from pyflink.table import EnvironmentSettings, TableEnvironment

TABLE = "ticks"
env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
env.execute_sql(
    f"""
    SELECT * FROM {TABLE} MATCH_RECOGNIZE (
      PARTITION BY symbol ORDER BY ts
      MEASURES A.price AS low, LAST(B.price) AS high
      PATTERN (A B+ C)
      DEFINE B AS B.price > A.price, C AS C.price < A.price
    )
    """
).print()
