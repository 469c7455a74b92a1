# SPDX-License-Identifier: Apache-2.0
"""A log of rules that workers read, and what buckets have applied of it: which rules are needed."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import attrs

from pyflinkcep.rules.rule_lives import StoredLives, changes_of, digest_of, document_of
from pyflinkcep.rules.rule_log import RuleLog, texts_of
from pyflinkcep.spark.worker.runtime import run_of_query


@attrs.frozen
class NotedLog:
    """
    A log on the machine on which all workers run, with notes of what buckets have applied.

    The publications of a micro-batch were in the folder before its events are packed. What was
    applied before, and which versions of it may still see events, is in the operator's state alone,
    which is not read where events are packed: so each bucket copies what it stores of rules, for
    the micro-batches that follow in the same run. An older copy is no less safe: a version that it
    does not have comes from a publication that it does not have.
    """

    log: RuleLog
    notes: str  # A folder for these: for each run one, with a file for each bucket

    def note(self, bucket: int, stored: bytes | None) -> None:
        """Copy what a bucket stores of rules."""
        folder = self._folder()
        if folder is None:
            return
        data = stored or b""
        with suppress(OSError):
            if _read(folder / str(bucket)) != data:
                folder.mkdir(parents=True, exist_ok=True)
                hidden = folder / f".{uuid.uuid4().hex}"
                hidden.write_bytes(data)
                hidden.replace(folder / str(bucket))

    def needed(self, buckets: int) -> tuple[str, ...] | None:
        """Return the rules that may see events of this micro-batch; None if that is not known."""
        folder = self._folder()
        if folder is None:
            return None
        notes = [_read(folder / str(bucket)) for bucket in range(buckets)]
        known = _known(tuple(sorted({note for note in notes if note is not None})))
        if not known:
            return None
        if None not in notes:
            return _needed(known, texts_of(self.log, min(one.applied[0] for one in known)))
        # A bucket that has had no events since the start may hold what the others have forgotten.
        texts = texts_of(self.log)
        is_as_it_was = all(_is_of(texts, *one.applied) for one in known)
        return _published(texts) if is_as_it_was else None

    def _folder(self) -> Path | None:
        run = run_of_query()
        if run is None:
            return None
        return Path(self.notes, hashlib.blake2b(run.encode(), digest_size=16).hexdigest())


def _read(path: Path) -> bytes | None:
    with suppress(OSError):
        return path.read_bytes()
    return None


@lru_cache(maxsize=4)
def _known(notes: tuple[bytes, ...]) -> Sequence[StoredLives]:
    return tuple(StoredLives.of(note or None) for note in notes)


@lru_cache(maxsize=4)
def _needed(known: Sequence[StoredLives], texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the rules that some bucket may need, if these publications may come."""
    return tuple(dict.fromkeys(document for one in known for document in one.needed(texts)))


@lru_cache(maxsize=4)
def _published(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return all rules that publications bring."""
    changes = (change for change in changes_of(texts) if change.change == "publish")
    return tuple(dict.fromkeys(map(document_of, changes)))


@lru_cache(maxsize=16)
def _is_of(texts: tuple[str, ...], number: int, digest: str | None) -> bool:
    """Whether the first publications are those that some number and digest stand for."""
    return number <= len(texts) and digest_of(texts[:number]) == digest
