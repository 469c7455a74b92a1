# SPDX-License-Identifier: Apache-2.0
"""A home of Spark whose Python processes start soon, and that starts no program for each file."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path

import pyspark

__all__ = ["make_spark_home"]

_QUICK_FILES = Path(__file__).parent / "java" / "QuickFileSystem.java"
_SITE = """<configuration>
<property><name>fs.file.impl</name><value>QuickFileSystem</value></property>
</configuration>
"""


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
        (jars / jar.name).symlink_to(jar)
    _add_quick_files(jars, folder / "classes")
    return folder


def _add_quick_files(jars: Path, classes: Path) -> None:
    """
    Let every Spark with these jars set the permissions of files itself.

    Hadoop starts a chmod for each file, dozens a micro-batch. Without a Java compiler it still
    does. It is a jar, since a JVM that reads folders cannot save its classes.
    """
    compiler, hadoop = shutil.which("javac"), next(jars.glob("hadoop-client-api-*.jar"), None)
    if compiler is None or hadoop is None:
        return
    command = [compiler, "-proc:none", "-cp", str(hadoop), "-d", str(classes), str(_QUICK_FILES)]
    if subprocess.run(command, capture_output=True, check=False).returncode == 0:
        with zipfile.ZipFile(jars / "quick-files.jar", "w") as jar:
            for file in classes.iterdir():
                jar.write(file, file.name)
            jar.writestr("core-site.xml", _SITE)
