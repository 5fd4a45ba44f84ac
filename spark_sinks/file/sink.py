"""Output to a directory, each record once: a batch is a file, and the file appears with the source's position.

What is written and how far the source is read stand in one *note*, a hidden file that is replaced by a rename. A batch
is written aside, then noted, and then made visible; whoever opens the sink finishes what was noted. So a file that is
visible belongs to the position, a file that was not noted never appears, and one that was taken away is not made again.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.base import Position, SinkRecords
from spark_sinks.file.files import refuse_outside, sync_directory, write_synced

_NOTE = ".mvserver-{query}.position"
_DIGITS = 12  # files of a query are read in the order of their names where their times are equal


@dataclass(frozen=True)
class Note:
    """``batches`` counts the files that there were; ``file`` is the last one, None where its batch had no records.
    ``writer`` is who opened the sink last."""

    writer: str
    batches: int = 0
    file: str | None = None
    position: Position | None = None


class FileSink:
    """A :class:`spark_sinks.base.TransactionalSink` over one directory. For one thread at a time.

    A second one of the same query fences off the first.
    """

    def __init__(self, store: str, directory: Path, root: Path, query_id: str) -> None:
        self._store = store
        self._directory = directory
        self._root = root
        self._query_id = query_id
        self._note_path = directory / _NOTE.format(query=query_id)
        self._writer = uuid.uuid4().hex
        self._note: Note | None = None

    def open(self) -> None:
        """Finishes or removes what an earlier writer has left."""
        with self._alone(), self._reported():
            found = self._read() or Note(self._writer)
            self._show(found)
            for path in self._directory.glob(f".{self._query_id}-*"):
                path.unlink()
            self._replace_note(Note(self._writer, found.batches, found.file, found.position))

    def committed_position(self, *, expected: bool = False) -> Position | None:
        if self._note is None:
            self.open()
        assert self._note is not None  # noqa: S101 - open() sets it
        if self._note.position is None and expected:
            raise SqlError(
                sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
                f'directory {self._directory} of store "{self._store}" does not have the position of what was written '
                "to it",
                detail="The directory was deleted and created again, or the query's hidden file was removed.",
                hint="Create the query anew, from the position where its output shall go on.",
            )
        return self._note.position

    def write(self, records: SinkRecords, position: Position) -> None:
        """A file has no keys, and its records have its own time."""
        lines = [value + b"\n" for value in records.values if value is not None]
        if len(lines) != len(records.values):
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f'a record without a value cannot be written to directory {self._directory} of store "{self._store}"',
            )
        with self._alone(), self._reported():
            before = self._read()
            if before is None or before.writer != self._writer:
                raise SqlError(
                    sqlstates.OBJECT_IN_USE,
                    f'another writer has taken over the output to directory {self._directory} of store "{self._store}"',
                )
            self._show(before)  # a call before this one may have ended between noting and showing
            batches = before.batches + bool(lines)
            name = f"{self._query_id}-{batches:0{_DIGITS}d}.json" if lines else None
            if name is not None:
                write_synced(self._hidden(name), lines)
            note = Note(self._writer, batches, name, position)
            self._replace_note(note)
            self._show(note)

    def renew(self, position: Position) -> None:
        """A directory forgets nothing."""

    def close(self) -> None:
        """Nothing is open between calls."""
        self._note = None

    # --- the note ---------------------------------------------------------------------------------------------------
    def _read(self) -> Note | None:
        try:
            content: dict[str, Any] = json.loads(self._note_path.read_bytes())
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise SqlError(
                sqlstates.DATA_CORRUPTED, f"file {self._note_path} is not what the server wrote", detail=f"{error}."
            ) from error
        return Note(**content)

    def _replace_note(self, note: Note) -> None:
        aside = self._note_path.with_suffix(".next")
        aside.unlink(missing_ok=True)
        write_synced(aside, [json.dumps(note.__dict__, sort_keys=True).encode()])
        aside.rename(self._note_path)
        sync_directory(self._directory)
        self._note = note

    def _show(self, note: Note) -> None:
        if note.file is None:
            return
        with suppress(FileNotFoundError):  # it is visible already
            self._hidden(note.file).rename(self._directory / note.file)
            sync_directory(self._directory)

    def _hidden(self, name: str) -> Path:
        return self._directory / f".{name}"

    # --- other writers, and errors ----------------------------------------------------------------------------------
    @contextmanager
    def _alone(self) -> Iterator[None]:
        """The directory itself is locked, for the time of a batch: by whichever process writes for a query."""
        with self._reported():
            refuse_outside(self._directory, self._root)
            handle = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with self._reported():
                fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno == errno.ENOENT and not self._directory.is_dir():
                raise SqlError(
                    sqlstates.UNDEFINED_OBJECT,
                    f'entity "{self._directory.name}" does not exist in store "{self._store}"',
                ) from error
            state = sqlstates.DISK_FULL if error.errno in (errno.ENOSPC, errno.EDQUOT) else sqlstates.IO_ERROR
            raise SqlError(
                state, f'store "{self._store}" reports an error of the file system', detail=f"{error}."
            ) from error
