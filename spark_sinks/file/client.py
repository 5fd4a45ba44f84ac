"""A FILE store without Spark: its sub-directories as entities, the lines of their files as records."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.base import Entity, EntityRecord, Position
from spark_sinks.file.entity_files import DirectoryFiles
from spark_sinks.file.files import (
    is_partition,
    outside,
    refuse_outside,
    sync_directory,
    visible_files,
    write_all_visible,
    write_visible,
)
from spark_sinks.file.options import FileOptions, is_under
from spark_sinks.file.positions import behind
from spark_sinks.file.printing import follow
from spark_sinks.file.records import (
    check_entity_name,
    deletes_files,
    entity_exists_already,
    inserted_line,
    lines_of,
    new_file_name,
    no_entity,
    not_empty,
    unknown_start,
)

_POLL_S = 0.1


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
            raise entity_exists_already(name, self._store)
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
                raise entity_exists_already(name, self._store) from error
            sync_directory(self._options.directory)

    def drop_entity(self, name: str, properties: Mapping[str, Any]) -> None:
        delete = deletes_files(properties)
        link = self._options.directory / name
        directory = self._existing(name)
        if link.is_symlink():
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f'entity "{name}" is a symbolic link and cannot be dropped',
                hint="Remove the link in the file system.",
            )
        with self._reported():
            files, folders = _content(directory, name)
            if (files or folders) and not delete:
                raise not_empty(name, len(files))
            for path in files:
                path.unlink(missing_ok=True)  # of a link the link alone, never what it points to
            try:
                for folder in (*reversed(folders), directory):
                    folder.rmdir()
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
        files = DirectoryFiles(self._existing(name), self._options.root)
        with self._reported():
            seen = set() if from_beginning else {file.name for file in files.look()}
        return self._followed(follow(files, seen, limit, stopped, _POLL_S))

    def _followed(self, records: Iterator[EntityRecord]) -> Iterator[EntityRecord]:
        with self._reported():
            yield from records

    def insert_record(self, name: str, value: str | None, key: str | None, properties: Mapping[str, Any]) -> None:
        line = inserted_line(value, key, properties)
        directory = self._existing(name)
        with self._reported():
            write_visible(directory, new_file_name(), line)

    def write_records(self, writes: Sequence[tuple[str, Iterable[bytes]]]) -> None:
        """One file for each entity, a record a line."""
        directories = [(self._existing(name), records) for name, records in writes]
        with self._reported():
            write_all_visible([(directory, new_file_name(), lines_of(records)) for directory, records in directories])

    def position(self, name: str, starting: str) -> Position:
        directory = self._existing(name)
        if starting == "earliest":
            return {"before": []}
        if starting == "latest":
            with self._reported():
                return behind(visible_files(directory, self._options.root))
        raise unknown_start(starting)

    def close(self) -> None:
        """Nothing is open between calls."""

    # --- names and places ------------------------------------------------------------------------------------------
    def _path(self, name: str) -> Path:
        """The entity's directory, which need not exist, links not followed."""
        check_entity_name(name)
        return self._options.directory / name

    def _existing(self, name: str) -> Path:
        """The entity's directory, links followed; looked at anew each time, since links can change."""
        directory = self._path(name)
        self.check()
        if not directory.is_dir():
            raise no_entity(name, self._store)
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


def _content(directory: Path, name: str) -> tuple[list[Path], list[Path]]:
    """All files of an entity and its folders, a folder before those in it. 2BP01 for a folder that is not its own."""
    files: list[Path] = []
    folders: list[Path] = []
    left = [directory]
    while left:
        with os.scandir(left.pop()) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if not entry.is_dir(follow_symlinks=False):
                    files.append(Path(entry.path))
                    continue
                if not is_partition(entry.name):
                    raise SqlError(
                        sqlstates.DEPENDENT_OBJECTS_STILL_EXIST,
                        f'cannot drop entity "{name}" because it holds directories',
                        detail=f'The first of them is "{entry.name}".',
                        hint="An entity holds files, and folders named key=value; remove others in the file system.",
                    )
                folders.append(Path(entry.path))
                left.append(Path(entry.path))
    return files, folders
