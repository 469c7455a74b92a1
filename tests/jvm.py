# SPDX-License-Identifier: Apache-2.0
"""The options of the JVMs of tests, which live minutes at most."""

from __future__ import annotations

JVM_OPTIONS = " ".join(
    [
        "-XX:TieredStopAtLevel=1",  # else half the time is the second compiler's
        "-XX:ReservedCodeCacheSize=240m",  # 48 MB else: swept all the time, and compiled again
        "-XX:+UseSerialGC",
        "-XX:MetaspaceSize=256m",  # else it collects everything each time this grows
        "-XX:NewSize=256m",  # what tests allocate is soon garbage
        "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote",  # of Spark's own classes
    ]
)
