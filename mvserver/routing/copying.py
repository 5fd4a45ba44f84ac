"""COPY stream FROM STDIN: rows of the client as records of the stream's entity.

All rows are read and checked before the first is written, so an error in the last one leaves nothing behind. Until then
the records are kept aside, in memory and, where they are many, in a file without a name.
"""

from __future__ import annotations

import errno
import json
import struct
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from catalog.model import Relation, Store
from mvserver import limits, sqlstates
from mvserver.copy_data.readers import CopyFormat, CopyReader, Row, copy_reader, shortened
from mvserver.errors import SqlError
from mvserver.routing import lookup, privileges, stream_declaration
from mvserver.routing.ports import Services
from mvserver.routing.record_values import ValueForm, value_form
from mvserver.session.context import SessionContext
from mvserver.session.copies import CopyTarget, too_much
from mvserver.sql.statements.copying import CopyFrom, CopyOptions
from mvserver.sql.types import Kind, parse_type
from mvserver.types.registry import decode_parameter

_LENGTH = struct.Struct("!I")
_NO_KEY = 2**32 - 1  # in the place of a key's length
_INTEGER_BYTES = {Kind.SMALLINT: 2, Kind.INTEGER: 4, Kind.BIGINT: 8}
_QUOTE, _CSV_SPECIAL = '"', frozenset('",')


def plan(statement: CopyFrom, context: SessionContext, services: Services) -> CopyRecords:
    """Everything that can be wrong before the first row comes."""
    stream = lookup.relation(statement.name, context, services)
    if stream.kind != lookup.STREAM:
        raise SqlError(
            sqlstates.WRONG_OBJECT_TYPE,
            f'cannot copy to {stream.kind} "{stream.name}"',
            hint="COPY FROM writes to a stream.",
            position=statement.name.position,
        )
    store, entity = lookup.store_of(stream, services)
    privileges.require_write(stream, store, statement.name.position, context, services)
    if not services.stores.kind(store.type).takes_copies:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"COPY to a stream in a store of type {store.type} is not supported",
            position=statement.name.position,
        )
    _refuse_keys_and_folders(stream, statement)
    value_format = stream.property("value.format") or "json"
    stream_declaration.check_format(value_format, tuple(_RECORDS), f"{store.type} that COPY writes to")
    services.stores.client(store).describe_entity(entity)  # raises when there is none
    known = {column.name: at for at, column in enumerate(stream.columns)}
    names = statement.columns or tuple(known)
    _check_columns(names, stream)
    for option, forced in (("NOT_NULL", statement.options.force_not_null), ("NULL", statement.options.force_null)):
        _check_columns(forced or (), stream)
        for name in forced or ():
            if name not in names:
                raise SqlError(
                    sqlstates.INVALID_COLUMN_REFERENCE, f'FORCE_{option} column "{name}" not referenced by COPY'
                )
    zone = context.settings.get("timezone", "UTC")
    return CopyRecords(stream, store, entity, names, _form(statement.options, names), value_format, zone)


def _refuse_keys_and_folders(stream: Relation, statement: CopyFrom) -> None:
    """0A000 for a stream whose records are more than their values."""
    key_format = stream.property("key.format")
    why, hint = None, "INSERT INTO ... SELECT writes them with their keys."
    types = {column.name: parse_type(column.type).kind for column in stream.columns}
    in_key = [types[name] for name in stream.columns_of("key.columns")]
    if in_key and key_format not in ("json", "primitive"):
        why = f"its keys have the format {key_format}"
    elif key_format == "primitive" and any(kind not in stream_declaration.PLAIN_KEYS for kind in in_key):
        why = "its keys are primitives of another type than SMALLINT, INTEGER, BIGINT and VARCHAR"
    elif stream.property("value.columns.exclude") is not None:
        why = "columns of it are in the keys of records alone"
    elif stream.property("partition.columns") is not None:
        why, hint = "columns of it are in the names of folders", "INSERT INTO ... SELECT writes to such folders."
    if why is not None:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f'COPY to stream "{stream.name}" is not supported: {why}',
            hint=hint,
            position=statement.name.position,
        )


