"""The columns of tables: those that the server makes, how values go into them, and whether those that are there take
its rows.

Every value is staged as a text. What a text means is said by a cast in SQL, and by nothing that a file's format leaves
open: so a value arrives as it was, or the statement fails.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.base import TableShape
from spark_sinks.snowflake.names import folded
from spark_sinks.table_rows import by_column, row_of

_SIMPLE: dict[pa.DataType, str] = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "NUMBER(3,0)",
    pa.int16(): "NUMBER(5,0)",
    pa.int32(): "NUMBER(10,0)",
    pa.int64(): "NUMBER(19,0)",
    pa.float32(): "FLOAT",
    pa.float64(): "FLOAT",
    pa.string(): "VARCHAR",
    pa.binary(): "BINARY",
    pa.date32(): "DATE",
    pa.time64("us"): "TIME(6)",
    pa.timestamp("us"): "TIMESTAMP_NTZ(6)",
    pa.timestamp("us", "UTC"): "TIMESTAMP_LTZ(6)",
}
_BY_NAME: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "FLOAT": pa.float64(),
    "VARCHAR": pa.string(),
    "TEXT": pa.string(),
    "BINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIME": pa.time64("us"),
    "TIMESTAMP_NTZ": pa.timestamp("us"),
    "TIMESTAMP_LTZ": pa.timestamp("us", "UTC"),
    "TIMESTAMP_TZ": pa.timestamp("us", "UTC"),
}
_PLACE = "(?)"  # of a value in a statement
_TEXT_MAX, _BYTES_MAX = 16_777_216, 8_388_608  # what VARCHAR and BINARY without a length have at least
_NESTED = ("ARRAY", "OBJECT")
_MOMENTS = ("TIMESTAMP_LTZ", "TIMESTAMP_TZ")
_WORDS = re.compile(r"(\w+)(?:\((\d+)(?:,\s*(\d+))?\))?.*", re.DOTALL)
UTC = "+00:00"


@dataclass(frozen=True)
class Found:
    """A column of a table that is there. Of its type ``first`` and ``second`` are the numbers."""

    name: str
    type: str
    base: str
    first: int | None
    second: int | None
    nullable: bool
    has_default: bool


def type_of(kind: pa.DataType) -> str:
    """Of a column that is made."""
    simple = _SIMPLE.get(kind)
    if simple is not None:
        return simple
    if pa.types.is_decimal(kind):
        return f"NUMBER({kind.precision},{kind.scale})"
    if pa.types.is_list(kind):
        return "ARRAY"
    if pa.types.is_map(kind) or pa.types.is_struct(kind):
        return "OBJECT"
    raise ValueError(f"no column can have type {kind}")


def check_names(shape: TableShape) -> None:
    """0A000 where two columns would have one name."""
    names = [folded(field.name) for field in shape.schema]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f'two columns have the name "{twice}", to which names fold in Snowflake',
            hint="Name them with AS in the query.",
        )


def described(rows: Sequence[Mapping[str, Any]]) -> dict[str, Found]:
    """What DESCRIBE TABLE says, by the columns' names."""
    return {row["name"]: _found(row) for row in rows if str(row.get("kind") or "COLUMN") == "COLUMN"}


def _found(row: Mapping[str, Any]) -> Found:
    base, first, second = _parts(str(row["type"]))
    return Found(
        row["name"], str(row["type"]), base, first, second,
        nullable=row["null?"] == "Y", has_default=row["default"] is not None,
    )  # fmt: skip


def _parts(text: str) -> tuple[str, int | None, int | None]:
    """``NUMBER(19,0)`` in its parts."""
    words = _WORDS.fullmatch(text)
    if words is None:
        return text, None, None
    return words[1].upper(), int(words[2]) if words[2] else None, int(words[3]) if words[3] else None


def check_columns(known: Mapping[str, Found], shape: TableShape, entity: str) -> None:
    """42703 or 42804 where the rows do not fit: each column of the query has one of the table that takes all of its
    values, and the table needs no other."""
    check_names(shape)
    left = dict(known)
    for field in shape.schema:
        name = folded(field.name)
        other = left.pop(name, None)
        if other is None:
            raise SqlError(
                sqlstates.UNDEFINED_COLUMN,
                f'entity "{entity}" has no column "{name}"',
                detail=f"Its columns are {', '.join(known)}.",
            )
        if not _takes(other, field.type):
            raise SqlError(
                sqlstates.DATATYPE_MISMATCH,
                f'column "{name}" of entity "{entity}" is of type {other.type}, '
                f"but the query's is of type {type_of(field.type)}",
                hint="Use CAST in the query, or name another table.",
            )
        if field.nullable and not other.nullable:
            raise SqlError(
                sqlstates.DATATYPE_MISMATCH,
                f'column "{name}" of entity "{entity}" takes no NULL, but the query\'s may be one',
                hint="Let the column take NULL there, or name another table.",
            )
    needed = [name for name, column in left.items() if not column.nullable and not column.has_default]
    if needed:
        raise SqlError(
            sqlstates.DATATYPE_MISMATCH,
            f'column "{needed[0]}" of entity "{entity}" takes no NULL, and the query has no such column',
        )


