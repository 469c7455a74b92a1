# SPDX-License-Identifier: Apache-2.0
"""What PySpark prints to the driver's console, which no log level keeps away."""

from __future__ import annotations

import sys

__all__ = ["quiet_planning"]


def quiet_planning() -> None:
    """
    Silence what PySpark prints about a stateful query that is being planned.

    For the first micro-batch Spark starts a worker for the driver alone, which prints every step
    to the driver's console whatever the log level. In any other process this does nothing.
    """
    main = sys.modules["__main__"]
    if getattr(main.__spec__, "name", "").endswith("transform_with_state_driver_worker"):
        vars(main)["print"] = lambda *_, **__: None
