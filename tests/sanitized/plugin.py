# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin that puts another build of the kernel in the place of the installed one."""

from __future__ import annotations

import os
import sys
from importlib.util import module_from_spec, spec_from_file_location

_NAME = "pyflinkcep.kernel._kernel"

_spec = spec_from_file_location(_NAME, os.environ["KERNEL_UNDER_TEST"])
assert _spec is not None
assert _spec.loader is not None
_module = module_from_spec(_spec)
_spec.loader.exec_module(_module)
sys.modules[_NAME] = _module
