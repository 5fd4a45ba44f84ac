"""Statements on stores."""

from __future__ import annotations

from mvserver.sql.cursor import Cursor
from mvserver.sql.heads import Heads
from mvserver.sql.names import identifier, if_exists, if_not_exists
from mvserver.sql.properties import required_properties
from mvserver.sql.statements.base import Statement
from mvserver.sql.statements.stores import CreateStore, DescribeStore, DropStore, ListStores, UpdateStore


def _create(cursor: Cursor) -> Statement:
    guarded = if_not_exists(cursor)
    return CreateStore(identifier(cursor), required_properties(cursor), guarded)


def _update(cursor: Cursor) -> Statement:
    return UpdateStore(identifier(cursor), required_properties(cursor))


def _drop(cursor: Cursor) -> Statement:
    guarded = if_exists(cursor)
    return DropStore(identifier(cursor), guarded)


def _describe(cursor: Cursor) -> Statement:
    return DescribeStore(identifier(cursor))


def _list(_: Cursor) -> Statement:
    return ListStores()


HEADS: Heads = {
    ("create", "store"): _create,
    ("update", "store"): _update,
    ("drop", "store"): _drop,
    ("describe", "store"): _describe,
    ("list", "stores"): _list,
    ("show", "stores"): _list,
}
