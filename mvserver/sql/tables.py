"""CREATE TABLE ... AS: a table in a store, and the SELECT that fills it."""

from __future__ import annotations

from mvserver.sql.cursor import Cursor
from mvserver.sql.heads import Heads
from mvserver.sql.names import if_not_exists, object_name
from mvserver.sql.properties import optional_properties
from mvserver.sql.relations import describe_parser, list_parser, written_by
from mvserver.sql.statements.base import Statement
from mvserver.sql.statements.relations import CreateTableAs


def _create(cursor: Cursor, *, or_replace: bool = False) -> Statement:
    guarded = if_not_exists(cursor, or_replace=or_replace)
    name = object_name(cursor)
    if cursor.at_operator("("):
        raise cursor.not_supported(
            "CREATE TABLE with columns is not supported",
            hint="CREATE TABLE name WITH (...) AS SELECT ... writes a query's result to a table of a store; "
            "CREATE STREAM name (columns) WITH (...) declares a source.",
        )
    properties = optional_properties(cursor)
    return CreateTableAs(name, properties, written_by(cursor, "TABLE", or_replace=or_replace), guarded)


def _replace(cursor: Cursor) -> Statement:
    return _create(cursor, or_replace=True)


HEADS: Heads = {
    ("create", "table"): _create,
    ("create", "or", "replace", "table"): _replace,
    ("describe", "table"): describe_parser,
    ("list", "tables"): list_parser("table"),
    ("show", "tables"): list_parser("table"),
}
