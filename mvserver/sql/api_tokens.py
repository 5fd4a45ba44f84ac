"""Statements on API tokens."""

from __future__ import annotations

from mvserver.sql.cursor import Cursor
from mvserver.sql.heads import Heads
from mvserver.sql.names import identifier, if_exists
from mvserver.sql.statements.api_tokens import CreateApiToken, DropApiToken, ListApiTokens
from mvserver.sql.statements.base import Statement


def _create(cursor: Cursor) -> Statement:
    name = identifier(cursor)
    if not cursor.accept_word("valid"):
        return CreateApiToken(name)
    cursor.expect_word("until")
    return CreateApiToken(name, cursor.expect_string())


def _drop(cursor: Cursor) -> Statement:
    guarded = if_exists(cursor)
    return DropApiToken(identifier(cursor), guarded)


def _list(_: Cursor) -> Statement:
    return ListApiTokens()


HEADS: Heads = {
    ("create", "api_token"): _create,
    ("drop", "api_token"): _drop,
    ("list", "api_tokens"): _list,
    ("show", "api_tokens"): _list,
}
