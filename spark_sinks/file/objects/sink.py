"""Output to objects, each record once: a batch is an object, or one in each of its folders.

The service takes each object in, and nobody sees it. Then the *note* is replaced, which has the position of the source
and what is still to be shown; the service does so only if the note is the one that was read. Then the objects are
shown, each once, by whoever opens the sink if need be. So a second writer of the same query fences off the first, and
an object that was taken away is not made again.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import asdict, dataclass, replace

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.base import Position, SinkRecords
from spark_sinks.file.forms import JSON_LINES, FileForm
from spark_sinks.file.objects.base import ObjectStore, OtherVersion, joined
from spark_sinks.file.sink import check_expected, file_name, taken_over, values_by_folder


@dataclass(frozen=True)
class ObjectNote:
    """``begun`` has for each of ``files`` what the service needs to show it. ``writer`` is who opened the sink last."""

    writer: str
    batches: int = 0
    files: tuple[str, ...] = ()
    begun: tuple[str, ...] = ()
    position: Position | None = None

    def to_json(self) -> bytes:
        return json.dumps(asdict(self), sort_keys=True).encode()

    @classmethod
    def from_json(cls, content: bytes, where: str) -> ObjectNote:
        """XX001 for what is none."""
        try:
            fields = json.loads(content)
            return cls(**{**fields, "files": tuple(fields["files"]), "begun": tuple(fields["begun"])})
        except (ValueError, TypeError, KeyError) as error:
            raise SqlError(
                sqlstates.DATA_CORRUPTED, f"object {where} is not what the server wrote", detail=f"{error}."
            ) from error


class ObjectSink:
    """A :class:`spark_sinks.base.TransactionalSink` over one entity. For one thread at a time."""

    def __init__(
        self,
        store: str,
        objects: ObjectStore,
        prefix: str,
        place: str,
        query_id: str,
        form: FileForm = JSON_LINES,
    ) -> None:
        self._form = form
        self._where = f'{place} of store "{store}"'
        self._store = store
        self._objects = objects
        self._prefix = prefix
        self._query_id = query_id
        self._key = joined(prefix, f".mvserver-{query_id}.position")
        self._writer = uuid.uuid4().hex
        self._note: ObjectNote | None = None
        self._version = ""

    def open(self) -> None:
        """Finishes or removes what an earlier writer has left."""
        found, version = self._read()
        if found is None:
            self._check_conditions()
        else:
            self._show(found)
        self._replace(replace(found or ObjectNote(self._writer), writer=self._writer), version)
        self._abandon()

    def committed_position(self, *, expected: bool = False) -> Position | None:
        if self._note is None:
            self.open()
        assert self._note is not None  # noqa: S101 - open() sets it
        return check_expected(self._note.position, self._where, expected=expected)

    def write(self, records: SinkRecords, position: Position) -> None:
        parts = values_by_folder(records, self._where)
        before, self._note = self._note, None  # whatever fails, it is opened anew
        if before is None:
            raise SqlError(sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE, f"the output to {self._where} is not open")
        batches = before.batches + bool(parts)
        names = tuple(file_name(self._query_id, batches, self._form.suffix, folder) for folder in parts)
        begun = tuple(
            self._objects.begin(joined(self._prefix, name), b"".join(self._form.content(values)))
            for name, values in zip(names, parts.values(), strict=True)
        )
        self._replace(ObjectNote(self._writer, batches, names, begun, position), self._version)
        assert self._note is not None  # noqa: S101 - just set
        note, self._note = self._note, None
        self._show(note)
        self._note = note

    def renew(self, position: Position) -> None:
        """Objects are not forgotten."""

    def close(self) -> None:
        self._note = None
        self._objects.close()

    def forget(self) -> None:
        """The query is dropped: what was noted is finished, and the note goes."""
        found, _ = self._read()
        if found is not None:
            self._show(found)
        self._abandon()
        self._objects.delete(self._key)
        self._note = None

    def _read(self) -> tuple[ObjectNote | None, str | None]:
        found = self._objects.read(self._key)
        if found is None:
            return None, None
        content, version = found
        return ObjectNote.from_json(content, self._key), version

    def _replace(self, note: ObjectNote, version: str | None) -> None:
        try:
            self._version = self._objects.put(self._key, note.to_json(), version)
        except OtherVersion as error:
            raise taken_over(self._where) from error
        self._note = note

    def _show(self, note: ObjectNote) -> None:
        for name, begun in zip(note.files, note.begun, strict=True):
            self._objects.finish(joined(self._prefix, name), begun)

    def _abandon(self) -> None:
        """What was begun for this query and not noted. Only one who has written the note may do so."""
        self._objects.abandon(self._prefix, f"{self._query_id}-")

    def _check_conditions(self) -> None:
        """0A000 where the service does not honour conditional writes: two writers would not notice each other."""
        key = joined(self._prefix, f".mvserver-probe-{uuid.uuid4().hex}")
        version = self._objects.put(key, b"1", None)
        try:
            for replacing in (None, version):
                try:
                    self._objects.put(key, b"2", replacing)
                    honoured = replacing is not None
                except OtherVersion:
                    honoured = replacing is None
                if not honoured:
                    raise _careless(self._store, self._where)
            try:
                self._objects.put(key, b"3", version)
            except OtherVersion:
                return
            raise _careless(self._store, self._where)
        finally:
            self._objects.delete(key)


def _careless(store: str, where: str) -> SqlError:
    return SqlError(
        sqlstates.FEATURE_NOT_SUPPORTED,
        f'the storage of store "{store}" does not honour conditional writes',
        detail=f"In {where} an object was written over although If-None-Match or If-Match forbade it.",
        hint="Such storage doubles records; use S3, or a service that has conditional writes.",
    )
