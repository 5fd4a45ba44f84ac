"""The changes of a pipeline that are received and not confirmed: whole transactions in the order of their commits.

They can be read as often as they are needed until they are released. It is a copy of what the slot keeps: what is lost
of it with the process comes again. Records lie in chunks, in memory up to a bound and in files beyond it.
"""

from __future__ import annotations

import shutil
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from mvserver.errors import SqlError
from spark_sinks.postgresql.limits import CHUNK_BYTES, CHUNK_RECORDS, SPOOL_MEMORY_BYTES

# As spark_sinks.postgresql.metadata has it.
METADATA_ARROW = pa.struct([("lsn", pa.string()), ("transaction", pa.int64()), ("timestamp", pa.int64())])
RECORDS = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("position", pa.string()),
        ("record_time", pa.timestamp("us", "UTC")),
        ("metadata", METADATA_ARROW),
    ]
)


@dataclass
class RecordColumns:
    """Records as they are made, column by column."""

    keys: list[bytes | None] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    times_us: list[int] = field(default_factory=list)
    lsns: list[str] = field(default_factory=list)
    xids: list[int | None] = field(default_factory=list)
    size: int = 0  # about, in bytes

    def __len__(self) -> int:
        return len(self.values)

    def add(
        self,
        keys: Sequence[bytes | None],
        values: Sequence[bytes | None],
        places: Sequence[str],
        time_us: int,
        lsn: str,
        xid: int | None,
    ) -> None:
        """Of one transaction."""
        records = len(values)
        self.keys += keys
        self.values += values
        self.places += places
        self.times_us += [time_us] * records
        self.lsns += [lsn] * records
        self.xids += [xid] * records
        self.size += _size(keys, values)

    def cut(self, length: int) -> None:
        self.size -= _size(self.keys[length:], self.values[length:])
        for column in (self.keys, self.values, self.places, self.times_us, self.lsns, self.xids):
            del column[length:]

    def batch(self, first: int = 0, last: int | None = None) -> pa.RecordBatch:
        """Of the records from ``first`` to before ``last``, all by default."""
        part = slice(first, last)
        times_us = self.times_us[part]
        metadata = pa.StructArray.from_arrays(
            [
                pa.array(self.lsns[part], pa.string()),
                pa.array(self.xids[part], pa.int64()),
                pa.array([time_us // 1000 for time_us in times_us], pa.int64()),
            ],
            fields=list(METADATA_ARROW),
        )
        return pa.RecordBatch.from_arrays(
            [
                pa.array(self.keys[part], pa.binary()),
                pa.array(self.values[part], pa.binary()),
                pa.array(self.places[part], pa.string()),
                pa.array(times_us, pa.int64()).cast(pa.timestamp("us", "UTC")),
                metadata,
            ],
            schema=RECORDS,
        )


def _size(keys: Sequence[bytes | None], values: Sequence[bytes | None]) -> int:
    return sum(map(len, filter(None, keys))) + sum(map(len, filter(None, values))) + 64 * len(values)


def write_chunk(path: Path, batch: pa.RecordBatch) -> None:
    """The whole file, or none."""
    try:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, RECORDS) as writer:
            writer.write_batch(batch)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def read_chunk(path: Path) -> pa.RecordBatch:
    with pa.memory_map(str(path), "rb") as file:
        return pa.ipc.open_file(file).get_batch(0)


@dataclass(frozen=True)
class Barrier:
    """A transaction that nobody may read, and why. Its commit begins at ``commit_lsn``: a position there is before it
    also for the server, which one between the two would not be."""

    commit_lsn: int
    end_lsn: int
    error: SqlError

    def up_to(self, lsn: int) -> Barrier:
        return replace(self, end_lsn=min(self.end_lsn, lsn))


@dataclass(frozen=True)
class _Chunk:
    """``before``: the bytes of all chunks before it that there have been."""

    first: int  # the number of its first record
    records: int
    before: int
    bytes: int
    batch: pa.RecordBatch | None
    path: Path | None = None

    @property
    def end(self) -> int:
        return self.first + self.records

    def read(self) -> pa.RecordBatch:
        if self.batch is not None:
            return self.batch
        assert self.path is not None  # noqa: S101 - either is there
        return read_chunk(self.path)


class Spool:
    """One thread adds, others read. ``start`` is the LSN from which on all is here, as far as it was received."""

    def __init__(self, folder: Path, start: int, *, memory_bytes: int = SPOOL_MEMORY_BYTES) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self._folder = folder
        self._memory_bytes = memory_bytes
        self._lock = threading.RLock()
        self._grown = threading.Condition(self._lock)
        self._chunks: list[_Chunk] = []
        self._in_memory = 0  # bytes of chunks
        self._released_bytes = 0  # of the chunks that were here before those
        self._open = RecordColumns()
        self._open_first = 0
        self._ends: list[int] = []  # of transactions that have records
        self._counts: list[int] = []  # the number of the record behind each of them
        self._base = 0  # the number of the record behind what is released
        self._written = 0  # files, for their names
        self._barriers: list[Barrier] = []
        self._start = start
        self._received = start
        self._version = 0
        self._closed = False

    # --- adding ---------------------------------------------------------------------------------------------------
    def add(self, key: bytes | None, value: bytes | None, place: str, time_us: int, lsn: str, xid: int | None) -> None:
        """A record of the transaction under way, which nobody sees before :meth:`commit`."""
        self.extend([key], [value], [place], time_us, lsn, xid)

    def extend(
        self,
        keys: Sequence[bytes | None],
        values: Sequence[bytes | None],
        places: Sequence[str],
        time_us: int,
        lsn: str,
        xid: int | None,
    ) -> None:
        """Many of them."""
        with self._lock:
            self._open.add(keys, values, places, time_us, lsn, xid)
            if len(self._open) >= CHUNK_RECORDS or self._open.size >= CHUNK_BYTES:
                self._seal()

    def commit(self, end_lsn: int) -> None:
        with self._lock:
            number = self._open_first + len(self._open)
            if number > self._committed:
                self._ends.append(end_lsn)
                self._counts.append(number)
            self._received = max(self._received, end_lsn)
            self.wake()

    def roll_back(self) -> None:
        """The connection has ended within a transaction, which will come again."""
        with self._lock:
            self._cut(self._committed)

    def rewind(self, lsn: int) -> None:
        """All that was received behind it comes again. Nothing is to be under way."""
        with self._lock:
            kept = bisect_right(self._ends, lsn)
            del self._ends[kept:], self._counts[kept:]
            self._cut(self._committed)
            self._received = max(self._start, min(self._received, lsn))
            self._barriers = [each.up_to(lsn) for each in self._barriers if each.commit_lsn < lsn]
            self.wake()

    @property
    def _committed(self) -> int:
        """The number of the record behind the last transaction."""
        return self._counts[-1] if self._counts else self._base

    def _cut(self, kept: int) -> None:
        """Records from this number on go."""
        while self._chunks and self._chunks[-1].end > kept:
            last = self._chunks[-1]
            part = last.read().slice(0, kept - last.first) if last.first < kept else None
            self._chunks.pop()
            self._remove(last)
            if part is not None:
                self._keep(_Chunk(last.first, part.num_rows, last.before, part.nbytes, part))
            self._open, self._open_first = RecordColumns(), kept
        if self._open_first + len(self._open) > kept:
            self._open.cut(kept - self._open_first)

    def received(self, lsn: int) -> None:
        """All that committed before is here."""
        with self._lock:
            if lsn > self._received:
                self._received = lsn
                self.wake()

    def stop_before(self, barrier: Barrier) -> None:
        """Nobody reads beyond this transaction, whose records are rolled back: who stands before it is told why. One
        that follows another for the same reason, and nothing between them, is one with it."""
        with self._lock:
            last = self._barriers[-1] if self._barriers else None
            if last is not None and last.error.message == barrier.error.message and self._is_last(last):
                self._barriers[-1] = replace(last, end_lsn=barrier.end_lsn)
            else:
                self._barriers.append(barrier)
            self._received = max(self._received, barrier.end_lsn)
            self.wake()

    def _is_last(self, barrier: Barrier) -> bool:
        return not self._ends or self._ends[-1] <= barrier.end_lsn

    def _seal(self) -> None:
        if not len(self._open):
            return
        batch, before = self._open.batch(), self._sealed_bytes
        chunk = _Chunk(self._open_first, len(self._open), before, batch.nbytes, batch)
        if self._in_memory + chunk.bytes > self._memory_bytes:
            path = self._folder / f"{self._written:012d}.arrow"
            write_chunk(path, batch)
            self._written += 1
            chunk = replace(chunk, batch=None, path=path)
        self._keep(chunk)
        self._open_first += len(self._open)
        self._open = RecordColumns()

    def _keep(self, chunk: _Chunk) -> None:
        self._chunks.append(chunk)
        if chunk.batch is not None:
            self._in_memory += chunk.bytes

    def _remove(self, chunk: _Chunk) -> None:
        if chunk.batch is not None:
            self._in_memory -= chunk.bytes
        if chunk.path is not None:
            chunk.path.unlink(missing_ok=True)

    @property
    def _sealed_bytes(self) -> int:
        """Of all chunks that there have been."""
        return self._chunks[-1].before + self._chunks[-1].bytes if self._chunks else self._released_bytes

    # --- reading --------------------------------------------------------------------------------------------------
    @property
    def start(self) -> int:
        with self._lock:
            return self._start

    @property
    def end(self) -> int:
        """All that committed before is here."""
        with self._lock:
            return self._received

    @property
    def closed(self) -> bool:
        """Nothing comes any more."""
        return self._closed

    @property
    def bytes(self) -> int:
        """Of all that is kept, about."""
        with self._lock:
            return self._sealed_bytes - self._released_bytes + self._open.size

    def bytes_behind(self, lsn: int) -> int:
        """Of the whole transactions behind it, about."""
        with self._lock:
            first, last = self._number(lsn), self._committed
            return self._bytes_before(last) - self._bytes_before(first) if last > first else 0

    def _bytes_before(self, number: int) -> int:
        """Of records. A chunk that it lies in counts as a whole."""
        if number > self._open_first:
            return self._sealed_bytes + self._open.size
        at = bisect_left(self._chunks, number, key=lambda chunk: chunk.first)
        return self._chunks[at].before if at < len(self._chunks) else self._sealed_bytes

    @property
    def version(self) -> int:
        """Grows with each thing that those who wait may wait for."""
        with self._lock:
            return self._version

    def wait(self, seen: int, timeout_s: float) -> None:
        """Until the version is another one than was seen."""
        with self._lock:
            self._grown.wait_for(lambda: self._version != seen, timeout_s)

    def wake(self) -> None:
        with self._lock:
            self._version += 1
            self._grown.notify_all()

    def count(self, start: int, end: int) -> int | None:
        """How many records are between; None where not all of that is here."""
        with self._lock:
            if start < self._start or end > self._received:
                return None
            return self._number(end) - self._number(start)

    def limited(self, start: int, end: int, records: int) -> int | None:
        """The end of a transaction at most so many records behind ``start``, or of the first one where that is larger,
        and not behind ``end``; None where not all of that is here."""
        with self._lock:
            if start < self._start or end > self._received:
                return None
            first = bisect_right(self._ends, start)
            last = bisect_right(self._ends, end)
            if first == last or self._number(end) - self._number(start) <= records:
                return end
            wanted = self._number(start) + records
            at = max(first, bisect_right(self._counts, wanted, first, last) - 1)
            return self._ends[at]

    def barrier(self, start: int) -> Barrier | None:
        """The first transaction behind ``start`` that nobody may read."""
        with self._lock:
            return next((each for each in self._barriers if each.end_lsn > start), None)

    def table(self, start: int, end: int) -> Sequence[pa.RecordBatch]:
        """The records of the transactions between, in order."""
        with self._lock:
            first, last = self._number(start), self._number(end)
            found = []
            for at in range(bisect_right(self._chunks, first, key=lambda chunk: chunk.end), len(self._chunks)):
                chunk = self._chunks[at]
                if chunk.first >= last:
                    break
                low, high = max(first, chunk.first), min(last, chunk.end)
                found.append(chunk.read().slice(low - chunk.first, high - low))
            low = max(first, self._open_first)
            if low < last:
                found.append(self._open.batch(low - self._open_first, last - self._open_first))
            return found

    def release(self, lsn: int) -> None:
        """Nobody reads what is before it any more."""
        with self._lock:
            if lsn <= self._start:
                return
            number = self._number(lsn)
            gone = bisect_right(self._ends, lsn)
            del self._ends[:gone], self._counts[:gone]
            self._base, self._start = number, lsn
            self._received = max(self._received, lsn)
            self._barriers = [each for each in self._barriers if each.end_lsn > lsn]
            whole = bisect_right(self._chunks, number, key=lambda chunk: chunk.end)
            for chunk in self._chunks[:whole]:
                self._remove(chunk)
            self._released_bytes = self._chunks[whole].before if whole < len(self._chunks) else self._sealed_bytes
            del self._chunks[:whole]
            if number == self._open_first + len(self._open):
                self._open, self._open_first = RecordColumns(), number

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._chunks.clear()
            self._open = RecordColumns()
            self.wake()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _number(self, lsn: int) -> int:
        """Of the first record that is not before ``lsn``."""
        at = bisect_right(self._ends, lsn)
        return self._counts[at - 1] if at else self._base
