"""ALTER DEFAULT PRIVILEGES: GRANT and REVOKE for objects that are yet to be made."""

from __future__ import annotations

from mvserver.sql.cursor import Cursor
from mvserver.sql.heads import Heads
from mvserver.sql.lexer import WORD
from mvserver.sql.names import cascade
from mvserver.sql.privileges import objects, read_privilege_words, role_specs
from mvserver.sql.statements.base import ObjectName, RoleSpec, Statement
from mvserver.sql.statements.privileges import AlterDefaultPrivileges, Grant, GrantTarget, Revoke

_KINDS = {"tables": "relation", "relations": "relation", "schemas": "schema", "functions": "function",
          "routines": "function"}  # fmt: skip


def _alter(cursor: Cursor) -> Statement:
    roles: tuple[RoleSpec, ...] = ()
    schemas: tuple[ObjectName, ...] = ()
    while True:
        if not roles and cursor.accept_word("for"):
            cursor.expect_any("role", "user")
            roles = role_specs(cursor)
        elif not schemas and cursor.accept_word("in", "schema"):
            schemas = objects(cursor, "schema")
        else:
            break
    return AlterDefaultPrivileges(_change(cursor, bool(schemas)), roles, schemas)


def _change(cursor: Cursor, in_schema: bool) -> Grant | Revoke:
    granting = cursor.expect_any("grant", "revoke") == "grant"
    option_only = not granting and cursor.accept_word("grant", "option", "for")
    privileges = read_privilege_words(cursor)
    cursor.expect_word("on")
    token = cursor.current
    kind = _KINDS.get(token.text) if token.kind is WORD else None
    if kind is None:
        if token.text in ("sequences", "types", "large"):
            raise cursor.not_supported(f"default privileges on {token.text.upper()} are not supported")
        raise cursor.syntax_error()
    if kind == "schema" and in_schema:
        raise cursor.not_supported("default privileges on SCHEMAS cannot be of a schema", hint="Leave IN SCHEMA out.")
    cursor.advance()
    cursor.expect_word("to" if granting else "from")
    specs = role_specs(cursor)
    if granting:
        return Grant(privileges, GrantTarget(kind), specs, cursor.accept_word("with", "grant", "option"))
    return Revoke(privileges, GrantTarget(kind), specs, option_only, cascade=cascade(cursor))


HEADS: Heads = {("alter", "default", "privileges"): _alter}
