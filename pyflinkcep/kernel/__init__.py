# SPDX-License-Identifier: Apache-2.0
"""
The matching core once more, compiled: the same tables, buffer, answers and state, faster.

It is built with the package where there is a C compiler. Where there is none, or where the
environment variable ``PYFLINKCEP_KERNEL`` is ``0``, everything runs on the plain path in Python.
"""

from pyflinkcep.kernel.bridge import Kernel, make_kernel, why_plain

__all__ = ["Kernel", "make_kernel", "why_plain"]