def write(targets: Sequence[CopyTarget], services: Services, check: Callable[[], None]) -> None:
    """The records of COPYs into one store, as one write. ``check`` raises when the statement is to stop."""
    store = targets[0].store
    client, keyed_copies = services.stores.client(store), services.stores.kind(store.type).keyed_copies
    if keyed_copies is not None and any(target.keyed for target in targets):
        keyed_copies(client).write_keyed_records([(target.entity, target.records(check)) for target in targets])
        return
    client.write_records([(target.entity, (value for _, value in target.records(check))) for target in targets])


def _check_columns(names: Iterable[str], stream: Relation) -> None:
    known = {column.name for column in stream.columns}
    for name in names:
        if name not in known:
            raise SqlError(sqlstates.UNDEFINED_COLUMN, f'column "{name}" of relation "{stream.name}" does not exist')


def _form(options: CopyOptions, names: Sequence[str]) -> CopyFormat:
    def forced(chosen: tuple[str, ...] | None) -> tuple[bool, ...]:
        return tuple(chosen is not None and (not chosen or name in chosen) for name in names)

    return CopyFormat(
        options.format,
        options.delimiter,
        options.null,
        "match" if options.header_match else "skip" if options.header else None,
        options.quote,
        options.escape,
        forced(options.force_not_null),
        forced(options.force_null),
    )


@dataclass(frozen=True)
class _Field:
    """A column of the stream: how it is written, and which value of a row it is; None for one that is not copied."""

    name: str
    not_null: bool
    form: ValueForm
    at: int | None


class CopyRecords:
    """Implements ``mvserver.session.copies.CopyTarget``: rows of the client as records in memory or a file."""

    def __init__(
        self,
        stream: Relation,
        store: Store,
        entity: str,
        names: Sequence[str],
        form: CopyFormat,
        value_format: str,
        zone: str,
    ) -> None:
        self.store = store
        self.entity = entity
        self.binary = form.format == "binary"
        self.columns = len(names)
        self.rows = 0
        self.size = 0  # bytes kept aside
        self._stream = stream.name
        self._names = tuple(names)
        self._zone = zone
        self._reader: CopyReader = copy_reader(form, names)
        places = {name: at for at, name in enumerate(names)}
        self._fields = tuple(
            _Field(c.name, c.not_null, value_form(parse_type(c.type), zone), places.get(c.name)) for c in stream.columns
        )
        by_name = {field.name: field for field in self._fields}
        self._oids = tuple(by_name[name].form.oid for name in names)
        self._record = _RECORDS[value_format](self._fields)
        self._key = _key_of(stream, self._fields)
        self._kept = tempfile.SpooledTemporaryFile(max_size=limits.COPY_MEMORY_BYTES)  # noqa: SIM115 - close() does

    def feed(self, data: bytes) -> None:
        self._keep(self._reader.feed(data))

    def finish(self) -> None:
        self._keep(self._reader.finish())

    def place(self, *, shown: bool = True) -> str:
        """As PostgreSQL's errors say where they are."""
        text = self._reader.shown if shown else None
        return f"COPY {self._stream}, {self._reader.place}" + ("" if text is None else f': "{text}"')

    @property
    def keyed(self) -> bool:
        return self._key is not None

    def records(self, check: Callable[[], None]) -> Iterator[tuple[bytes | None, bytes]]:
        self._kept.seek(0)
        while head := self._kept.read(_LENGTH.size):
            check()
            key = None
            if self._key is not None:
                (size,) = _LENGTH.unpack(head)
                key = None if size == _NO_KEY else self._kept.read(size)
                head = self._kept.read(_LENGTH.size)
            yield key, self._kept.read(_LENGTH.unpack(head)[0])

    def close(self) -> None:
        self._kept.close()

    def _keep(self, rows: Iterator[Row]) -> None:
        """One piece for all rows of a message: what is kept is written rarely."""
        pieces: list[bytes] = []
        number = 0
        try:
            for row in rows:
                key, record = self._encoded(row)
                if self._key is not None:
                    pieces += (_LENGTH.pack(_NO_KEY if key is None else len(key)), key or b"")
                pieces += (_LENGTH.pack(len(record)), record)
                number += 1
        except SqlError as error:
            error.context = error.context or self.place()
            raise
        self.rows += number
        self.size += sum(map(len, pieces))
        if self.size > limits.COPY_BYTES_MAX:
            raise too_much()
        try:
            self._kept.writelines(pieces)
        except OSError as error:
            state = sqlstates.DISK_FULL if error.errno in (errno.ENOSPC, errno.EDQUOT) else sqlstates.IO_ERROR
            raise SqlError(state, "the records of a COPY could not be kept aside", detail=f"{error}.") from error

    def _encoded(self, row: Row) -> tuple[bytes | None, bytes]:
        form = 1 if self.binary else 0
        values: list[Any] = []
        try:
            for raw, oid in zip(row, self._oids, strict=True):
                values.append(decode_parameter(len(values) + 1, raw, form, oid, self._zone))
        except SqlError as error:
            raise self._at_column(error, len(values), row) from error
        texts: list[str | None] = []
        for field in self._fields:
            value = None if field.at is None else values[field.at]
            if value is None:
                if field.not_null:
                    raise self._null(field, row)
                texts.append(None)
                continue
            try:
                texts.append(self._record.value(field.form, value))
            except SqlError as error:
                raise self._at_column(error, field.at or 0, row) from error
        key = None if self._key is None else self._key(values)
        return key, self._record.of(texts)

    def _at_column(self, error: SqlError, at: int, row: Row) -> SqlError:
        place = f"{self.place(shown=False)}, column {self._names[at]}"
        raw = row[at]
        if not self.binary and raw is not None:
            place += f': "{shortened(raw.decode("utf-8", "replace"))}"'
        if self.binary and error.sqlstate == sqlstates.INVALID_BINARY_REPRESENTATION:
            error.message = "incorrect binary data format"  # there are no bind parameters here
        error.context = place
        return error

    def _null(self, field: _Field, row: Row) -> SqlError:
        return SqlError(
            sqlstates.NOT_NULL_VIOLATION,
            f'null value in column "{field.name}" of relation "{self._stream}" violates not-null constraint',
            detail=None if self.binary else f"Failing row contains ({', '.join(self._shown(row))}).",
        )

    def _shown(self, row: Row) -> Iterator[str]:
        for field in self._fields:
            raw = None if field.at is None else row[field.at]
            yield "null" if raw is None else shortened(raw.decode("utf-8", "replace"))


