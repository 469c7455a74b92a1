# SPDX-License-Identifier: Apache-2.0
"""A home of Spark whose Python processes start soon, and that starts no program for each file."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

import pyspark

_JAVA = Path(__file__).parent / "java"
_SITE = """<configuration>
<property><name>fs.file.impl</name><value>QuickFileSystem</value></property>
</configuration>
"""
_LOGGING = """rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
"""
_FIRST = ("scala-library-", "spark-core_", "spark-catalyst_", "spark-sql_", "hadoop-client-api-")
_LEFT_OUT = (
    "HikariCP", "JLargeArrays", "JTransforms", "ST4", "algebra", "antlr-runtime", "arpack", "blas",
    "breeze", "cats-kernel", "datanucleus", "derby", "hive-", "javax.jdo", "jdo-api", "jline",
    "kubernetes-", "lapack", "scala-compiler", "spark-hive", "spark-kubernetes", "spark-mllib",
    "spark-repl", "spire", "vertx-", "volcano-", "zjsonpatch",
)  # fmt: skip
"""The beginnings of names of jars that no test needs: Hive, Kubernetes, MLlib, Scala's shell."""

_FORKS = Path(__file__).parent / "spark" / "forks.py"
_PYTHON = """#!/bin/sh
case "$2" in
*.transform_with_state_driver_worker) exec {python} -IS {forks} {path} "$@";;
*) exec {python} "$@";;
esac
"""

_DEFAULTS = ("core-default.xml", "mapred-default.xml", "yarn-default.xml")
_UNUSED = (
    "fs.s3", "fs.azure", "fs.abfs", "fs.wasb", "fs.gs", "fs.ftp", "fs.adl", "ftp.", "ha.", "ipc.",
    "hadoop.http", "hadoop.registry", "hadoop.zk", "hadoop.security.kms", "hadoop.security.crypto",
    "hadoop.security.group.mapping.ldap", "mapreduce.client", "mapreduce.cluster", "mapreduce.job",
    "mapreduce.map.", "mapreduce.reduce.", "mapreduce.shuffle", "mapreduce.task", "yarn.",
)  # fmt: skip
"""The beginnings of settings of what no test uses: other file systems, servers and clusters."""


def make_spark_home(folder: Path) -> Path:
    """
    Fill a folder with links to the installed PySpark, but for its copy of itself as a zip file.

    Every Python that Spark starts looks there first, and compiles what it finds, which takes half
    a second; each start of a stream starts one. Without the zip they find what is installed.
    """
    installed = Path(pyspark.__file__).parent
    for entry in installed.iterdir():
        if entry.name not in ("python", "jars"):
            (folder / entry.name).symlink_to(entry)
    jars = folder / "jars"
    jars.mkdir()
    for jar in (installed / "jars").iterdir():
        if not jar.name.startswith(_LEFT_OUT):  # each name of a package is sought in every jar
            (jars / jar.name).symlink_to(jar)
    conf = folder / "conf"
    conf.mkdir()
    # Spark's own default makes all messages of less weight, and lets the last filter drop them.
    (conf / "log4j2.properties").write_text(_LOGGING, encoding="utf-8")
    _add_java(jars, conf)
    _put_first(jars, conf)
    _shorten_defaults(jars, conf)
    return folder


@contextmanager
def python_that_forks(folder: Path) -> Iterator[str]:
    """Yield a command that runs this Python, but a fork where a stream asks for its states."""
    path, command = folder / "forks", folder / "python3"
    given = {"python": sys.executable, "forks": str(_FORKS), "path": str(path)}
    quoted = {name: shlex.quote(text) for name, text in given.items()}
    command.write_text(_PYTHON.format_map(quoted), encoding="utf-8")
    command.chmod(0o755)
    arguments = [sys.executable, "-m", "tests.spark.forks", "--serve", str(path)]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE):  # which ends when this is closed
        yield str(command)


def _put_first(jars: Path, conf: Path) -> None:
    """Let Java look into the folder, then the jars with most classes, then the others."""
    found = [jar for name in _FIRST for jar in jars.glob(f"{name}*.jar")]
    first = ":".join(map(str, [conf, *found]))
    sides = (f"spark.{side}.extraClassPath {first}" for side in ("driver", "executor"))
    (conf / "spark-defaults.conf").write_text("\n".join(sides), encoding="utf-8")


def _shorten_defaults(jars: Path, conf: Path) -> None:
    """
    Leave settings of what no test uses out of Hadoop's defaults.

    Each task and each broadcast reads or writes them all, more than a thousand.
    """
    hadoop = next(jars.glob("hadoop-client-api-*.jar"), None)
    if hadoop is None:
        return
    with zipfile.ZipFile(hadoop) as jar:
        for name in _DEFAULTS:
            root = ElementTree.fromstring(jar.read(name))
            for setting in root.findall("property"):
                if (setting.findtext("name") or "").strip().startswith(_UNUSED):
                    root.remove(setting)
            ElementTree.ElementTree(root).write(conf / name, encoding="utf-8")


def _add_java(jars: Path, conf: Path) -> None:
    """
    Compile the classes of tests; let every Spark of this home set the permissions of files itself.

    Hadoop starts a chmod for each file, dozens a micro-batch. Without a Java compiler it still
    does, and threads without a session compile what they need.
    """
    compiler = shutil.which("javac")
    if compiler is None:
        return
    sources = map(str, sorted(_JAVA.glob("*.java")))
    needed = [
        jar
        for name in ("spark-", "scala-library-", "hadoop-client-api-")
        for jar in jars.glob(f"{name}*.jar")
    ]
    command = [compiler, "-proc:none", "-cp", ":".join(map(str, needed)), "-d", str(conf), *sources]
    if subprocess.run(command, capture_output=True, check=False).returncode == 0:
        (conf / "core-site.xml").write_text(_SITE, encoding="utf-8")
