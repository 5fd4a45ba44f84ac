"""Statements on schema registries."""

from __future__ import annotations

from mvserver.sql.cursor import Cursor
from mvserver.sql.heads import Heads
from mvserver.sql.names import identifier, if_exists, if_not_exists
from mvserver.sql.properties import required_properties
from mvserver.sql.statements.base import Statement
from mvserver.sql.statements.schema_registries import (
    CreateSchemaRegistry,
    DescribeSchemaRegistry,
    DropSchemaRegistry,
    ListSchemaRegistries,
    UpdateSchemaRegistry,
)


def _create(cursor: Cursor) -> Statement:
    guarded = if_not_exists(cursor)
    return CreateSchemaRegistry(identifier(cursor), required_properties(cursor), guarded)


def _update(cursor: Cursor) -> Statement:
    return UpdateSchemaRegistry(identifier(cursor), required_properties(cursor))


def _drop(cursor: Cursor) -> Statement:
    guarded = if_exists(cursor)
    return DropSchemaRegistry(identifier(cursor), guarded)


def _describe(cursor: Cursor) -> Statement:
    return DescribeSchemaRegistry(identifier(cursor))


def _list(_: Cursor) -> Statement:
    return ListSchemaRegistries()


HEADS: Heads = {
    ("create", "schema_registry"): _create,
    ("update", "schema_registry"): _update,
    ("drop", "schema_registry"): _drop,
    ("describe", "schema_registry"): _describe,
    ("list", "schema_registries"): _list,
    ("show", "schema_registries"): _list,
}
