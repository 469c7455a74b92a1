# SPDX-License-Identifier: Apache-2.0
"""A log of rules that workers read, if what the operator has applied is known to be of it."""

from __future__ import annotations

import hashlib
import uuid
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import attrs

from pyflinkcep.rules.rule_lives import digest_of
from pyflinkcep.rules.rule_log import RuleLog, texts_of
from pyflinkcep.spark.worker.runtime import run_of_query


@attrs.frozen
class NotedLog:
    """
    A log on the machine on which all workers run, with notes of what buckets have applied.

    The publications of a micro-batch were in the folder before its events are packed. What was
    applied before may no longer be there, or be another log's, of which only the operator's state
    knows: so buckets write down how far they are, for the next micro-batch of the same run.
    """

    log: RuleLog
    notes: str  # A folder for these, with a file for each run

    def note(self, number: int, digest: str | None) -> None:
        """Write down how many publications are applied, and what stands for their texts."""
        path = self._note()
        if path is None or digest is None:
            return
        text = f"{number} {digest}"
        with suppress(OSError):
            if _read(path) != text:
                hidden = path.with_name(f".{uuid.uuid4().hex}")
                hidden.write_text(text)
                hidden.replace(path)

    def texts(self) -> tuple[str, ...] | None:
        """Return the publications, if those that are applied are among them as they were."""
        path = self._note()
        note = None if path is None else _read(path)
        if note is None:
            return None
        number, digest = note.split(" ")
        texts = texts_of(self.log)
        return texts if _digest_after(texts, int(number)) == digest else None

    def _note(self) -> Path | None:
        run = run_of_query()
        if run is None:
            return None
        return Path(self.notes, hashlib.blake2b(run.encode(), digest_size=16).hexdigest())


def _read(path: Path) -> str | None:
    with suppress(OSError):
        return path.read_text()
    return None


@lru_cache(maxsize=16)
def _digest_after(texts: tuple[str, ...], number: int) -> str | None:
    """Return what stands for the first texts; None if there are fewer."""
    return digest_of(texts[:number]) if number <= len(texts) else None
