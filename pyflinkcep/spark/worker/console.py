# SPDX-License-Identifier: Apache-2.0
"""Silences what PySpark prints to the driver's console whatever the log level."""

from __future__ import annotations

import sys

__all__ = ["quiet_planning"]


def quiet_planning() -> None:
    """
    Silence what PySpark prints while a stateful query is planned.

    For the first micro-batch Spark starts a worker only for the driver, which prints every step to
    the driver's console. In any other process this does nothing.
    """
    main = sys.modules["__main__"]
    if getattr(main.__spec__, "name", "").endswith("transform_with_state_driver_worker"):
        vars(main)["print"] = lambda *_, **__: None
