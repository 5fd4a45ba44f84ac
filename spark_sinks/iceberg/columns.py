"""The columns of tables: those that the server makes, and whether those that are there take its rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pyarrow as pa
from pyiceberg import types as iceberg
from pyiceberg.schema import Schema
from pyiceberg.table import Table

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.base import TableShape

_SIMPLE: dict[pa.DataType, iceberg.IcebergType] = {
    pa.bool_(): iceberg.BooleanType(),
    pa.int8(): iceberg.IntegerType(),
    pa.int16(): iceberg.IntegerType(),
    pa.int32(): iceberg.IntegerType(),
    pa.int64(): iceberg.LongType(),
    pa.float32(): iceberg.FloatType(),
    pa.float64(): iceberg.DoubleType(),
    pa.string(): iceberg.StringType(),
    pa.binary(): iceberg.BinaryType(),
    pa.date32(): iceberg.DateType(),
    pa.time64("us"): iceberg.TimeType(),
    pa.timestamp("us"): iceberg.TimestampType(),
    pa.timestamp("us", "UTC"): iceberg.TimestamptzType(),
}
_WIDER = (("int", "long"), ("float", "double"))  # of which the second has all values of the first


def schema_of(shape: TableShape) -> Schema:
    """Of a table that is made. Its key stands in the schema as the identifier of rows."""
    ids = count(len(shape.schema) + 1)  # columns first, then what is in them
    fields = [
        iceberg.NestedField(at, field.name, _type_of(field.type, ids), required=not field.nullable)
        for at, field in enumerate(shape.schema, start=1)
    ]
    return Schema(*fields, identifier_field_ids=[f.field_id for f in fields if f.name in shape.key])


def _type_of(kind: pa.DataType, ids: Iterator[int]) -> iceberg.IcebergType:
    simple = _SIMPLE.get(kind)
    if simple is not None:
        return simple
    if pa.types.is_decimal(kind):
        return iceberg.DecimalType(kind.precision, kind.scale)
    if pa.types.is_list(kind):
        return iceberg.ListType(next(ids), _type_of(kind.value_type, ids), element_required=False)
    if pa.types.is_map(kind):
        return iceberg.MapType(
            next(ids), _type_of(kind.key_type, ids), next(ids), _type_of(kind.item_type, ids), value_required=False
        )
    if pa.types.is_struct(kind):
        parts = [iceberg.NestedField(next(ids), f.name, _type_of(f.type, ids), required=False) for f in kind]
        return iceberg.StructType(*parts)
    raise ValueError(f"no column can have type {kind}")


def check_columns(table: Table, shape: TableShape, entity: str) -> None:
    """42703 or 42804 where the rows do not fit: each column of the query has one of the table that takes all of its
    values, and the table needs no other."""
    known = {field.name: field for field in table.schema().fields}
    listed = ", ".join(known)
    for field in schema_of(shape).fields:
        other = known.pop(field.name, None)
        if other is None:
            raise SqlError(
                sqlstates.UNDEFINED_COLUMN,
                f'entity "{entity}" has no column "{field.name}"',
                detail=f"Its columns are {listed}.",
            )
        if not _takes(other.field_type, field.field_type):
            raise SqlError(
                sqlstates.DATATYPE_MISMATCH,
                f'column "{field.name}" of entity "{entity}" is of type {_words(other.field_type)}, '
                f"but the query's is of type {_words(field.field_type)}",
                hint="Use CAST in the query, or name another table.",
            )
        if other.required and not field.required:
            raise SqlError(
                sqlstates.DATATYPE_MISMATCH,
                f'column "{field.name}" of entity "{entity}" takes no NULL, but the query\'s may be one',
                hint="Make the column optional there, or name another table.",
            )
    needed = [name for name, field in known.items() if field.required]
    if needed:
        raise SqlError(
            sqlstates.DATATYPE_MISMATCH,
            f'column "{needed[0]}" of entity "{entity}" takes no NULL, and the query has no such column',
        )


def type_words(table: Table) -> list[tuple[str, str]]:
    """Of each column, for people."""
    return [(f.name, _words(f.field_type) + (" NOT NULL" if f.required else "")) for f in table.schema().fields]


def _takes(table: iceberg.IcebergType, query: iceberg.IcebergType) -> bool:
    """Whether every value of the query's type is one of the table's."""
    if isinstance(table, iceberg.DecimalType) and isinstance(query, iceberg.DecimalType):
        whole = query.precision - query.scale <= table.precision - table.scale
        return whole and query.scale <= table.scale
    return (_words(query), _words(table)) in _WIDER or _words(query) == _words(table)


def _words(kind: iceberg.IcebergType) -> str:
    """A type without the numbers of its parts, which differ from table to table."""
    if isinstance(kind, iceberg.ListType):
        return f"list<{_words(kind.element_type)}>"
    if isinstance(kind, iceberg.MapType):
        return f"map<{_words(kind.key_type)}, {_words(kind.value_type)}>"
    if isinstance(kind, iceberg.StructType):
        return f"struct<{', '.join(f'{f.name} {_words(f.field_type)}' for f in kind.fields)}>"
    return str(kind)
