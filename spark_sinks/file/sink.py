"""Output to a directory, each record once: a batch is a file, and the file appears with the source's position.

Where columns are in the names of folders, a batch is a file in each of its folders.

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
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.base import Position, SinkRecords
from spark_sinks.file.files import refuse_outside, sync_directory, write_synced
from spark_sinks.file.forms import JSON_LINES, FileForm

_NOTE = ".mvserver-{query}.position"
_DIGITS = 12  # files of a query are read in the order of their names where their times are equal


@dataclass(frozen=True)
class Note:
    """``batches`` counts those that had records, ``files`` are what the last batch is made of. ``writer`` is who opened
    the sink last."""

    writer: str
    batches: int = 0
    files: tuple[str, ...] = ()
    position: Position | None = None

    def to_json(self) -> bytes:
        return json.dumps(self.__dict__, sort_keys=True).encode()

    @classmethod
    def from_json(cls, content: bytes, where: str) -> Note:
        """XX001 for what is none."""
        try:
            fields: dict[str, Any] = json.loads(content)
            before = fields.pop("file", None)  # of a server that wrote one file a batch
            return cls(**{**fields, "files": tuple(fields.get("files", [before] if before else []))})
        except (ValueError, TypeError) as error:
            raise SqlError(
                sqlstates.DATA_CORRUPTED, f"file {where} is not what the server wrote", detail=f"{error}."
            ) from error


def values_by_folder(records: SinkRecords, where: str) -> dict[str, list[bytes]]:
    """The values of a batch, of each folder below the entity; 0A000 for a record without a value."""
    found: dict[str, list[bytes]] = {}
    for value, folder in zip(records.values, records.folders or ("",) * len(records.values), strict=True):
        if value is None:
            raise SqlError(sqlstates.FEATURE_NOT_SUPPORTED, f"a record without a value cannot be written to {where}")
        found.setdefault(folder, []).append(value)
    return found


def file_name(query_id: str, batch: int, suffix: str, folder: str) -> str:
    name = f"{query_id}-{batch:0{_DIGITS}d}.{suffix}"
    return f"{folder}/{name}" if folder else name


def check_expected(position: Position | None, where: str, *, expected: bool) -> Position | None:
    """55000 where the query has written before, and nothing is known of it there."""
    if position is None and expected:
        raise SqlError(
            sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
            f"{where} does not have the position of what was written to it",
            detail="It was deleted and created again, or the query's hidden file was removed.",
            hint="Create the query anew, from the position where its output shall go on.",
        )
    return position


def taken_over(where: str) -> SqlError:
    return SqlError(sqlstates.OBJECT_IN_USE, f"another writer has taken over the output to {where}")


class FileSink:
    """A :class:`spark_sinks.base.TransactionalSink` over one directory. For one thread at a time.

    A second one of the same query fences off the first.
    """

    def __init__(self, store: str, directory: Path, root: Path, query_id: str, form: FileForm = JSON_LINES) -> None:
        self._form = form
        self._store = store
        self._directory = directory
        self._root = root
        self._query_id = query_id
        self._note_path = directory / _NOTE.format(query=query_id)
        self._where = f'directory {directory} of store "{store}"'
        self._writer = uuid.uuid4().hex
        self._note: Note | None = None

    def open(self) -> None:
        """Finishes or removes what an earlier writer has left."""
        with self._alone(), self._reported():
            found = self._finished()
            self._replace_note(Note(self._writer, found.batches, found.files, found.position))

    def committed_position(self, *, expected: bool = False) -> Position | None:
        if self._note is None:
            self.open()
        assert self._note is not None  # noqa: S101 - open() sets it
        return check_expected(self._note.position, self._where, expected=expected)

    def write(self, records: SinkRecords, position: Position) -> None:
        """A file has no keys, and its records have its own time."""
        parts = values_by_folder(records, self._where)
        with self._alone(), self._reported():
            before = self._read()
            if before is None or before.writer != self._writer:
                raise taken_over(self._where)
            self._show(before)  # a call before this one may have ended between noting and showing
            batches = before.batches + bool(parts)
            names = tuple(file_name(self._query_id, batches, self._form.suffix, folder) for folder in parts)
            note = Note(self._writer, batches, names, position)
            for place, values in zip(self._aside(note), parts.values(), strict=True):
                write_synced(place, self._form.content(values))
            self._replace_note(note)
            self._show(note)

    def renew(self, position: Position) -> None:
        """A directory forgets nothing."""

    def close(self) -> None:
        """Nothing is open between calls."""
        self._note = None

    def forget(self) -> None:
        """The query is dropped: what was noted is finished, and the note goes. Without effect where the directory is
        gone."""
        if not self._directory.is_dir():
            return
        with self._alone(), self._reported():
            self._finished()
            self._note_path.unlink(missing_ok=True)
            sync_directory(self._directory)
        self._note = None

    # --- the note ---------------------------------------------------------------------------------------------------
    def _finished(self) -> Note:
        found = self._read() or Note(self._writer)
        self._show(found)
        for path in self._directory.glob(f".{self._query_id}-*"):
            path.unlink()
        return found

    def _read(self) -> Note | None:
        try:
            content = self._note_path.read_bytes()
        except FileNotFoundError:
            return None
        return Note.from_json(content, str(self._note_path))

    def _replace_note(self, note: Note) -> None:
        aside = self._note_path.with_suffix(".next")
        aside.unlink(missing_ok=True)
        write_synced(aside, [note.to_json()])
        aside.rename(self._note_path)
        sync_directory(self._directory)
        self._note = note

    def _show(self, note: Note) -> None:
        for place, name in zip(self._aside(note), note.files, strict=True):
            if not place.exists():  # it is visible already
                continue
            target = self._directory / name
            folders = [folder for folder in target.parents if folder.is_relative_to(self._directory)]
            target.parent.mkdir(parents=True, exist_ok=True)
            refuse_outside(target.parent, self._root)
            place.rename(target)
            for folder in folders:
                sync_directory(folder)

    def _aside(self, note: Note) -> list[Path]:
        """Where the files of a batch are until it is noted, all in the directory itself."""
        return [
            self._directory / (f".{Path(name).name}.{at}" if "/" in name else f".{name}")
            for at, name in enumerate(note.files)
        ]

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
