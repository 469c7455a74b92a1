# SPDX-License-Identifier: Apache-2.0
"""The options of the JVMs of tests, which live minutes at most, and fewer questions to them."""

from __future__ import annotations

from typing import Any

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


def remember_classes() -> None:
    """
    Let Python ask a JVM once for each name of a class or package.

    Py4J asks again each time, dozens of times a job, and Java looks into every jar for an answer.
    """
    from py4j.java_gateway import JavaPackage, JVMView

    for owner in (JVMView, JavaPackage):

        def found(self: Any, name: str, ask: Any = owner.__getattr__) -> Any:
            value = ask(self, name)
            vars(self)[name] = value
            return value

        owner.__getattr__ = found


def share_settings(session: Any) -> None:
    """Let all threads of the JVM have a session's settings: ``tests/java/SessionSettings.java``."""
    from py4j.java_gateway import JavaPackage

    own = session._jvm.tests.SessionSettings
    if not isinstance(own, JavaPackage):  # compiled
        own.share(session._jsparkSession)
