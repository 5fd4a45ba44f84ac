"""The columns of Delta tables: those that the server makes, and whether those that are there take its rows."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, Schema

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.base import TableShape

_WIDER = {
    "byte": ("short", "integer", "long"),
    "short": ("integer", "long"),
    "integer": ("long",),
    "float": ("double",),
}
_SQL_NAMES = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
_UNITY_NAMES = {"integer": "INT"}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_BAD_CHARACTERS = frozenset(" ,;{}()\n\t=")  # which Delta takes with column mapping alone


def schema_of(shape: TableShape) -> Schema:
    """Of a table that is made; 0A000 for what Delta does not have."""
    for field in shape.schema:
        if _has_time(field.type):
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f'column "{field.name}" has type TIME, which tables of Databricks do not have',
                hint="CAST it to VARCHAR in the query.",
            )
        if _BAD_CHARACTERS & set(field.name):
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f'column "{field.name}" has a name that tables of Databricks do not take',
                detail='Such a name has no blank and none of ",;{}()=".',
                hint="Name it with AS in the query.",
            )
    folded = [field.name.lower() for field in shape.schema]
    twice = next((name for name in folded if folded.count(name) > 1), None)
    if twice is not None:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f'two columns have the name "{twice}" but for upper case, which tables of Databricks do not tell apart',
            hint="Name them with AS in the query.",
        )
    return Schema.from_arrow(shape.schema)


def _has_time(kind: pa.DataType) -> bool:
    return pa.types.is_time(kind) or any(_has_time(kind.field(at).type) for at in range(kind.num_fields))


def check_columns(table: DeltaTable, shape: TableShape, entity: str) -> None:
    """42703 or 42804 where the rows do not fit: each column of the query has one of the table that takes all of its
    values, and the table needs no other."""
    known = {field["name"]: field for field in _fields(table.schema())}
    listed = ", ".join(known)
    for field in _fields(schema_of(shape)):
        name = field["name"]
        other = known.pop(name, None)
        if other is None:
            raise SqlError(
                sqlstates.UNDEFINED_COLUMN,
                f'entity "{entity}" has no column "{name}"',
                detail=f"Its columns are {listed}.",
            )
        if not _takes(other["type"], field["type"]):
            raise SqlError(
                sqlstates.DATATYPE_MISMATCH,
                f'column "{name}" of entity "{entity}" is of type {words(other["type"])}, '
                f"but the query's is of type {words(field['type'])}",
                hint="Use CAST in the query, or name another table.",
            )
        if field["nullable"] and not other["nullable"]:
            raise SqlError(
                sqlstates.DATATYPE_MISMATCH,
                f'column "{name}" of entity "{entity}" takes no NULL, but the query\'s may be one',
                hint="Let the column take NULL there, or name another table.",
            )
    needed = [name for name, field in known.items() if not field["nullable"]]
    if needed:
        raise SqlError(
            sqlstates.DATATYPE_MISMATCH,
            f'column "{needed[0]}" of entity "{entity}" takes no NULL, and the query has no such column',
        )


def registered_columns(schema: Schema) -> list[dict[str, Any]]:
    """As Unity Catalog's REST API has them."""
    return [
        {
            "name": field["name"],
            "position": at,
            "nullable": field["nullable"],
            "type_name": _unity_name(field["type"]),
            "type_text": words(field["type"]),
            "type_json": json.dumps(field),
        }
        for at, field in enumerate(_fields(schema))
    ]


def type_words(table: DeltaTable) -> list[tuple[str, str]]:
    """Of each column, for people."""
    return [(f["name"], words(f["type"]) + ("" if f["nullable"] else " NOT NULL")) for f in _fields(table.schema())]


def words(kind: Any) -> str:
    """A type of Delta's JSON as SQL of Databricks spells it."""
    if not isinstance(kind, Mapping):
        return _SQL_NAMES.get(kind, str(kind))
    if kind["type"] == "array":
        return f"array<{words(kind['elementType'])}>"
    if kind["type"] == "map":
        return f"map<{words(kind['keyType'])},{words(kind['valueType'])}>"
    fields = ",".join(f"{field['name']}:{words(field['type'])}" for field in kind["fields"])
    return f"struct<{fields}>"


def _unity_name(kind: Any) -> str:
    name = kind["type"] if isinstance(kind, Mapping) else str(kind).partition("(")[0]
    return _UNITY_NAMES.get(name, name.upper())


def _fields(schema: Schema) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(schema.to_json())["fields"]
    return found


def _takes(table: Any, query: Any) -> bool:
    """Whether every value of the query's type is one of the table's."""
    if words(table) == words(query):
        return True
    if isinstance(table, Mapping) or isinstance(query, Mapping):
        return False
    wide, narrow = _DECIMAL.fullmatch(table), _DECIMAL.fullmatch(query)
    if wide and narrow:
        whole = int(narrow[1]) - int(narrow[2]) <= int(wide[1]) - int(wide[2])
        return whole and int(narrow[2]) <= int(wide[2])
    return table in _WIDER.get(query, ())
