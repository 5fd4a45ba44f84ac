"""GRANT, REVOKE, and who owns what: PostgreSQL's spellings and DeltaStream's, which say ROLE and ORGANIZATION."""

from __future__ import annotations

from mvserver.sql.cursor import Cursor
from mvserver.sql.functions import function_name
from mvserver.sql.heads import Heads, StatementParser
from mvserver.sql.lexer import IDENTIFIER, WORD
from mvserver.sql.names import cascade, identifier, if_exists, listed, object_name
from mvserver.sql.policies import row_security
from mvserver.sql.queries import query_id
from mvserver.sql.roles import role_name, role_spec
from mvserver.sql.statements.base import ObjectName, RoleSpec, Statement
from mvserver.sql.statements.privileges import AlterOwner, DropOwned, Grant, GrantTarget, ReassignOwned, Revoke
from mvserver.sql.statements.relations import MoveRelation
from mvserver.sql.statements.roles import GrantRole, RevokeRole

_RELATION = "relation"
_PARTS = {
    "relation": 3,
    "schema": 2,
    "database": 1,
    "store": 1,
    "schema_registry": 1,
    "descriptor_source": 1,
    "function": 3,
}
_KINDS: tuple[tuple[tuple[str, ...], str, str | None], ...] = (
    (("table",), _RELATION, None),
    (("relation",), _RELATION, None),
    (("foreign", "table"), _RELATION, "stream"),
    (("stream",), _RELATION, "stream"),
    (("changelog",), _RELATION, "changelog"),
    (("materialized", "view"), _RELATION, "materialized view"),
    (("view",), _RELATION, "view"),
    (("schema",), "schema", None),
    (("database",), "database", None),
    (("store",), "store", None),
    (("foreign", "server"), "store", None),
    (("schema_registry",), "schema_registry", None),
    (("descriptor_source",), "descriptor_source", None),
    (("function",), "function", None),
    (("routine",), "function", None),
    (("aggregate",), "function", None),
)
"""The words of a kind of object, what it is, and for a relation of which kind it must be."""

_ALL_IN_SCHEMA: tuple[tuple[tuple[str, ...], str | None], ...] = (
    (("tables",), None),
    (("relations",), None),
    (("streams",), "stream"),
    (("changelogs",), "changelog"),
    (("materialized", "views"), "materialized view"),
    (("views",), "view"),
)
_FUNCTIONS = frozenset({"functions", "routines"})
_REFUSED_KINDS = frozenset(
    {
        "sequence", "sequences", "procedure", "procedures", "language", "type", "domain", "tablespace",
        "parameter", "large", "foreign", "function_source", "compute_pool", "secret",
    }
)  # fmt: skip


# --- GRANT and REVOKE -----------------------------------------------------------------------------------------------
def _grant(cursor: Cursor) -> Statement:
    if cursor.accept_word("ownership"):
        return _grant_ownership(cursor)
    words = _words(cursor)
    if not cursor.accept_word("on"):
        cursor.expect_word("to")
        to = role_specs(cursor)
        return GrantRole(words, to, admin_option=cursor.accept_word("with", "admin", "option"))
    target = _target(cursor)
    cursor.expect_word("to")
    to = role_specs(cursor)
    option = cursor.accept_word("with", "grant", "option")
    return Grant(_privileges(words), target, to, option, _granted_by(cursor))


def _revoke(cursor: Cursor) -> Statement:
    option_only = cursor.accept_word("grant", "option", "for")
    if not option_only and cursor.accept_word("admin", "option", "for"):
        roles = _words(cursor)
        cursor.expect_word("from")
        return _roles_revoked(cursor, roles, option_only=True)
    words = _words(cursor)
    if not option_only and not cursor.at_word("on"):
        cursor.expect_word("from")
        return _roles_revoked(cursor, words, option_only=False)
    cursor.expect_word("on")
    target = _target(cursor)
    cursor.expect_word("from")
    of = role_specs(cursor)
    granted_by = _granted_by(cursor)
    return Revoke(_privileges(words), target, of, option_only, granted_by, cascade(cursor))


def _roles_revoked(cursor: Cursor, roles: tuple[str, ...], *, option_only: bool) -> Statement:
    of = role_specs(cursor)
    cascade(cursor)
    return RevokeRole(roles, of, option_only)


def _words(cursor: Cursor) -> tuple[str, ...]:
    """What is granted: privileges or roles; which of them, the word that follows tells."""
    if cursor.at_word("role") and cursor.peek().kind in (WORD, IDENTIFIER) and cursor.peek().text not in ("to", "on"):
        cursor.advance()
    return listed(cursor, _word)


def _word(cursor: Cursor) -> str:
    if not cursor.at_name() or cursor.at_any({"on", "to", "from"}):
        raise cursor.syntax_error()
    token = cursor.advance()
    if token.text == "all" and token.kind is WORD:
        cursor.accept_word("privileges")
    if cursor.at_operator("("):
        raise cursor.not_supported(
            "privileges on columns are not supported", hint="Grant on a view that has only these columns."
        )
    return token.text


def read_privilege_words(cursor: Cursor) -> tuple[str, ...] | None:
    """None is ALL."""
    return _privileges(_words(cursor))


def _privileges(words: tuple[str, ...]) -> tuple[str, ...] | None:
    return None if words in (("all",), ("all privileges",)) else words


def role_specs(cursor: Cursor) -> tuple[RoleSpec, ...]:
    return listed(cursor, role_spec)


