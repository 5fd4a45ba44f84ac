"""The WITH list of a changelog: that of a stream, and how a record's key carries the primary key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from catalog.model import Column
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.routing import stream_declaration
from mvserver.routing.properties import PropertyReader
from mvserver.routing.stream_declaration import StreamDeclaration
from mvserver.sql.statements.base import Properties
from mvserver.sql.types import Kind, SqlType, parse_type
from spark_sinks.store_kind import StoreKind

UPSERT = "enable.upsert.mode"
KEY_FORMAT, KEY_TYPE, KEY_COLUMNS = "key.format", "key.type", "key.columns"
EXCLUDED = "value.columns.exclude"
KEY_DESCRIPTOR = "key.descriptor.name"
_OWN = (UPSERT, KEY_FORMAT, KEY_TYPE, KEY_COLUMNS, EXCLUDED, KEY_DESCRIPTOR)

Columns = Sequence[tuple[str, SqlType]]


@dataclass(frozen=True)
class RecordKey:
    """How records carry the primary key: ``excluded`` are its columns that the value does not have."""

    format: str
    excluded: tuple[str, ...] = ()
    descriptor: str | None = None  # the schema of all keys: "source.message"


@dataclass(frozen=True)
class ChangelogDeclaration:
    stream: StreamDeclaration  # all that a stream has too
    given: Properties  # the list that ``stream`` was read from
    upsert: Properties  # the rest of the statement's

    def compacted(self, kind: StoreKind[Any]) -> StreamDeclaration:
        """An entity that is made is one for a changelog, unless the statement says otherwise."""
        return self.stream.with_defaults(kind.changelog_properties, kind)


def read(properties: Properties, columns: Columns, kinds: Sequence[StoreKind[Any]]) -> ChangelogDeclaration:
    own = Properties(tuple(item for item in properties.items_ if item.key in _OWN))
    rest = Properties(tuple(item for item in properties.items_ if item.key not in _OWN))
    declared = stream_declaration.read(rest, columns, kinds, what="a changelog", also_known=_OWN)
    return ChangelogDeclaration(declared, rest, own)


def record_key(
    declaration: ChangelogDeclaration, columns: Columns, primary_key: Sequence[str], kind: StoreKind[Any]
) -> RecordKey | None:
    """In a store whose records have no key it is in the values, those of deletions too; None where none are told."""
    reader = PropertyReader(declaration.upsert, "a changelog")
    if reader.has(UPSERT) and not reader.flag(UPSERT):
        raise reader.error(
            UPSERT,
            "a changelog whose records say themselves what they change is not supported",
            hint="Leave the property out: the last record of a key counts, and one without a value deletes.",
            sqlstate=sqlstates.FEATURE_NOT_SUPPORTED,
        )
    if not kind.has_keys:
        for key in _OWN[1:]:
            reader.refuse(key, f"Records of a store of type {kind.name} have no key.")
        return None if kind.deletion_field is None else RecordKey("json")
    types = {name: type_ for name, type_ in columns if name in primary_key}
    format_ = _format(reader, types, kind)
    _check_type(reader, format_, types)
    _check_columns(reader, primary_key)
    for name, type_ in types.items():
        stream_declaration.check_key_column(format_, name, type_)
    return RecordKey(format_, _excluded(reader, primary_key, columns), reader.text(KEY_DESCRIPTOR))


def kept(declaration: StreamDeclaration, value_format: str, key: RecordKey | None) -> tuple[tuple[str, str], ...]:
    """The properties that the catalog keeps with the changelog."""
    pairs = declaration.kept(value_format)
    if key is None:
        return pairs
    excluded = ((EXCLUDED, ",".join(key.excluded)),) if key.excluded else ()
    descriptor = ((KEY_DESCRIPTOR, key.descriptor),) if key.descriptor is not None else ()
    return (*pairs, (KEY_FORMAT, key.format), *excluded, *descriptor)


def with_key(columns: Sequence[Column], primary_key: Sequence[str]) -> tuple[Column, ...]:
    """No column of a primary key is NULL."""
    return tuple(replace(c, not_null=True) if c.name in primary_key else c for c in columns)


def check_primary_key(columns: Columns, primary_key: Sequence[str]) -> None:
    for name, type_ in columns:
        if name in primary_key and (type_.is_nested or type_.kind in (Kind.FLOAT, Kind.DOUBLE)):
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f'column "{name}" of type {type_} cannot be part of a primary key',
                hint="Rows are told apart by exact values: use DECIMAL, an integer, text or a time.",
            )


def _format(reader: PropertyReader, types: dict[str, SqlType], kind: StoreKind[Any]) -> str:
    """What is not said follows from the primary key: a single text or integer is primitive."""
    given = stream_declaration.key_format(reader)
    if kind.key_formats and (given or kind.key_formats[0]) not in kind.key_formats:
        raise reader.error(
            KEY_FORMAT,
            f'key.format "{given}" is not supported in a store of type {kind.name}',
            hint=f"Formats are {', '.join(kind.key_formats)}.",
            sqlstate=sqlstates.FEATURE_NOT_SUPPORTED,
        )
    if given is None and kind.key_formats:
        return kind.key_formats[0]
    alone = next(iter(types.values())).kind if len(types) == 1 else None
    if given is None:
        return "primitive" if alone in stream_declaration.PLAIN_KEYS else "json"
    if given == "primitive" and alone not in stream_declaration.PRIMITIVES:
        raise reader.error(
            KEY_FORMAT,
            "the primary key does not fit key.format primitive",
            hint=f"A primitive key is one column of type {stream_declaration.PRIMITIVE_TYPES}; use json.",
            sqlstate=sqlstates.DATATYPE_MISMATCH,
        )
    return given


def _check_type(reader: PropertyReader, format_: str, types: dict[str, SqlType]) -> None:
    """Where key.type is given it says of the primary key what is known already."""
    if reader.has(KEY_TYPE) and reader.has(KEY_COLUMNS):
        raise reader.error(KEY_TYPE, f'properties "{KEY_TYPE}" and "{KEY_COLUMNS}" exclude each other')
    text = reader.text(KEY_TYPE)
    if text is None:
        return
    given = parse_type(text)
    if format_ == "primitive":
        fits = given.kind == next(iter(types.values())).kind
    else:
        fields = dict(given.fields) if given.kind is Kind.STRUCT else {}
        fits = all(name in fields and fields[name] == type_ for name, type_ in types.items())
    if not fits:
        wanted = ", ".join(f"{name} {type_}" for name, type_ in types.items())
        raise reader.error(
            KEY_TYPE,
            f"key.type {given} does not fit the primary key with key.format {format_}",
            detail=f"The primary key is ({wanted}).",
            hint="Leave the property out: it follows from the primary key.",
            sqlstate=sqlstates.DATATYPE_MISMATCH,
        )


def _check_columns(reader: PropertyReader, primary_key: Sequence[str]) -> None:
    given = reader.names(KEY_COLUMNS)
    if given is not None and set(given) != set(primary_key):
        raise reader.error(
            KEY_COLUMNS,
            f'property "{KEY_COLUMNS}" differs from the primary key',
            detail=f"The primary key is ({', '.join(primary_key)}).",
            hint="Leave the property out: the key of a changelog's records is its primary key.",
        )


def _excluded(reader: PropertyReader, primary_key: Sequence[str], columns: Columns) -> tuple[str, ...]:
    given = reader.names(EXCLUDED) or ()
    for name in given:
        if name not in primary_key:
            raise reader.error(
                EXCLUDED,
                f'column "{name}" named in property "{EXCLUDED}" is not in the primary key',
                detail="A record would have it nowhere.",
            )
    if len(given) == len(columns):
        raise reader.error(EXCLUDED, "a record's value needs at least one column")
    return tuple(given)
