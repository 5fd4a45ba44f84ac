"""A FILE store in a service for objects: what comes next below its place are entities, the lines of objects records.

An entity is there as long as an object is below it. One that is made has a hidden object, which is its mark.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.base import Entity, EntityRecord, Position
from spark_sinks.file.objects.base import ObjectStore, OtherVersion, joined
from spark_sinks.file.objects.files import ObjectFiles
from spark_sinks.file.objects.options import ObjectOptions
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

MARK = ".mvserver-entity"
_POLL_S = 1.0


class ObjectClient:
    """A :class:`spark_sinks.base.StoreClient`."""

    def __init__(self, store: str, options: ObjectOptions, objects: ObjectStore, bytes_max: int) -> None:
        self._store = store
        self._options = options
        self._objects = objects
        self._bytes_max = bytes_max

    def check(self) -> None:
        self._objects.check(self._options.prefix)

    def list_entities(self) -> Sequence[Entity]:
        names = (name for name in self._objects.folders(self._options.prefix) if not name.startswith("."))
        return [Entity(name) for name in sorted(set(filter(None, names)))]

    def describe_entity(self, name: str) -> Entity:
        self._existing(name)
        files = self._files(name).look()
        details = (
            ("directory", f"{self._options.place}/{name}"),
            ("files", str(len(files))),
            ("bytes", str(sum(file.size for file in files))),
        )
        return Entity(name, details)

    def entity_exists(self, name: str) -> bool:
        return next(self._objects.list(self._prefix(name)), None) is not None

    def check_create_entity(self, name: str, properties: Mapping[str, Any]) -> None:
        if self.entity_exists(name):
            raise entity_exists_already(name, self._store)

    def create_entity(self, name: str, properties: Mapping[str, Any]) -> None:
        self.check_create_entity(name, properties)
        try:
            self._objects.put(joined(self._prefix(name), MARK), b"", None)
        except OtherVersion as error:
            raise entity_exists_already(name, self._store) from error

    def drop_entity(self, name: str, properties: Mapping[str, Any]) -> None:
        """The mark goes last: what a failure leaves is an entity still."""
        delete = deletes_files(properties)
        prefix = self._existing(name)
        mark = joined(prefix, MARK)
        keys = [found.key for found in self._objects.list(prefix) if found.key != mark]
        if keys and not delete:
            raise not_empty(name, len(keys))
        self._objects.abandon(prefix, "")
        for key in (*keys, mark):
            self._objects.delete(key)

    def print_entity(
        self, name: str, *, from_beginning: bool, limit: int | None, stopped: Callable[[], bool]
    ) -> Iterator[EntityRecord]:
        self._existing(name)
        files = self._files(name)
        seen = set() if from_beginning else {file.name for file in files.look()}
        return follow(files, seen, limit, stopped, _POLL_S)

    def insert_record(self, name: str, value: str | None, key: str | None, properties: Mapping[str, Any]) -> None:
        line = inserted_line(value, key, properties)
        self._objects.put(joined(self._existing(name), new_file_name()), line, None)

    def write_records(self, writes: Sequence[tuple[str, Iterable[bytes]]]) -> None:
        """An object, a record a line. Several could not appear at once, so that only one entity is written to."""
        if len(writes) > 1:
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f'store "{self._store}" cannot be written to by several COPYs in one transaction',
                detail="Each is an object of its own, and objects do not become visible together.",
                hint="Commit after each COPY.",
            )
        for name, records in writes:
            prefix = self._existing(name)
            with tempfile.TemporaryDirectory(prefix="mvserver-copy-") as folder:
                path = Path(folder) / "records"
                with path.open("xb") as file:
                    file.writelines(lines_of(records))
                self._objects.put_file(joined(prefix, new_file_name()), path)

    def position(self, name: str, starting: str) -> Position:
        self._existing(name)
        if starting == "earliest":
            return {"before": []}
        if starting == "latest":
            return behind(self._files(name).look())
        raise unknown_start(starting)

    def close(self) -> None:
        self._objects.close()

    def _prefix(self, name: str) -> str:
        check_entity_name(name)
        return joined(self._options.prefix, name)

    def _existing(self, name: str) -> str:
        if not self.entity_exists(name):
            raise no_entity(name, self._store)
        return self._prefix(name)

    def _files(self, name: str) -> ObjectFiles:
        place = f"{self._options.place}/{name}"
        return ObjectFiles(self._objects, self._prefix(name), place, self._bytes_max)