def _granted_by(cursor: Cursor) -> RoleSpec | None:
    return role_spec(cursor) if cursor.accept_word("granted", "by") else None


# --- on what --------------------------------------------------------------------------------------------------------
def _target(cursor: Cursor) -> GrantTarget:
    if cursor.accept_word("organization"):
        return GrantTarget("organization")
    if cursor.accept_word("all"):
        return _all_in_schema(cursor)
    kind, relation_kind = _kind(cursor)
    return GrantTarget(kind, objects(cursor, kind), relation_kind)


def _kind(cursor: Cursor) -> tuple[str, str | None]:
    """A relation where no kind is said; one may be called ``stream``, too."""
    for words, kind, relation_kind in _KINDS:
        if cursor.at_word(*words) and _at_name(cursor, len(words)):
            cursor.accept_word(*words)
            return kind, relation_kind
    if cursor.at_any(_REFUSED_KINDS) and _at_name(cursor, 1):
        raise cursor.not_supported(f"privileges on a {cursor.current.text.upper()} are not supported")
    return _RELATION, None


def _at_name(cursor: Cursor, ahead: int) -> bool:
    token = cursor.peek(ahead)
    return token.kind is IDENTIFIER or (token.kind is WORD and token.text not in ("to", "from"))


def _all_in_schema(cursor: Cursor) -> GrantTarget:
    if cursor.at_any(_FUNCTIONS):
        cursor.advance()
        cursor.expect_word("in", "schema")
        return GrantTarget("function", objects(cursor, "schema"), all_in_schema=True)
    found = next((each for each in _ALL_IN_SCHEMA if cursor.at_word(*each[0])), None)
    if found is None:
        if cursor.at_any(_REFUSED_KINDS):
            raise cursor.not_supported(f"privileges on {cursor.current.text.upper()} are not supported")
        raise cursor.syntax_error()
    cursor.accept_word(*found[0])
    cursor.expect_word("in", "schema")
    return GrantTarget(_RELATION, objects(cursor, "schema"), found[1], all_in_schema=True)


def objects(cursor: Cursor, kind: str) -> tuple[ObjectName, ...]:
    if kind == "function":
        return listed(cursor, function_name)
    return listed(cursor, lambda at: object_name(at, parts_max=_PARTS[kind]))


# --- owners ---------------------------------------------------------------------------------------------------------
def _grant_ownership(cursor: Cursor) -> Statement:
    cursor.expect_word("on")
    kind, relation_kind = ("query", None) if cursor.accept_word("query") else _kind(cursor)
    name = _named(cursor, kind)
    cursor.expect_word("to")
    return AlterOwner(kind, name, role_spec(cursor), relation_kind)


def _alter_owner(what: str, kind: str, relation_kind: str | None) -> StatementParser:
    def parse(cursor: Cursor) -> Statement:
        first = cursor.current
        guarded = kind == _RELATION and if_exists(cursor)
        if cursor.accept_word("if"):
            raise cursor.not_supported(f"ALTER {what} IF EXISTS is not supported", token=cursor.previous)
        name = _named(cursor, kind)
        if kind == _RELATION and cursor.accept_word("rename", "to"):
            return MoveRelation(name, relation_kind, new_name=identifier(cursor), if_exists=guarded)
        if kind == _RELATION and cursor.accept_word("set", "schema"):
            return MoveRelation(name, relation_kind, schema=object_name(cursor, parts_max=2), if_exists=guarded)
        if guarded:
            raise cursor.not_supported(f"ALTER {what} IF EXISTS is not supported", token=first)
        secured = row_security(cursor, name, relation_kind) if kind == _RELATION else None
        if secured is not None:
            return secured
        if not cursor.at_word("owner"):
            updated = kind in ("store", "schema_registry")
            hint = f"Use UPDATE {what} name WITH (...)." if updated else "Drop the object and create it anew."
            supported = "OWNER TO, RENAME TO, SET SCHEMA and ROW LEVEL SECURITY" if kind == _RELATION else "OWNER TO"
            raise cursor.not_supported(f"ALTER {what} is supported with {supported} only", hint=hint)
        cursor.advance()
        cursor.expect_word("to")
        return AlterOwner(kind, name, role_spec(cursor), relation_kind)

    return parse


def _named(cursor: Cursor, kind: str) -> ObjectName:
    if kind == "query":
        position = cursor.current.position
        return ObjectName((query_id(cursor),), position)
    if kind == "function":
        return function_name(cursor)
    return object_name(cursor, parts_max=_PARTS[kind])


def _reassign(cursor: Cursor) -> Statement:
    cursor.expect_word("by")
    of = listed(cursor, _owner)
    cursor.expect_word("to")
    return ReassignOwned(of, _owner(cursor))


def _drop_owned(cursor: Cursor) -> Statement:
    cursor.expect_word("by")
    return DropOwned(listed(cursor, _owner), cascade(cursor))


def _owner(cursor: Cursor) -> RoleSpec:
    if cursor.at_word("public"):
        role_name(cursor)  # refuses it
    return role_spec(cursor)


HEADS: Heads = {
    ("grant",): _grant,
    ("revoke",): _revoke,
    ("reassign", "owned"): _reassign,
    ("drop", "owned"): _drop_owned,
    ("alter", "query"): _alter_owner("QUERY", "query", None),
    **{
        ("alter", *words): _alter_owner(" ".join(words).upper(), kind, relation_kind)
        for words, kind, relation_kind in _KINDS
    },
}
