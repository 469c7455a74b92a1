# SPDX-License-Identifier: Apache-2.0
"""Random cases that are quicker than a test of pytest's is: many of them are one test."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any


def each_seed(count: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test with ``seed`` 0, 1, 2 … in turn; an error says with which."""

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def run(**fixtures: Any) -> None:
            for seed in range(count):
                try:
                    test(seed=seed, **fixtures)
                except BaseException as error:
                    error.add_note(f"seed {seed}")
                    raise

        signature = inspect.signature(test)
        others = [one for name, one in signature.parameters.items() if name != "seed"]
        vars(run)["__signature__"] = signature.replace(parameters=others)  # pytest asks for it
        return run

    return decorate
