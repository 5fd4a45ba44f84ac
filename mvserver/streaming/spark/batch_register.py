"""The batches under evaluation, kept so that the next start of the server can read them whatever ended this one.

The register is a file that is mapped into memory: noting a batch is a copy of some hundred bytes, with no call to the
system, and what was copied outlives the process. Only the end of the machine loses it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import mmap
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mvserver import limits
from mvserver.errors import SqlError
from spark_sinks.base import Position, Positions
from spark_sinks.duckdb.ledger.ledger import encode

_log = logging.getLogger(__name__)

_SLOT_BYTES = 1024
_EMPTY = b"\0"
_USED = 2  # in the last slot, which has no batch: a server runs, or has not ended in order


@dataclass(frozen=True)
class Batch:
    """Records that are evaluated together. ``source`` is the id of a pipeline, or of a query that writes.

    ``start`` is where they begin and ``end`` where they end; None where that was too long to be noted. ``place`` is a
    digest of the start. ``records`` says about how many they are; None where nobody knows.
    """

    source: str
    place: str
    start: Position | None
    end: Position | None = None
    records: int | None = None

    @classmethod
    def of(cls, source: str, start: Position, end: Position | None = None, records: int | None = None) -> Batch:
        return cls(source, hashlib.blake2b(encode(start).encode(), digest_size=16).hexdigest(), start, end, records)

    @property
    def is_small(self) -> bool:
        """As batches on probation are."""
        return self.records is not None and self.records <= limits.PROBATION_RECORDS_MAX

    def is_in(self, positions: Positions, start: Position, end: Position) -> bool:
        """Whether a batch from ``start`` to ``end`` has the first of these records in it."""
        if self.start is None:
            return self.place == Batch.of(self.source, start).place
        try:
            return positions.reached(self.start, start) and not positions.reached(self.start, end)
        except SqlError:  # of a topic that was made anew: they are not there any more
            return False

    def as_json(self) -> Mapping[str, object]:
        return {
            "source": self.source,
            "place": self.place,
            "start": self.start,
            "end": self.end,
            "records": self.records,
        }

    @classmethod
    def of_json(cls, known: Mapping[str, Any]) -> Batch:
        """Raises KeyError or TypeError for what is none."""
        return cls(str(known["source"]), str(known["place"]), known["start"], known.get("end"), known.get("records"))


class BatchRegister:
    """Safe for any number of threads."""

    def __init__(self, path: Path) -> None:
        size = (limits.BATCHES_IN_PROGRESS_MAX + 1) * _SLOT_BYTES
        self._map = _mapped(path, size)
        self.left = self._read()
        """Those that were under way when the former server ended."""
        self.was_killed = self._map[size - _SLOT_BYTES] == _USED
        """Whether that server did not end in order."""
        self._map[:] = bytes(size)
        self._lock = threading.Lock()
        self._free = list(range(limits.BATCHES_IN_PROGRESS_MAX))
        self._under_way: dict[int, tuple[Batch, int | None]] = {}
        self._next = 0
        self._closed = False

    def use(self) -> None:
        """From now on an end that is not in order is somebody's doing. A start that fails before is none."""
        self._map[len(self._map) - _SLOT_BYTES] = _USED

    def begin(self, batch: Batch) -> int:
        """A number for :meth:`end`."""
        with self._lock:
            number = self._next
            self._next += 1
            slot = self._free.pop() if self._free and not self._closed else None
            self._under_way[number] = (batch, slot)
            if slot is not None:
                self._write(slot, _noted(batch))
            return number

    def end(self, number: int) -> None:
        with self._lock:
            _, slot = self._under_way.pop(number)
            if slot is not None:
                self._map[slot * _SLOT_BYTES] = 0
                self._free.append(slot)

    def under_way(self) -> Sequence[Batch]:
        with self._lock:
            return [batch for batch, _ in self._under_way.values()]

    def close(self) -> None:
        """Of a server that ends in order: nothing is under way, and what may still begin is not noted."""
        with self._lock:
            self._closed = True
            self._map[:] = bytes(len(self._map))

    def _write(self, slot: int, noted: bytes) -> None:
        at = slot * _SLOT_BYTES
        self._map[at + 1 : at + 1 + len(noted)] = noted
        self._map[at] = 1  # last, so that a slot is whole or empty

    def _read(self) -> Sequence[Batch]:
        found = []
        for at in range(0, len(self._map), _SLOT_BYTES):
            if self._map[at] == 1:
                text = self._map[at + 1 : at + _SLOT_BYTES].split(_EMPTY, 1)[0]
                with contextlib.suppress(ValueError, KeyError, TypeError):  # of a damaged file: nothing is blamed
                    found.append(Batch.of_json(json.loads(text)))
        return found


def _mapped(path: Path, size: int) -> mmap.mmap:
    """The file in memory. Its space is taken now: a write into a page for which the disk has no room ends the process.
    Where there is no room the register lasts as long as the process."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b") as file:
            file.write(bytes(max(0, size - os.fstat(file.fileno()).st_size)))
            file.flush()
            return mmap.mmap(file.fileno(), size)
    except OSError as error:
        _log.warning("%s cannot be used: %s", path, error.strerror)
        return mmap.mmap(-1, size)


def _noted(batch: Batch) -> bytes:
    shorter = (batch, replace(batch, end=None), replace(batch, start=None, end=None))
    texts = [json.dumps(each.as_json()).encode() for each in shorter]
    return next((text for text in texts if len(text) <= _SLOT_BYTES - 2), texts[-1]) + _EMPTY
