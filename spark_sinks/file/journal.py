"""The files that a pipeline has read, in order: an append-only file beside the catalog.

A FILE position is ``{"seq": n}``: the first n entries of the journal are read. An entry is written and synced before
the batch that reads its file commits; entries behind the ledger's position belong to no committed batch and are cut
off at start. The journal outlives the view database, so that a rebuild can tell when a file it needs is gone or
changed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Container, Sequence
from pathlib import Path

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.file.files import VisibleFile


class FileJournal:
    """Entries are numbered from 1. Not thread-safe: its reader guards it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._entries: list[VisibleFile] = []
        self._by_name: dict[str, VisibleFile] = {}
        self._numbers: dict[str, int] = {}
        if path.exists():
            self._load()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def names(self) -> dict[str, VisibleFile]:
        return self._by_name

    def number(self, name: str) -> int:
        """Of the entry with this name."""
        return self._numbers[name]

    def between(self, start: int, end: int) -> Sequence[VisibleFile]:
        """Entries with start < seq <= end."""
        return self._entries[start:end]

    def leading(self, names: Container[str]) -> int:
        """How many entries it begins with that have one of these names."""
        return next((n for n, entry in enumerate(self._entries) if entry.name not in names), len(self._entries))

    def append(self, files: Sequence[VisibleFile]) -> None:
        """Durable on return; without effect where it fails."""
        text = "".join(json.dumps(_kept(f), separators=(",", ":")) + "\n" for f in files)
        length = self._path.stat().st_size if self._path.exists() else 0
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            os.truncate(self._path, length)  # what follows must not go on in the middle of a line
            raise
        for entry in files:
            self._add(entry)

    def truncate(self, seq: int) -> None:
        """Forget the entries behind ``seq``; refuses when it should have more than it has (a lost journal). Those
        before are there all the while, for a round that reads by them; where it fails, all are."""
        if seq > len(self._entries):
            raise SqlError(
                sqlstates.DATA_CORRUPTED,
                f"the journal of read files {self._path} has {len(self._entries)} entries and the ledger is at {seq}",
                hint="Restore the data directory from a backup, or drop and create the views of this entity again.",
            )
        if seq == len(self._entries):
            return
        replacement = self._path.with_suffix(".new")
        replacement.unlink(missing_ok=True)
        other = FileJournal(replacement)
        replacement.touch()
        other.append(self._entries[:seq])
        replacement.replace(self._path)
        self._entries, self._by_name, self._numbers = other._entries, other._by_name, other._numbers

    def _add(self, entry: VisibleFile) -> None:
        self._entries.append(entry)
        self._by_name[entry.name] = entry
        self._numbers[entry.name] = len(self._entries)

    def _load(self) -> None:
        with self._path.open("rb") as file:
            content = file.read()
        whole = content[: content.rfind(b"\n") + 1]  # a cut last line was never acknowledged
        if len(whole) != len(content):
            with self._path.open("r+b") as file:
                file.truncate(len(whole))
        for line in whole.splitlines():
            self._add(VisibleFile(*json.loads(line)))


def _kept(file: VisibleFile) -> Sequence[str | int]:
    parts = (file.name, file.size, file.mtime_ns)
    return (*parts, file.version) if file.version else parts