# --- keys -----------------------------------------------------------------------------------------------------------
def _key_of(stream: Relation, fields: Sequence[_Field]) -> Callable[[Sequence[Any]], bytes | None] | None:
    """What makes a record's key of the values of a row, as queries make it; None where the stream says nothing of
    keys."""
    names = stream.columns_of("key.columns")
    if not names:
        return None
    chosen = [field for name in names for field in fields if field.name == name]
    if stream.property("key.format") == "primitive":
        (field,) = chosen
        size = _INTEGER_BYTES.get(next(parse_type(c.type).kind for c in stream.columns if c.name == field.name))

        def primitive(values: Sequence[Any]) -> bytes | None:
            value = None if field.at is None else values[field.at]
            if value is None:
                return None
            text = field.form.plain(value)
            return text.encode() if size is None else int(text).to_bytes(size, "big", signed=True)

        return primitive
    whole = _json_record(chosen)

    def of_columns(values: Sequence[Any]) -> bytes:
        given = [(field, None if field.at is None else values[field.at]) for field in chosen]
        return whole.of([None if value is None else whole.value(field.form, value) for field, value in given])

    return of_columns


# --- records --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _RecordForm:
    value: Callable[[ValueForm, Any], str]
    of: Callable[[Sequence[str | None]], bytes]


def _json_record(fields: Sequence[_Field]) -> _RecordForm:
    heads = [
        ("{" if at == 0 else ",") + json.dumps(field.name, ensure_ascii=False) + ":" for at, field in enumerate(fields)
    ]

    def record(texts: Sequence[str | None]) -> bytes:
        parts = [head + ("null" if text is None else text) for head, text in zip(heads, texts, strict=True)]
        return ("".join(parts) + "}").encode()

    return _RecordForm(ValueForm.json, record)


def _csv_record(fields: Sequence[_Field]) -> _RecordForm:
    def value(form: ValueForm, value: Any) -> str:
        text = form.plain(value)
        if "\n" in text or "\r" in text:
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                "a value with a line break cannot be written in the format csv",
                hint="Use a stream with 'value.format' = 'json'.",
            )
        if form.quoted or _CSV_SPECIAL & set(text):
            return _QUOTE + text.replace(_QUOTE, _QUOTE * 2) + _QUOTE
        return text

    return _RecordForm(value, lambda texts: ",".join(text or "" for text in texts).encode())


_RECORDS = {"json": _json_record, "csv": _csv_record}  # by the stream's format
