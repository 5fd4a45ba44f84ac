"""The columns that a relation has by the schema of its records, in SQL's types; 0A000 for what no column can hold."""

from __future__ import annotations

from collections.abc import Sequence

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.base import DeclaredColumn

NESTING_MAX = 50  # a schema that refers to itself has no end


def column(field: str, type_: str) -> DeclaredColumn:
    """A name in lower case, which needs no quotes, and the field's own as its spelling."""
    name = field.lower()
    return DeclaredColumn(name, type_, spelling=None if name == field else field)


def check_names(columns: Sequence[DeclaredColumn]) -> Sequence[DeclaredColumn]:
    seen: dict[str, DeclaredColumn] = {}
    for each in columns:
        if each.name in seen:
            raise refused(f'fields of the schema differ in case alone: "{each.spelling or each.name}"')
        seen[each.name] = each
    if not columns:
        raise refused("the schema has no fields")
    return columns


def struct(fields: Sequence[tuple[str, str]]) -> str:
    if not fields:
        raise refused("a record inside of the schema has no fields")
    return f"STRUCT<{', '.join(f'{_field(name)} {type_}' for name, type_ in fields)}>"


def _field(name: str) -> str:
    """A name that is spelled with capitals is folded, as that of a column."""
    return name if name != name.lower() and name.isidentifier() and name.isascii() else quoted(name)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def refused(message: str) -> SqlError:
    return SqlError(
        sqlstates.FEATURE_NOT_SUPPORTED,
        message,
        hint="Declare the columns: CREATE STREAM name (column type, ...) WITH (...).",
    )
