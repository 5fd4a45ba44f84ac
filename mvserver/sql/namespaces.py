"""Databases, schemas, and USE."""

from __future__ import annotations

from mvserver.sql.cursor import Cursor
from mvserver.sql.heads import Heads
from mvserver.sql.names import cascade, identifier, if_exists, if_not_exists, object_name
from mvserver.sql.statements.base import ObjectName, Statement
from mvserver.sql.statements.namespaces import (
    CreateDatabase,
    CreateSchema,
    DropDatabase,
    DropSchema,
    ListDatabases,
    ListSchemas,
    Use,
)
from mvserver.sql.statements.stores import UseStore


def _create_database(cursor: Cursor) -> Statement:
    guarded = if_not_exists(cursor)
    name = identifier(cursor)
    if not cursor.at_end and cursor.at_any({"with", "owner", "template", "encoding", "locale", "connection"}):
        raise cursor.not_supported("options of CREATE DATABASE are not supported", hint="Use CREATE DATABASE name.")
    return CreateDatabase(name, guarded)


def _drop_database(cursor: Cursor) -> Statement:
    guarded = if_exists(cursor)
    return DropDatabase(identifier(cursor), guarded, cascade(cursor))


def _list_databases(_: Cursor) -> Statement:
    return ListDatabases()


def _schema_name(cursor: Cursor) -> ObjectName:
    """``s``, ``d.s`` or ``s IN DATABASE d``."""
    name = object_name(cursor, parts_max=2)
    if len(name.parts) == 1 and cursor.accept_word("in", "database"):
        return ObjectName((identifier(cursor), *name.parts), name.position)
    return name


def _create_schema(cursor: Cursor) -> Statement:
    guarded = if_not_exists(cursor)
    if cursor.at_word("authorization"):
        raise cursor.not_supported("CREATE SCHEMA AUTHORIZATION is not supported", hint="Use CREATE SCHEMA name.")
    name = _schema_name(cursor)
    if cursor.at_word("authorization"):
        raise cursor.not_supported("CREATE SCHEMA AUTHORIZATION is not supported", hint="Use CREATE SCHEMA name.")
    return CreateSchema(name, guarded)


def _drop_schema(cursor: Cursor) -> Statement:
    guarded = if_exists(cursor)
    return DropSchema(_schema_name(cursor), guarded, cascade(cursor))


def _list_schemas(cursor: Cursor) -> Statement:
    if cursor.accept_word("in"):
        cursor.accept_word("database")
        return ListSchemas(identifier(cursor))
    return ListSchemas()


def _use(cursor: Cursor) -> Statement:
    """``USE STORE s``, ``USE DATABASE d``, ``USE SCHEMA [d.]s`` or ``USE d[.s]`` (d may be a keyword)."""
    kind = cursor.current.text
    following = cursor.peek()
    if cursor.at_any({"store", "database", "schema", "role", "compute_pool", "warehouse"}) and following.text not in (
        "",
        ";",
        ".",
    ):
        cursor.advance()
        if kind == "store":
            return UseStore(identifier(cursor))
        if kind in ("role", "compute_pool", "warehouse"):
            hint = (
                "Use SET ROLE name." if kind == "role" else "One server runs all queries; there is nothing to choose."
            )
            raise cursor.not_supported(f"USE {kind.upper()} is not supported", hint=hint, token=cursor.previous)
        return Use(kind, object_name(cursor, parts_max=1 if kind == "database" else 2))
    return Use(None, object_name(cursor, parts_max=2))


HEADS: Heads = {
    ("create", "database"): _create_database,
    ("drop", "database"): _drop_database,
    ("list", "databases"): _list_databases,
    ("show", "databases"): _list_databases,
    ("create", "schema"): _create_schema,
    ("drop", "schema"): _drop_schema,
    ("list", "schemas"): _list_schemas,
    ("show", "schemas"): _list_schemas,
    ("use",): _use,
}
