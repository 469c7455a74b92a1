# SPDX-License-Identifier: Apache-2.0
"""The options of the JVMs of tests, which live minutes at most."""

from __future__ import annotations

import subprocess
from pathlib import Path

import psutil

__all__ = ["JVM_OPTIONS", "RECORD_CLASSES", "map_classes", "save_classes"]

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

RECORD_CLASSES = "-XX:+RecordDynamicDumpInfo -Xlog:disable"  # it warns of thousands of classes
"""The option of a JVM whose classes are to be saved; it starts more slowly."""


def save_classes(pid: int, file: Path) -> None:
    """
    Save the classes of the JVM that a process has started, so that others need not load them.

    A Java without the tool for it saves nothing.
    """
    for process in psutil.Process(pid).children(recursive=True):
        try:
            java = Path(process.exe())
        except psutil.Error:
            continue
        if java.name != "java":  # or it has ended, and has no name
            continue
        tool, part = java.with_name("jcmd"), file.with_suffix(".part")
        if tool.exists():
            command = [str(tool), str(process.pid), "VM.cds", "dynamic_dump", str(part)]
            done = subprocess.run(command, capture_output=True, check=False)
            if done.returncode == 0 and part.exists():
                part.rename(file)


def map_classes(file: Path) -> str:
    """Return the option of a JVM that is to use saved classes, if there are any that fit."""
    return f'-Xshare:auto -XX:SharedArchiveFile="{file}" -Xlog:disable'
