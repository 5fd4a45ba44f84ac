"""A FILE store without Spark: its sub-directories as entities, the lines of their files as records."""

from __future__ import annotations

import errno
import os
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.base import Entity, EntityRecord, Position
from spark_sinks.file.files import (
    VisibleFile,
    open_text,
    outside,
    read_line,
    record_too_long,
    refuse_outside,
    sync_directory,
    visible_files,
    write_all_visible,
    write_visible,
)
from spark_sinks.file.limits import FILE_NAME_BYTES_MAX, FILE_RECORD_BYTES_MAX
from spark_sinks.file.options import FileOptions, is_under

_POLL_S = 0.1
_STOP_CHECK_LINES = 512


class FileClient:
    """A :class:`spark_sinks.base.StoreClient` over one directory. Keeps nothing open between calls."""

    def __init__(self, store: str, options: FileOptions) -> None:
        self._store = store
        self._options = options

    def check(self) -> None:
        directory = self._options.directory
        if not directory.is_dir():
            raise SqlError(
                sqlstates.CONNECTION_FAILURE,
                f'store "{self._store}" does not answer',
                detail=f"Directory {directory} does not exist.",
                hint="Create the directory first.",
            )
        if not is_under(directory, self._options.root):
            raise outside(str(directory))
        if not os.access(directory, os.R_OK | os.X_OK):
            raise SqlError(
                sqlstates.CONNECTION_FAILURE,
                f'store "{self._store}" does not answer',
                detail=f"The server may not read directory {directory}.",
            )

    def list_entities(self) -> Sequence[Entity]:
        self.check()
        with self._reported(), os.scandir(self._options.directory) as entries:
            names = [
                entry.name
                for entry in entries
                if not entry.name.startswith(".")
                and entry.is_dir()
                and (not entry.is_symlink() or is_under(Path(entry.path), self._options.root))
            ]
        return [Entity(name) for name in sorted(names)]

    def describe_entity(self, name: str) -> Entity:
        directory = self._existing(name)
        with self._reported():
            files = visible_files(directory, self._options.root)
        details = (
            ("directory", str(directory)),
            ("files", str(len(files))),
            ("bytes", str(sum(file.size for file in files))),
        )
        return Entity(name, details)

    def entity_exists(self, name: str) -> bool:
        directory = self._path(name)
        self.check()
        return directory.is_dir()

    def check_create_entity(self, name: str, properties: Mapping[str, Any]) -> None:
        directory = self._path(name)
        self.check()
        if os.path.lexists(directory):
            raise SqlError(sqlstates.DUPLICATE_OBJECT, f'entity "{name}" already exists in store "{self._store}"')
        if not os.access(self._options.directory, os.W_OK):
            raise SqlError(
                sqlstates.INSUFFICIENT_PRIVILEGE,
                f'entity "{name}" cannot be created',
                detail=f"The server may not write to directory {self._options.directory}.",
            )

    def create_entity(self, name: str, properties: Mapping[str, Any]) -> None:
        self.check_create_entity(name, properties)
        with self._reported():
            try:
                self._path(name).mkdir()
            except FileExistsError as error:
                raise SqlError(
                    sqlstates.DUPLICATE_OBJECT, f'entity "{name}" already exists in store "{self._store}"'
                ) from error
            sync_directory(self._options.directory)

    def drop_entity(self, name: str, properties: Mapping[str, Any]) -> None:
        delete_files = _delete_files(properties)
        link = self._options.directory / name
        directory = self._existing(name)
        if link.is_symlink():
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f'entity "{name}" is a symbolic link and cannot be dropped',
                hint="Remove the link in the file system.",
            )
        with self._reported():
            with os.scandir(directory) as found:
                entries = list(found)
            if entries and not delete_files:
                raise SqlError(
                    sqlstates.DEPENDENT_OBJECTS_STILL_EXIST,
                    f'cannot drop entity "{name}" because it is not empty',
                    detail=f"It holds {_counted(len(entries), 'file')}.",
                    hint="Use DROP ENTITY ... WITH ('delete.files' = true) to delete the files too.",
                )
            folders = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
            if folders:
                raise SqlError(
                    sqlstates.DEPENDENT_OBJECTS_STILL_EXIST,
                    f'cannot drop entity "{name}" because it holds directories',
                    detail=f'The first of them is "{folders[0]}".',
                    hint="An entity holds files only; remove the directories in the file system.",
                )
            for entry in entries:
                os.unlink(entry.path)  # of a link the link alone, never what it points to
            try:
                directory.rmdir()
            except OSError as error:
                if error.errno != errno.ENOTEMPTY:
                    raise
                raise SqlError(
                    sqlstates.OBJECT_IN_USE,
                    f'cannot drop entity "{name}" because files are being written to it',
                ) from error
            sync_directory(self._options.directory)

    def print_entity(
        self, name: str, *, from_beginning: bool, limit: int | None, stopped: Callable[[], bool]
    ) -> Iterator[EntityRecord]:
        directory = self._existing(name)
        with self._reported():
            seen = set() if from_beginning else {file.name for file in visible_files(directory, self._options.root)}
        return self._follow(directory, seen, limit, stopped)

    def insert_record(self, name: str, value: str | None, key: str | None, properties: Mapping[str, Any]) -> None:
        if value is None:
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                "records of a store of type FILE have a value",
                hint="A record without a value deletes a key; records of such a store have none.",
            )
        if key is not None:
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                "records of a store of type FILE have no key",
                hint="Give the value alone.",
            )
        for unknown in properties:
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE,
                f'property "{unknown}" is not known for INSERT INTO ENTITY in a store of type FILE',
            )
        if "\n" in value or "\r" in value:
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE,
                "the value contains a line break",
                detail="In a store of type FILE each line of a file is a record.",
            )
        directory = self._existing(name)
        content = value.encode() + b"\n"
        if len(content) > FILE_RECORD_BYTES_MAX:
            raise record_too_long("the value")
        with self._reported():
            write_visible(directory, _file_name(), content)

    def write_records(self, writes: Sequence[tuple[str, Iterable[bytes]]]) -> None:
        """One file for each entity, a record a line."""
        directories = [(self._existing(name), records) for name, records in writes]
        with self._reported():
            write_all_visible([(directory, _file_name(), _lines(records)) for directory, records in directories])

    def position(self, name: str, starting: str) -> Position:
        directory = self._existing(name)
        if starting == "earliest":
            return {"before": []}
        if starting == "latest":
            with self._reported():
                return {"before": sorted(file.name for file in visible_files(directory, self._options.root))}
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f'unrecognized starting position "{starting}"',
            hint="It is earliest or latest.",
        )

    def close(self) -> None:
        """Nothing is open between calls."""

    # --- names and places ------------------------------------------------------------------------------------------
    def _path(self, name: str) -> Path:
        """The entity's directory, which need not exist, links not followed."""
        if not name or name.startswith(".") or any(mark in name for mark in ("/", "\\", "\0")):
            raise SqlError(
                sqlstates.INVALID_NAME,
                f'invalid entity name "{name}"',
                detail="In a store of type FILE an entity is a directory: its name has no path separator and does not "
                "begin with a dot.",
            )
        if len(name.encode()) > FILE_NAME_BYTES_MAX:
            raise SqlError(
                sqlstates.INVALID_NAME,
                "entity name is too long",
                detail=f"A directory's name has at most {FILE_NAME_BYTES_MAX} bytes.",
            )
        return self._options.directory / name

    def _existing(self, name: str) -> Path:
        """The entity's directory, links followed; looked at anew each time, since links can change."""
        directory = self._path(name)
        self.check()
        if not directory.is_dir():
            raise SqlError(sqlstates.UNDEFINED_OBJECT, f'entity "{name}" does not exist in store "{self._store}"')
        refuse_outside(directory, self._options.root)
        return directory.resolve()

    @contextmanager
    def _reported(self) -> Iterator[None]:
        """Errors of the file system as errors that a user can read."""
        try:
            yield
        except OSError as error:
            state = sqlstates.DISK_FULL if error.errno in (errno.ENOSPC, errno.EDQUOT) else sqlstates.IO_ERROR
            raise SqlError(
                state, f'store "{self._store}" reports an error of the file system', detail=f"{error}."
            ) from error

    # --- following -------------------------------------------------------------------------------------------------
    def _follow(
        self, directory: Path, seen: set[str], limit: int | None, stopped: Callable[[], bool]
    ) -> Iterator[EntityRecord]:
        sent = 0
        while not stopped() and (limit is None or sent < limit):
            with self._reported():
                fresh = [file for file in visible_files(directory, self._options.root) if file.name not in seen]
            for file in fresh:
                seen.add(file.name)
                for record in self._records(directory / file.name, file):
                    yield record
                    sent += 1
                    if sent == limit or (sent % _STOP_CHECK_LINES == 0 and stopped()):
                        return
                if stopped():
                    return
            if not fresh:
                time.sleep(_POLL_S)

    def _records(self, path: Path, file: VisibleFile) -> Iterator[EntityRecord]:
        refuse_outside(path, self._options.root)
        with self._reported(), suppress(FileNotFoundError), open_text(path) as content:
            number = 0
            while line := read_line(content, file.name):
                number += 1
                if len(line) > FILE_RECORD_BYTES_MAX:
                    raise record_too_long(f'line {number} of file "{file.name}"')
                value = line.removesuffix(b"\n").removesuffix(b"\r")
                yield EntityRecord(None, value, f"{file.name}:{number}", file.mtime_ns // 1_000_000)


def _file_name() -> str:
    """Files of one writer are read in the order of their names."""
    return f"{time.time_ns():020d}-{uuid.uuid4().hex}.txt"


def _lines(records: Iterable[bytes]) -> Iterator[bytes]:
    for record in records:
        if len(record) >= FILE_RECORD_BYTES_MAX:
            raise record_too_long("a record")
        yield record + b"\n"


def _delete_files(properties: Mapping[str, Any]) -> bool:
    for key in properties:
        if key != "delete.files":
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE,
                f'property "{key}" is not known for DROP ENTITY in a store of type FILE',
                hint="It has 'delete.files' = true or false.",
            )
    value = properties.get("delete.files", False)
    text = str(value).lower()
    if text not in ("true", "false"):
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE, f'property "delete.files" must be true or false, not "{value}"'
        )
    return text == "true"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
