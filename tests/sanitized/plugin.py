# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin that puts the build named by KERNEL_UNDER_TEST in the installed kernel's place."""

from __future__ import annotations

import os
import sys
from importlib.util import module_from_spec, spec_from_file_location

_NAME = "pyflinkcep.kernel._kernel"


def use_kernel(path: str) -> None:
    """Load the compiled kernel from a file; must run before anything imports it."""
    spec = spec_from_file_location(_NAME, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[_NAME] = module


if "KERNEL_UNDER_TEST" in os.environ:  # else this is the suite that collects doctests
    use_kernel(os.environ["KERNEL_UNDER_TEST"])
