"""Statements that are known and refused: DeltaStream's and PostgreSQL's that this server does not have.

A user who types one of them is told so, and what to use instead, rather than that there is a syntax error.
"""

from __future__ import annotations

from mvserver.sql.cursor import Cursor
from mvserver.sql.heads import Heads, StatementParser
from mvserver.sql.statements.base import Statement

_WRITE = "Views change with their sources. Use INSERT INTO ENTITY name VALUE ('...') to write a record to a source."
_STREAM = "Use CREATE STREAM name (columns) WITH (...) to declare a source."
_DROP_CREATE = "Drop the object and create it anew."
_GROUPS = "Use CREATE ROLE, GRANT role TO role and DROP ROLE."
_FUNCTIONS = "Use the built-in functions."
_JARS = "The file that a source was made of is the original."
_POOL = "One server runs all queries; there is no compute pool to manage."
_SECURITY = "Access is decided by roles: see CREATE ROLE and GRANT."

_REFUSED: dict[str, str | None] = {
    "alter": _DROP_CREATE,
    "create virtual": "Write the intermediate query as a sub-query in FROM, or as a stream of its own.",
    "create temporary": _STREAM,
    "create temp": _STREAM,
    "create local": _STREAM,
    "create global": _STREAM,
    "create unlogged": _STREAM,
    "create recursive": "Write WITH RECURSIVE in the SELECT of CREATE VIEW.",
    "create or": "Drop the object first: DROP ... IF EXISTS name.",
    "create group": _GROUPS,
    "create procedure": _FUNCTIONS,
    "create domain": None,
    "create sequence": None,
    "create extension": None,
    "create trigger": None,
    "create rule": None,
    "create publication": None,
    "create subscription": None,
    "create server": "Use CREATE STORE.",
    "create foreign": _STREAM,
    "create tablespace": None,
    "create language": None,
    "create cast": None,
    "create operator": None,
    "create collation": None,
    "create statistics": None,
    "create event": None,
    "create compute_pool": _POOL,
    "create secret": "Give the values in the store's properties or in its config_file.",
    "create security": _SECURITY,
    "create metrics": "The server's metrics are at its HTTP port.",
    "create organization": _SECURITY,
    "create application": "Put the statements between BEGIN APPLICATION name and END APPLICATION.",
    "drop group": _GROUPS,
    "drop compute_pool": _POOL,
    "drop secret": None,
    "drop security": _SECURITY,
    "drop metrics": None,
    "list compute_pools": _POOL,
    "list roles": "Use SELECT * FROM pg_roles.",
    "list users": "Use SELECT * FROM pg_user.",
    "list invitations": _SECURITY,
    "list secrets": None,
    "list organizations": _SECURITY,
    "describe role": None,
    "describe user": None,
    "describe sandbox": None,
    "update compute_pool": _POOL,
    "update secret": None,
    "update": _WRITE,
    "delete": _WRITE,
    "merge": _WRITE,
    "truncate": _WRITE,
    "can": _SECURITY,
    "invite": _SECURITY,
    "accept": _SECURITY,
    "reject": _SECURITY,
    "listen": None,
    "notify": None,
    "lock": "Reads never block and never wait for writes.",
    "vacuum": "The server keeps its files in order by itself.",
    "cluster": None,
    "reindex": None,
    "checkpoint": "Every batch is durable when it is visible.",
    "security": None,
    "do": None,
    "call": None,
    "copy function_source": _JARS,
    "load": None,
    "import": None,
    "generate": None,
    "start sandbox": None,
    "start compute_pool": _POOL,
    "stop sandbox": None,
    "stop compute_pool": _POOL,
}


def _refuse(name: str, hint: str | None, words: int) -> StatementParser:
    def parse(cursor: Cursor) -> Statement:
        cursor.reset(cursor.mark - words)
        raise cursor.not_supported(f"{name.upper()} is not supported", hint=hint)

    return parse


_NAMES = {"create or": "create or replace", "create temp": "create temporary", "create local": "create local temporary",
          "create global": "create global temporary"}  # fmt: skip

HEADS: Heads = {
    tuple(name.split()): _refuse(_NAMES.get(name, name), hint, len(name.split())) for name, hint in _REFUSED.items()
}
