"""Results on their way to the client, and the portals that may be read in parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from mvserver import limits
from mvserver.front import KeptRows, Result
from mvserver.pgwire.rows import RowFramer


class Framer(Protocol):
    def frame(self, batch: Any) -> bytes | memoryview:
        """All rows of an Arrow batch as messages."""


class RowStream:
    """A result being read: pulls a batch at a time, and frames it in pieces of bounded size.

    ``pull`` runs the session's work; ``take`` only encodes what was pulled.
    """

    def __init__(self, result: Result, framer: Framer) -> None:
        self.result = result
        self._framer = framer
        self._batch: Any = None
        self._at = 0
        self._piece = 0
        self.ended = False  # there are no more rows

    @property
    def drained(self) -> bool:
        """True when the pulled batch is used up."""
        return self._batch is None

    def pull(self) -> bool:
        """The next batch that has rows; False at the end."""
        for batch in self.result.batches:
            if batch.num_rows:
                self._batch, self._at = batch, 0
                size = max(1, batch.nbytes // batch.num_rows)
                self._piece = max(1, min(limits.RESULT_CHUNK_ROWS, limits.RESULT_CHUNK_BYTES // size))
                return True
        self.ended = True
        return False

    def take(self, most: int | None) -> tuple[bytes | memoryview, int]:
        """Up to ``most`` rows as messages, and how many."""
        rows = min(self._piece, self._batch.num_rows - self._at)
        if most is not None:
            rows = min(rows, most)
        whole = self._at == 0 and rows == self._batch.num_rows
        framed = self._framer.frame(self._batch if whole else self._batch.slice(self._at, rows))
        self._at += rows
        if self._at >= self._batch.num_rows:
            self._batch = None
        return framed, rows

    def close(self) -> None:
        self._batch = None
        self.result.close()


class FramedRows:
    """The same of a few rows that are framed already, a message each."""

    def __init__(self, result: Result, framed: list[bytes]) -> None:
        self.result = result
        self._framed = framed
        self._at = 0
        self.ended = False

    @property
    def drained(self) -> bool:
        return self._at >= len(self._framed)

    def pull(self) -> bool:
        self.ended = True
        return False

    def take(self, most: int | None) -> tuple[bytes, int]:
        first, size = self._at, 0
        last = len(self._framed) if most is None else min(first + most, len(self._framed))
        while self._at < last and size < limits.RESULT_CHUNK_BYTES:
            size += len(self._framed[self._at])
            self._at += 1
        return b"".join(self._framed[first : self._at]), self._at - first

    def close(self) -> None:
        self._at = len(self._framed)
        self.result.close()


def row_stream(result: Result, framer: RowFramer) -> RowStream | FramedRows:
    rows = result.rows
    if rows is None:
        return RowStream(result, framer)
    framed = framer.frame_kept(rows) if isinstance(rows, KeptRows) else framer.frame_values(rows)
    return RowStream(result, framer) if framed is None else FramedRows(result, framed)


@dataclass
class WirePortal:
    """The wire's side of a portal: its formats, and its result once Execute has started it."""

    name: str
    formats: tuple[int, ...]
    stream: RowStream | FramedRows | None = None
    result: Result | None = None
    complete: bool = False

    def close(self) -> None:
        result, self.result, self.stream = self.result, None, None
        if result is not None:
            result.close()
