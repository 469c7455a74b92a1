# SPDX-License-Identifier: Apache-2.0
"""The part of the build that setup.cfg cannot say: the compiled kernel."""

import configparser
import os
import re
import runpy
import sysconfig
import tempfile
from glob import glob
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError, LinkError

FLAGS = {
    "unix": ["-std=c11", "-Wall", "-Wextra", "-fvisibility=hidden"],
    "msvc": ["/std:c11", "/W3"],
}
# Functions are small, and in many files: inlining across them makes the kernel 5 to 20 % faster.
WHOLE_PROGRAM = {"unix": ["-flto=auto", "-flto"]}

# Written into the kernel, so that one of other sources is refused.
SOURCES = runpy.run_path("pyflinkcep/kernel/sources.py")["fingerprint"]()

# One build for Python 3.11 and all later versions; builds without the GIL have no stable ABI yet.
STABLE_ABI = not sysconfig.get_config_var("Py_GIL_DISABLED")
LIMITED_API = [("Py_LIMITED_API", "0x030B0000")] if STABLE_ABI else []


class BuildKernel(build_ext):
    """Build the kernel with the flags that the compiler at hand takes."""

    def build_extension(self, ext):
        """Build one extension, again if the last build was of other sources."""
        built = Path(self.get_ext_fullpath(ext.name))
        self.force = self.force or not (built.exists() and SOURCES.encode() in built.read_bytes())
        kind = self.compiler.compiler_type
        asked = os.environ.get("CFLAGS", "")
        wanted = [] if "-fno-lto" in asked else WHOLE_PROGRAM.get(kind, [])
        whole = [flag for flag in wanted if self._takes(flag)][:1]
        # Python's own flags ask for debug symbols, which make the kernel six times as large.
        wants_symbols = any(flag.startswith("-g") for flag in asked.split())
        symbols = ["-g0"] if kind == "unix" and not wants_symbols else []
        ext.extra_compile_args = [*FLAGS.get(kind, []), *whole, *symbols, *ext.extra_compile_args]
        ext.extra_link_args = [*whole, *ext.extra_link_args]
        super().build_extension(ext)

    def copy_extensions_to_source(self):
        """Put the kernel beside its sources, in the place of any that was built before."""
        for old in glob("pyflinkcep/kernel/_kernel.*"):  # one for a single version would hide it
            if not old.endswith(".pyi"):
                Path(old).unlink()
        super().copy_extensions_to_source()

    def _takes(self, flag):
        """Whether the compiler and its linker know a flag."""
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "empty.c"
            source.write_text("int nothing(void) { return 0; }\n")
            try:
                objects = self.compiler.compile(
                    [str(source)], output_dir=folder, extra_postargs=[flag, "-Werror"]
                )
                self.compiler.link_shared_object(
                    objects, str(Path(folder) / "empty.so"), extra_postargs=[flag]
                )
            except (CompileError, LinkError):
                return False
        return True


def description():
    """Return the README with links that lead somewhere from an index's page too."""
    config = configparser.ConfigParser()
    config.read("setup.cfg", encoding="utf-8")
    package = Path("pyflinkcep/__init__.py").read_text(encoding="utf-8")
    version = re.search(r'^__version__ = "(.*)"', package, re.MULTILINE)[1]
    files = f"{config['metadata']['url']}/blob/v{version}/"
    text = Path("README.md").read_text(encoding="utf-8")
    text = re.sub(r"(!\[[^]]*\]\()(?!https?:|#)([^)]*)", rf"\1{files}\2?raw=true", text)
    return re.sub(r"(\]\()(?!https?:|#)", rf"\1{files}", text)


setup(
    long_description=description(),
    cmdclass={"build_ext": BuildKernel},
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if STABLE_ABI else {},
    ext_modules=[
        Extension(
            "pyflinkcep.kernel._kernel",
            sorted(glob("pyflinkcep/kernel/src/**/*.c", recursive=True)),
            depends=sorted(glob("pyflinkcep/kernel/src/**/*.h", recursive=True)),
            include_dirs=["pyflinkcep/kernel/src"],
            define_macros=[("KERNEL_SOURCES", SOURCES), *LIMITED_API],
            py_limited_api=STABLE_ABI,
            optional=True,  # without a compiler the package runs on the plain path
        )
    ],
)
