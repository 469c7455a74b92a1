# SPDX-License-Identifier: Apache-2.0
"""The part of the build that setup.cfg cannot say: the compiled kernel."""

from glob import glob

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

FLAGS = {
    "unix": ["-std=c11", "-Wall", "-Wextra", "-fvisibility=hidden"],
    "msvc": ["/std:c11", "/W3"],
}


class BuildKernel(build_ext):
    """Build the kernel with the flags that the compiler at hand takes."""

    def build_extension(self, ext):
        """Build one extension."""
        flags = FLAGS.get(self.compiler.compiler_type, [])
        ext.extra_compile_args = [*flags, *ext.extra_compile_args]
        super().build_extension(ext)


setup(
    cmdclass={"build_ext": BuildKernel},
    ext_modules=[
        Extension(
            "pyflinkcep.kernel._kernel",
            sorted(glob("pyflinkcep/kernel/src/*.c")),
            depends=sorted(glob("pyflinkcep/kernel/src/*.h")),
            optional=True,  # without a compiler the package runs on the plain path
        )
    ],
)
