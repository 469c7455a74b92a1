# SPDX-License-Identifier: Apache-2.0
"""Workers collect no garbage among modules."""

from __future__ import annotations

import gc

from pyflinkcep.spark.worker.runtime import prepare_worker


def test_what_is_loaded_is_left_alone_once() -> None:
    """What exists at the first task is in no collection any more; later objects are."""
    prepare_worker.cache_clear()
    before = gc.get_freeze_count()
    try:
        prepare_worker()
        loaded = gc.get_freeze_count()
        later: list[object] = []
        later.append(later)
        prepare_worker()

        assert loaded > before
        assert gc.get_freeze_count() <= loaded
        assert any(found is later for found in gc.get_objects())
    finally:
        gc.unfreeze()
