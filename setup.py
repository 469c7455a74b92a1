# SPDX-License-Identifier: Apache-2.0
"""The part of the build that setup.cfg cannot say: the compiled kernel."""

from glob import glob

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "pyflinkcep.kernel._kernel",
            sorted(glob("pyflinkcep/kernel/src/*.c")),
            depends=["pyflinkcep/kernel/src/kernel.h"],
            extra_compile_args=["-std=c11", "-fvisibility=hidden"],
            optional=True,  # without a compiler the package runs on the plain path
        )
    ]
)
