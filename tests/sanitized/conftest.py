# SPDX-License-Identifier: Apache-2.0
"""Leave this folder to the runs that swap the kernel: only they set KERNEL_UNDER_TEST."""

from __future__ import annotations

import os

if "KERNEL_UNDER_TEST" not in os.environ:  # the whole suite, which imports files for doctests
    collect_ignore = ["check_out_of_memory.py", "plugin.py"]
