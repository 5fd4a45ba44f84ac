"""The columns and the WITH list of a stream: one checked, frozen declaration, also for CREATE STREAM AS SELECT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from catalog.model import Column
from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.record_keys import field_of_key
from mvserver.routing import xml_columns
from mvserver.routing.properties import PropertyReader, text_of
from mvserver.sql.statements.base import ColumnDefinition, Properties, Value
from mvserver.sql.types import Kind, SqlType, parse_type
from spark_sinks.base import DeclaredColumn
from spark_sinks.decode.checked_records import require_checker
from spark_sinks.decode.formats import KEY_FORMATS, NAMES_OF_VALUES, VALUE_FORMATS, format_of
from spark_sinks.kinds import entity_properties
from spark_sinks.store_kind import EntityProperty, StoreKind

PARTITION_COLUMNS = "partition.columns"
_KEY_COLUMNS, _DESCRIPTOR, _DELIMITER = "key.columns", "value.descriptor.name", "value.delimiter"
_VALIDATION, _EXCLUDED = "value.schema.validation", "value.columns.exclude"
_OWN = (
    "store",
    "topic",
    "value.format",
    "timestamp",
    "timestamp.format",
    "key.format",
    "key.type",
    _KEY_COLUMNS,
    _EXCLUDED,
    PARTITION_COLUMNS,
    _DESCRIPTOR,
    _DELIMITER,
    _VALIDATION,
)
_ERRORS = "source.deserialization.error.handling"

PLAIN_KEYS = (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.VARCHAR)  # such a key alone is primitive by default
PRIMITIVES = (*PLAIN_KEYS, Kind.FLOAT, Kind.DOUBLE, Kind.BOOLEAN, Kind.VARBINARY)
PRIMITIVE_TYPES = "SMALLINT, INTEGER, BIGINT, FLOAT, DOUBLE, BOOLEAN, VARCHAR or VARBINARY"
_DELIMITERS = {"tab": "\t", "space": " "}
_NO_DELIMITERS = frozenset('"\\\r\n')
_EVENT_TIME_KINDS = (Kind.BIGINT, Kind.TIMESTAMP, Kind.TIMESTAMP_LTZ)
_ERROR_HANDLING = ("TERMINATE", "IGNORE", "IGNORE_AND_LOG")


@dataclass(frozen=True)
class StreamDeclaration:
    """``None`` is what the statement leaves to a default. ``entity_properties`` are of an entity that is to be made,
    ``key_columns`` those that the keys of written records are made of, ``partition_columns`` those that are in
    names of folders."""

    store: str | None
    entity: str | None
    value_format: str | None
    timestamp: str | None
    timestamp_format: str | None
    key_format: str | None
    key_type: str | None
    key_columns: tuple[str, ...]
    partition_columns: tuple[str, ...]
    entity_properties: Mapping[str, Value]
    error_handling: str | None
    value_descriptor: str | None = None  # the schema of all records: "source.message"
    value_delimiter: str | None = None  # of the format "delimited"
    value_checked: bool = False  # against the schema that a record was written with
    value_excluded: tuple[str, ...] = ()  # columns of the key that the value does not have

    def in_value(self, columns: Sequence[tuple[str, SqlType]]) -> Sequence[tuple[str, SqlType]]:
        """Those that are in the values of records."""
        return [each for each in columns if each[0] not in self.value_excluded]

    def with_defaults(self, defaults: Mapping[str, Value], kind: StoreKind[Any]) -> StreamDeclaration:
        """The same, with entity properties that the statement left out."""
        return replace(self, entity_properties=kind.in_order({**defaults, **self.entity_properties}))

    def kept(self, value_format: str) -> tuple[tuple[str, str], ...]:
        """The properties that the catalog keeps with the relation."""
        pairs: list[tuple[str, Value]] = [
            ("value.format", value_format),
            ("timestamp", self.timestamp),
            ("timestamp.format", self.timestamp_format or "sql"),
            ("key.format", self.key_format),
            ("key.type", self.key_type),
            (_KEY_COLUMNS, ",".join(self.key_columns) or None),
            (_EXCLUDED, ",".join(self.value_excluded) or None),
            (PARTITION_COLUMNS, ",".join(self.partition_columns) or None),
            (_ERRORS, self.error_handling),
            (_DESCRIPTOR, self.value_descriptor),
            (_DELIMITER, self.value_delimiter),
            (_VALIDATION, self.value_checked or None),
            *self.entity_properties.items(),
        ]
        return tuple((key, text_of(value)) for key, value in pairs if value is not None)


def read(
    properties: Properties,
    columns: Sequence[tuple[str, SqlType]],
    kinds: Sequence[StoreKind[Any]],
    *,
    what: str = "a stream",
    also_known: Sequence[str] = (),
) -> StreamDeclaration:
    """Checks all that can be told without the store; 22023, 42703, 42804 or 0A000 at the property."""
    reader = PropertyReader(properties, what)
    of_entities = entity_properties(kinds)
    key = _key(reader, columns)
    declaration = StreamDeclaration(
        store=reader.text("store"),
        entity=reader.text("topic"),
        value_format=_format(reader, "value.format", kinds),
        timestamp=_timestamp(reader, columns),
        timestamp_format=reader.choice("timestamp.format", ("sql", "iso8601")),
        key_format=key.format,
        key_type=key.type,
        key_columns=key.columns,
        partition_columns=_partition_columns(reader, columns),
        entity_properties=_entity_properties(reader, of_entities),
        error_handling=reader.choice(_ERRORS, _ERROR_HANDLING),
        value_descriptor=reader.text(_DESCRIPTOR),
        value_delimiter=_delimiter(reader),
        value_checked=_checked(reader),
        value_excluded=_excluded(reader, key.columns, columns),
    )
    reader.refuse("key.descriptor.name", "It is a property of changelogs.")
    reader.refuse("enable.upsert.mode", "It is a property of changelogs.")
    reader.end(tuple(dict.fromkeys((*_OWN, *(known.name for known in of_entities), _ERRORS, *also_known))))
    return declaration


def check_columns(columns: Sequence[ColumnDefinition]) -> tuple[Column, ...]:
    if not columns:
        raise SqlError(sqlstates.INVALID_TABLE_DEFINITION, "a stream must have at least one column")
    if len(columns) > limits.COLUMNS_MAX:
        raise SqlError(sqlstates.TOO_MANY_COLUMNS, f"streams can have at most {limits.COLUMNS_MAX} columns")
    seen: set[str] = set()
    for column in columns:
        if column.name in seen:
            raise SqlError(sqlstates.DUPLICATE_COLUMN, f'column "{column.name}" specified more than once')
        seen.add(column.name)
        if not _storable(column.type):
            raise SqlError(sqlstates.INVALID_TABLE_DEFINITION, f'column "{column.name}" cannot have type {column.type}')
        _check_fields(column.name, column.type)
    # A field that is spelled as one column is named belongs to that one alone.
    return tuple(Column(c.name, str(c.type), c.not_null, None if c.spelling in seen else c.spelling) for c in columns)


def _check_fields(column: str, kind: SqlType) -> None:
    """0A000 for fields of a STRUCT whose names differ in case alone, which neither engine tells apart."""
    seen: dict[str, str] = {}
    for name, inner in kind.fields:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f'fields "{other}" and "{name}" of column "{column}" differ in case alone',
                hint="Declare one of them: a record's field that differs in case alone is found as well.",
            )
        _check_fields(column, inner)
    for part in (kind.element, kind.key):
        if part is not None:
            _check_fields(column, part)


def required_format(given: str | None, kind: StoreKind[Any], relation: str, *, described: bool = False) -> str:
    """Of a relation that is declared: it must say how its records are written, in a format that its store has.
    ``described``: it names the descriptor of its records."""
    given = given or kind.default_format
    if given is not None and described:
        check_format(given, kind.described_formats, kind.name)
        return given
    if given is None:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f'a {relation} needs the property "value.format"',
            hint=f"Formats are {', '.join(kind.formats)}.",
        )
    check_format(given, kind.formats, kind.name)
    return given


def check_format(value_format: str, allowed: Sequence[str], kind: str) -> None:
    if value_format not in allowed:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f'value.format "{value_format}" is not supported in a store of type {kind}',
            hint=f"Formats are {', '.join(allowed)}." if allowed else "Such a store has no records with descriptors.",
        )


def _storable(type_: SqlType) -> bool:
    if type_.kind in (Kind.INTERVAL, Kind.NULL):
        return False
    inner = [part for part in (type_.element, type_.key) if part is not None]
    return all(map(_storable, [*inner, *(part for _, part in type_.fields)]))


def _entity_properties(reader: PropertyReader, known: Sequence[EntityProperty]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for each in known:
        if each.prefix is not None:
            found.update(reader.take_prefixed(each.prefix))
        elif (value := _entity_property(reader, each)) is not None:
            found[each.name] = value
    return found


def _entity_property(reader: PropertyReader, known: EntityProperty) -> Value:
    if known.is_count:
        return reader.count(known.name)
    if known.reading is None:
        return reader.take(known.name)
    value = reader.text(known.name)
    if value is not None:
        known.reading(value)
    return value


def _formats_hint(kinds: Sequence[StoreKind[Any]]) -> str:
    """All formats; those that not every kind of stores has, with the kinds that have them."""
    names = dict.fromkeys(name for kind in kinds for name in kind.formats)
    having = {name: [kind.name for kind in kinds if name in kind.formats] for name in names}
    everywhere = ", ".join(name for name, those in having.items() if len(those) == len(kinds))
    others = [
        f"in stores of type {', '.join(those)}, {name}" for name, those in having.items() if len(those) < len(kinds)
    ]
    return f"Formats are {' and, '.join((everywhere, *others))}."


def _format(reader: PropertyReader, key: str, kinds: Sequence[StoreKind[Any]]) -> str | None:
    value = reader.choice(key, NAMES_OF_VALUES)
    if value is not None and value not in VALUE_FORMATS:
        raise reader.error(
            key,
            f'{key} "{value}" is not supported',
            hint=_formats_hint(kinds),
            sqlstate=sqlstates.FEATURE_NOT_SUPPORTED,
        )
    return value


def _checked(reader: PropertyReader) -> bool:
    given = reader.flag(_VALIDATION)
    if given:
        require_checker()
    return given


def _delimiter(reader: PropertyReader) -> str | None:
    """One character, as it stands or by its name."""
    if not reader.has(_DELIMITER):
        return None
    given = str(reader.take(_DELIMITER))
    found = _DELIMITERS.get(given.lower(), given)
    if len(found) != 1 or found in _NO_DELIMITERS or not found.isascii():
        raise reader.error(
            _DELIMITER,
            f'property "{_DELIMITER}" cannot be "{given}"',
            hint="It is one character of ASCII, TAB or SPACE, and neither a quote, a line's end nor a backslash.",
        )
    return found


def check_value_columns(
    value_format: str, columns: Sequence[tuple[str, SqlType]], delimiter: str | None, *, checked: bool = False
) -> None:
    """Of the columns that values have: 42804 or 0A000 where the format cannot have them, 22023 for a property without
    use."""
    if delimiter is not None and value_format != "delimited":
        raise SqlError(sqlstates.INVALID_PARAMETER_VALUE, f'property "{_DELIMITER}" is of value.format delimited alone')
    if checked and value_format != "json_schema":
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f'property "{_VALIDATION}" is of value.format json_schema alone',
            hint="Records of avro and protobuf cannot be read but by their schemas.",
        )
    if value_format == "primitive" and (len(columns) != 1 or columns[0][1].kind not in PRIMITIVES):
        raise SqlError(
            sqlstates.DATATYPE_MISMATCH,
            "the columns do not fit value.format primitive",
            hint=f"Such a value is one column of type {PRIMITIVE_TYPES}.",
        )
    if value_format == "xml":
        for name, type_ in columns:
            xml_columns.check(name, type_)


def check_written_columns(
    value_format: str, columns: Sequence[tuple[str, SqlType]], delimiter: str | None, *, checked: bool = False
) -> None:
    """The same of a relation that a query writes to; 0A000 for what is read and not written."""
    check_value_columns(value_format, columns, delimiter, checked=checked)
    for name, type_ in columns:
        check_delimited(value_format, name, type_)
        if value_format in ("parquet", "orc") and _has_odd_keys(type_):
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f'column "{name}" of type {type_} cannot be written in the format {value_format}',
                detail="The keys of a map in a file are texts or whole numbers.",
                hint="Write the format json, or cast the keys.",
            )


def check_key_column(format_: str, name: str, type_: SqlType) -> None:
    """0A000 where a column cannot be a field of keys in this format."""
    check_delimited(format_, name, type_)
    if format_ == "xml":
        xml_columns.check(field_of_key(name), type_)


def check_delimited(format_: str | None, name: str, type_: SqlType) -> None:
    """0A000 where a column cannot be a field of a line."""
    if format_ in ("csv", "delimited") and type_.is_nested:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f'column "{name}" of type {type_} cannot be written in the format {format_}',
            hint="Write the format json, or cast the column to VARCHAR.",
        )


def _has_odd_keys(type_: SqlType) -> bool:
    """Whether it has a map whose keys are neither texts nor whole numbers."""
    parts = [part for part in (type_.key, type_.element) if part is not None] + [part for _, part in type_.fields]
    odd = type_.key is not None and not (type_.key.is_integer or type_.key.kind is Kind.VARCHAR)
    return odd or any(map(_has_odd_keys, parts))


def key_format(reader: PropertyReader) -> str | None:
    return reader.choice("key.format", KEY_FORMATS)


def _timestamp(reader: PropertyReader, columns: Sequence[tuple[str, SqlType]]) -> str | None:
    name = reader.text("timestamp")
    if name is None:
        return None
    found = next((c for c in columns if c[0] == name), None) or next((c for c in columns if c[0] == name.lower()), None)
    if found is None:
        raise reader.error(
            "timestamp",
            f'column "{name}" named in property "timestamp" does not exist',
            sqlstate=sqlstates.UNDEFINED_COLUMN,
        )
    if found[1].kind not in _EVENT_TIME_KINDS:
        raise reader.error(
            "timestamp",
            f'column "{found[0]}" cannot be the event time because it has type {found[1]}',
            hint="An event time is BIGINT (milliseconds since 1970), TIMESTAMP or TIMESTAMP_LTZ.",
            sqlstate=sqlstates.DATATYPE_MISMATCH,
        )
    return found[0]


@dataclass(frozen=True)
class _Key:
    format: str | None
    type: str | None
    columns: tuple[str, ...] = ()


def _key(reader: PropertyReader, columns: Sequence[tuple[str, SqlType]]) -> _Key:
    if reader.has(_KEY_COLUMNS):
        return _chosen_key(reader, columns)
    given, type_text = key_format(reader), reader.text("key.type")
    if given is None and type_text is None:
        return _Key(None, None)
    if given is None or type_text is None:
        there, missing = ("key.format", "key.type") if type_text is None else ("key.type", "key.format")
        raise reader.error(there, f'property "{there}" needs the property "{missing}"')
    type_ = parse_type(type_text)
    fits = type_.kind in PRIMITIVES if given == "primitive" else type_.kind is Kind.STRUCT
    if not fits:
        raise reader.error(
            "key.type",
            f"key.type {type_} does not fit key.format {given}",
            hint=f"A primitive key is {PRIMITIVE_TYPES}; other keys are STRUCT<...>.",
            sqlstate=sqlstates.DATATYPE_MISMATCH,
        )
    return _Key(given, type_text)


def _chosen_key(reader: PropertyReader, columns: Sequence[tuple[str, SqlType]]) -> _Key:
    """Of columns of the row. Its format, if not given, is primitive where it is one text or integer, else json."""
    names = reader.names(_KEY_COLUMNS) or []
    types = dict(columns)
    for name in names:
        if name not in types:
            raise reader.error(
                _KEY_COLUMNS,
                f'column "{name}" named in property "{_KEY_COLUMNS}" does not exist',
                sqlstate=sqlstates.UNDEFINED_COLUMN,
            )
    if not names:
        raise reader.error(_KEY_COLUMNS, f'property "{_KEY_COLUMNS}" names no column')
    if reader.has("key.type"):
        raise reader.error("key.type", f'properties "key.type" and "{_KEY_COLUMNS}" exclude each other')
    kind = types[names[0]].kind if len(names) == 1 else None
    given = key_format(reader) or ("primitive" if kind in PLAIN_KEYS else "json")
    if given == "primitive" and kind not in PRIMITIVES:
        raise reader.error(
            _KEY_COLUMNS,
            f'property "{_KEY_COLUMNS}" does not fit key.format primitive',
            hint=f"A primitive key is one column of type {PRIMITIVE_TYPES}; use json.",
            sqlstate=sqlstates.DATATYPE_MISMATCH,
        )
    for name in names:
        check_key_column(given, name, types[name])
    whole = SqlType(Kind.STRUCT, fields=tuple((name, types[name]) for name in names))
    return _Key(given, str(types[names[0]] if given == "primitive" else whole), tuple(names))


def _excluded(reader: PropertyReader, key: Sequence[str], columns: Sequence[tuple[str, SqlType]]) -> tuple[str, ...]:
    names = reader.names(_EXCLUDED) or ()
    for name in names:
        if name not in key:
            raise reader.error(
                _EXCLUDED,
                f'column "{name}" named in property "{_EXCLUDED}" is not in the key',
                detail="A record would have it nowhere.",
                hint=f"Name it in '{_KEY_COLUMNS}', too.",
            )
    if columns and len(names) == len(columns):
        raise reader.error(_EXCLUDED, "a record's value needs at least one column")
    return tuple(names)


def _partition_columns(reader: PropertyReader, columns: Sequence[tuple[str, SqlType]]) -> tuple[str, ...]:
    types, found = dict(columns), []
    for given in reader.names(PARTITION_COLUMNS) or ():
        name = given if given in types else given.lower()
        if name not in types:
            raise reader.error(
                PARTITION_COLUMNS,
                f'column "{given}" named in property "{PARTITION_COLUMNS}" does not exist',
                sqlstate=sqlstates.UNDEFINED_COLUMN,
            )
        if not types[name].is_plain or "," in name:
            raise reader.error(
                PARTITION_COLUMNS,
                f'column "{name}" of type {types[name]} cannot be in the name of a folder',
                sqlstate=sqlstates.DATATYPE_MISMATCH,
            )
        found.append(name)
    if columns and len(set(found)) == len(types):
        raise reader.error(
            PARTITION_COLUMNS,
            f'property "{PARTITION_COLUMNS}" names all columns',
            hint="A record has at least one column of its own.",
        )
    return tuple(dict.fromkeys(found))


def check_value(
    declaration: StreamDeclaration,
    value_format: str,
    columns: Sequence[tuple[str, SqlType]],
    kind: StoreKind[Any],
    properties: Properties,
) -> None:
    """0A000 where entities of the store have no folders, or the format cannot have the columns."""
    if declaration.partition_columns and not kind.partitions:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f'property "{PARTITION_COLUMNS}" is not supported for a store of type {kind.name}',
            hint="Entities of such a store have no folders.",
            position=properties.position(PARTITION_COLUMNS),
        )
    check = format_of(value_format).check
    if check is not None:
        in_value = [(name, type_) for name, type_ in columns if name not in declaration.partition_columns]
        check([DeclaredColumn(name, str(type_)) for name, type_ in in_value])


def check_key_columns(declaration: StreamDeclaration, kind: StoreKind[Any], properties: Properties) -> None:
    """0A000 where records of the store have no key, or none of the type."""
    if declaration.key_columns and not kind.written_keys:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f'property "{_KEY_COLUMNS}" is not supported for a store of type {kind.name}',
            hint="Records of such a store have no key.",
            position=properties.position(_KEY_COLUMNS),
        )
    primitive = declaration.key_format == "primitive" and declaration.key_type is not None
    if kind.written_keys == "text" and primitive and parse_type(declaration.key_type or "").kind not in PLAIN_KEYS:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"a key of type {declaration.key_type} cannot be written to a store of type {kind.name}",
            hint="Keys of such a store are texts: CAST it to VARCHAR.",
            position=properties.position(_KEY_COLUMNS),
        )
