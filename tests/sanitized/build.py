# SPDX-License-Identifier: Apache-2.0
"""Build a sanitized kernel, and find what running it needs."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FLAGS = "-g1 -fno-lto -fno-omit-frame-pointer -UNDEBUG -Werror"
_OF_ADDRESSES = (
    "-O0 -DPYFLINKCEP_TEST_ALLOCATIONS -fsanitize=address,undefined -fno-sanitize-recover=all"
)
_OF_THREADS = "-O1 -fsanitize=thread"


def compiler() -> str:
    """Return the command of the C compiler that extensions are built with."""
    return os.environ.get("CC") or str(sysconfig.get_config_var("CC") or "cc")


def preloaded(of_threads: bool = False) -> Path | None:
    """Return the sanitizer's library, which must be loaded first; None if there is none."""
    return _library("libtsan.so" if of_threads else "libasan.so")


def _library(name: str) -> Path | None:
    """Return a library that the compiler brings, or knows; None if there is none."""
    command = [*shlex.split(compiler()), f"-print-file-name={name}"]
    try:
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    library = Path(printed.strip()).resolve()
    return library if library.is_absolute() and library.is_file() else None


def build(folder: Path, of_threads: bool = False) -> Path:
    """Build the kernel into a folder; return the library."""
    flags = f"{_FLAGS} {_OF_THREADS if of_threads else _OF_ADDRESSES}"
    command = [sys.executable, "setup.py", "-q", "build_ext"]
    command += ["--build-lib", str(folder), "--build-temp", str(folder / "objects")]
    subprocess.run(command, cwd=ROOT, check=True, env={**os.environ, "CFLAGS": flags})
    (library,) = (folder / "pyflinkcep" / "kernel").glob("_kernel*")
    return library


def environment(library: Path, preload: Path) -> dict[str, str]:
    """Return the environment for a process that is to use a sanitized kernel."""
    return {
        **os.environ,
        # With C++'s library, without which a sanitizer ends a process in which Arrow throws.
        "LD_PRELOAD": " ".join(map(str, filter(None, [preload, _library("libstdc++.so.6")]))),
        "PYTHONMALLOC": "malloc",  # Python's own allocator would hide the blocks' bounds
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",  # checked without it
        "UBSAN_OPTIONS": "print_stacktrace=1",
        # Without instrumented libraries only what the kernel itself does is known.
        "TSAN_OPTIONS": "halt_on_error=1:ignore_noninstrumented_modules=1",
        "PYFLINKCEP_KERNEL": "1",
        "KERNEL_UNDER_TEST": str(library),
    }