def _takes(table: Found, kind: pa.DataType) -> bool:
    """Whether every value of the query's type is one of the table's."""
    base, first, second = _parts(type_of(kind))
    if base == "NUMBER" and first is not None:
        if table.base != "NUMBER" or table.first is None:
            return False
        digits, scale = second or 0, table.second or 0
        return first - digits <= table.first - scale and digits <= scale
    if base == "VARCHAR":
        return table.base in ("VARCHAR", "TEXT", "STRING") and (table.first or _TEXT_MAX) >= _TEXT_MAX
    if base == "BINARY":
        return table.base == "BINARY" and (table.first or _BYTES_MAX) >= _BYTES_MAX
    if base in _NESTED:
        return table.base in (base, "VARIANT")
    same = table.base in _MOMENTS if base in _MOMENTS else table.base == base
    return same and (first is None or table.first is None or first <= table.first)


# --- values as texts --------------------------------------------------------------------------------------------------
def texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pc.binary_join_element_wise(column.cast(pa.timestamp("us")).cast(pa.string()), UTC, "")
    if pa.types.is_binary(kind):
        return _by_value(column, bytes.hex)
    if pa.types.is_nested(kind):
        return _by_value(column, lambda value: _json(value, kind))
    if pa.types.is_float32(kind):
        column = column.cast(pa.float64())
    return column.cast(pa.string())


def _by_value(column: pa.ChunkedArray, text: Any) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array([None if v is None else text(v) for v in column.to_pylist()], pa.string())])


def cast(text: str, kind: pa.DataType, table: Found) -> str:
    """SQL that makes a value for the column of the table of its text."""
    if pa.types.is_nested(kind):
        return f"PARSE_JSON({text})" if table.base == "VARIANT" else f"PARSE_JSON({text})::{type_of(kind)}"
    if pa.types.is_binary(kind):
        return f"TO_BINARY({text}, 'HEX')"
    return text if pa.types.is_string(kind) else f"{text}::{type_of(kind)}"


def inserted(
    entity: str, given: Mapping[str, Any], known: Mapping[str, Found]
) -> tuple[list[str], list[str | None], list[str]]:
    """The columns of a row that is given as JSON, their values as texts, and the SQL that makes values of these. What
    is left out gets its default."""
    named = by_column(entity, given, list(known))
    missing = [name for name, c in known.items() if name not in named and not c.nullable and not c.has_default]
    named |= dict.fromkeys(missing)  # which is refused below
    typed = {name: _arrow_type(known[name]) for name in named}
    plain = {name: kind for name, kind in typed.items() if kind is not None}
    schema = pa.schema([pa.field(name, kind, known[name].nullable) for name, kind in plain.items()])
    row = row_of(entity, {name: named[name] for name in plain}, schema)
    values, parts = list[str | None](), list[str]()
    for name, kind in typed.items():
        if kind is None:
            values.append(None if named[name] is None else _given_json(named[name]))
            parts.append(f"PARSE_JSON({_PLACE})" + ("" if known[name].base == "VARIANT" else f"::{known[name].base}"))
        else:
            values.append(texts(row.column(name)).to_pylist()[0])
            parts.append(cast(_PLACE, kind, known[name]))
    return list(typed), values, parts


def _given_json(value: Any) -> str:
    """As it was given."""
    if isinstance(value, dict):
        return _object((key, _given_json(each)) for key, each in value.items())
    if isinstance(value, list):
        return f"[{','.join(map(_given_json, value))}]"
    return format(value, "f") if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False)


def _arrow_type(column: Found) -> pa.DataType | None:
    """Of its values; None of those that are JSON. 0A000 for a type that rows cannot be given in."""
    if column.base == "NUMBER":
        return pa.decimal128(column.first or 38, column.second or 0)
    if column.base in ("VARIANT", *_NESTED):
        return None
    found = _BY_NAME.get(column.base)
    if found is None:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED, f'a value for column "{column.name}" of type {column.type} cannot be given'
        )
    return found


def _json(value: Any, kind: pa.DataType) -> str:
    """A value as JSON, its numbers with all of their digits; what JSON has no form for is a text."""
    if value is None:
        return "null"
    if pa.types.is_list(kind):
        return f"[{','.join(_json(each, kind.value_type) for each in value)}]"
    if pa.types.is_map(kind):
        return _object((_key(key, kind.key_type), _json(each, kind.item_type)) for key, each in value)
    if pa.types.is_struct(kind):
        return _object((field.name, _json(value[field.name], field.type)) for field in kind)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, float) and value - value != 0:  # neither infinite nor no number
        return json.dumps(str(value))
    if isinstance(value, (int, float)):
        return repr(value)
    return json.dumps(_text(value), ensure_ascii=False)


def _object(members: Iterator[tuple[str, str]]) -> str:
    return "{" + ",".join(f"{json.dumps(key, ensure_ascii=False)}:{value}" for key, value in members) + "}"


def _key(key: Any, kind: pa.DataType) -> str:
    found = _json(key, kind)
    return json.loads(found) if found.startswith('"') else found


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.hex()
    return value if isinstance(value, str) else str(value)
