"""Statements on function sources, in DeltaStream's spelling."""

from __future__ import annotations

from mvserver.sql.cursor import Cursor
from mvserver.sql.heads import Heads
from mvserver.sql.names import identifier, if_exists, if_not_exists
from mvserver.sql.properties import required_properties
from mvserver.sql.statements.base import Statement
from mvserver.sql.statements.function_sources import CreateFunctionSource, DropFunctionSource, ListFunctionSources


def _create(cursor: Cursor) -> Statement:
    guarded = if_not_exists(cursor)
    return CreateFunctionSource(identifier(cursor), required_properties(cursor), guarded)


def _drop(cursor: Cursor) -> Statement:
    guarded = if_exists(cursor)
    return DropFunctionSource(identifier(cursor), guarded)


def _list(_: Cursor) -> Statement:
    return ListFunctionSources()


HEADS: Heads = {
    ("create", "function_source"): _create,
    ("drop", "function_source"): _drop,
    ("list", "function_sources"): _list,
    ("show", "function_sources"): _list,
}
