# SPDX-License-Identifier: Apache-2.0
"""
The compiled matching core: the same tables, buffer, answers and state as in Python, faster.

It is built with the package if a C compiler is available. Without it, or if the environment
variable ``PYFLINKCEP_KERNEL`` is ``0``, everything runs on the plain path in Python.
``docs/kernel-mirrors.md`` names the mirror of each file, and which module hands plans to it.
"""
