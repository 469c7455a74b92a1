# SPDX-License-Identifier: Apache-2.0
"""
The compiled kernel under the address and undefined-behaviour sanitizers.

``python -m tests.sanitized`` builds the kernel into a temporary folder, in a form that lets tests
make allocations fail, and runs the checks against it: the recorded cases, random patterns and
expressions, damaged state, and memory that runs out. ``--quick`` takes fewer random examples.
"""
