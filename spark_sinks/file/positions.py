"""Arithmetic on the positions of files: ``{"seq": n}``, the number of files of the journal that are read.

``"without": [names]`` is there while files that were there at CREATE are still to be left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from spark_sinks.base import Position
from spark_sinks.file.files import VisibleFile
from spark_sinks.file.journal import FileJournal

BYTES_PER_RECORD = 100  # to turn a bound on records into one on files


def behind(files: Iterable[VisibleFile]) -> Position:
    """A store's answer to who begins behind all files that there are: which these are, and when that was."""
    return {"before": sorted(file.name for file in files), "at": time.time()}


def first_files(files: Iterable[VisibleFile], bytes_max: int, files_max: int | None) -> list[VisibleFile]:
    """Those of one batch: at least one, and none behind that with which there are enough bytes."""
    taken: list[VisibleFile] = []
    size = 0
    for file in files:
        taken.append(file)
        size += file.size
        if size >= bytes_max or len(taken) == files_max:
            break
    return taken


class FilePositions:
    """:class:`spark_sinks.base.Positions` of one entity. ``is_there``: whether there is a file of a name."""

    counts_records = False

    def __init__(self, is_there: Callable[[str], bool], journal: FileJournal, files_max: int | None = None) -> None:
        self._is_there = is_there
        self._journal = journal
        self._files_max = files_max

    def distance(self, start: Position, end: Position) -> int:
        entries = self._journal.between(int(start["seq"]), int(end["seq"]))
        unread = int(end["seq"]) - len(self._journal)  # files seen but not yet in the journal
        return sum(1 + e.size // BYTES_PER_RECORD for e in entries) + max(0, unread)

    def reached(self, position: Position, target: Position) -> bool:
        return int(position["seq"]) >= int(target["seq"])

    def limit(self, start: Position, end: Position, records: int) -> Position:
        seq = int(start["seq"])
        entries = self._journal.between(seq, int(end["seq"]))
        return self._with_seq(start, seq + len(first_files(entries, records * BYTES_PER_RECORD, self._files_max)))

    def divisible(self, start: Position, end: Position, least: int) -> bool:
        """A file is read as one, and small files are read together up to ``least``."""
        return int(self.limit(start, end, least)["seq"]) < int(end["seq"])

    def advance(self, start: Position, end: Position) -> Position:
        return self._with_seq(start, int(end["seq"]))

    def initial(self, positions: Sequence[Position]) -> Position:
        """Behind all that was ever read: the journal is known, and views catch up by it."""
        return {"seq": len(self._journal)}

    def partitions(self, position: Position) -> Mapping[str, int]:
        """The directory is one: its files have an order."""
        return {"0": int(position["seq"])}

    def segment_ranks(self, segments: Sequence[str]) -> Sequence[int]:
        """Files in the order of the journal."""
        return [self._journal.number(segment) for segment in segments]

    def _with_seq(self, start: Position, seq: int) -> Position:
        read = {entry.name for entry in self._journal.between(int(start["seq"]), seq)}
        left_out = [
            name
            for name in start.get("without", ())
            if name not in read and (name in self._journal.names or self._is_there(name))
        ]
        return {"seq": seq, "without": left_out} if left_out else {"seq": seq}
