"""GRANT, REVOKE and owners as the parser reads them: PostgreSQL's spellings and DeltaStream's."""

from __future__ import annotations

from typing import Any

import pytest

from mvserver.errors import SqlError
from mvserver.sql import parse_one
from mvserver.sql.statements.privileges import AlterDefaultPrivileges, AlterOwner, Grant, Revoke
from mvserver.sql.statements.roles import GrantRole, RevokeRole


def on(text: str) -> tuple[Any, ...]:
    statement = parse_one(text)
    assert isinstance(statement, Grant | Revoke)
    target = statement.on
    return target.kind, target.relation_kind, [str(name) for name in target.names], target.all_in_schema


def privileges(text: str) -> tuple[str, ...] | None:
    statement = parse_one(text)
    assert isinstance(statement, Grant | Revoke)
    return statement.privileges


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("v", ("relation", None, ["v"], False)),
        ("TABLE a.v, d.s.w", ("relation", None, ["a.v", "d.s.w"], False)),
        ("RELATION v", ("relation", None, ["v"], False)),
        ("STREAM v", ("relation", "stream", ["v"], False)),
        ("FOREIGN TABLE v", ("relation", "stream", ["v"], False)),
        ("MATERIALIZED VIEW v", ("relation", "materialized view", ["v"], False)),
        ("stream", ("relation", None, ["stream"], False)),
        ("SCHEMA d.s, t", ("schema", None, ["d.s", "t"], False)),
        ("DATABASE d", ("database", None, ["d"], False)),
        ("STORE k", ("store", None, ["k"], False)),
        ("FOREIGN SERVER k", ("store", None, ["k"], False)),
        ("ORGANIZATION", ("organization", None, [], False)),
        ("ALL TABLES IN SCHEMA s, t", ("relation", None, ["s", "t"], True)),
        ("ALL MATERIALIZED VIEWS IN SCHEMA s", ("relation", "materialized view", ["s"], True)),
    ],
)
def test_objects(what: str, expected: tuple[Any, ...]) -> None:
    assert on(f"GRANT ALL ON {what} TO r") == expected
    assert on(f"REVOKE ALL ON {what} FROM ROLE r") == expected


def test_privileges() -> None:
    assert privileges("GRANT SELECT, INSERT, REFERENCES ON v TO r") == ("select", "insert", "references")
    assert privileges("GRANT ALL ON v TO r") is privileges("GRANT ALL PRIVILEGES ON v TO r") is None
    assert privileges("GRANT CREATE_STORE ON ORGANIZATION TO ROLE r") == ("create_store",)


def test_roles() -> None:
    grant = parse_one("GRANT SELECT ON v TO ROLE a, GROUP b, PUBLIC, CURRENT_USER, role, SESSION_USER")
    assert isinstance(grant, Grant)
    assert [spec.name or spec.special for spec in grant.to] == ["a", "b", "public", "current", "role", "session"]
    grant = parse_one("GRANT SELECT ON v TO a WITH GRANT OPTION GRANTED BY CURRENT_ROLE")
    assert isinstance(grant, Grant)
    assert (grant.grant_option, grant.granted_by and grant.granted_by.special) == (True, "current")
    revoke = parse_one("REVOKE GRANT OPTION FOR SELECT, INSERT ON v FROM a, b CASCADE")
    assert isinstance(revoke, Revoke)
    assert (revoke.option_only, revoke.cascade, [spec.name for spec in revoke.of]) == (True, True, ["a", "b"])


def test_members() -> None:
    grant = parse_one("GRANT ROLE a TO USER b WITH ADMIN OPTION")
    assert isinstance(grant, GrantRole)
    assert (grant.roles, grant.to[0].name, grant.admin_option) == (("a",), "b", True)
    revoke = parse_one("REVOKE ADMIN OPTION FOR a, c FROM b RESTRICT")
    assert isinstance(revoke, RevokeRole)
    assert (revoke.roles, revoke.of[0].name, revoke.option_only) == (("a", "c"), "b", True)


@pytest.mark.parametrize(
    ("text", "kind", "relation_kind"),
    [
        ("ALTER MATERIALIZED VIEW s.v OWNER TO r", "relation", "materialized view"),
        ("ALTER TABLE s.v OWNER TO r", "relation", None),
        ("GRANT OWNERSHIP ON STREAM s.v TO ROLE r", "relation", "stream"),
        ("ALTER FOREIGN SERVER s OWNER TO r", "store", None),
        ("ALTER QUERY '0a-1' OWNER TO r", "query", None),
    ],
)
def test_owners(text: str, kind: str, relation_kind: str | None) -> None:
    statement = parse_one(text)
    assert isinstance(statement, AlterOwner)
    assert (statement.kind, statement.relation_kind, statement.owner.name) == (kind, relation_kind, "r")


@pytest.mark.parametrize(
    ("text", "sqlstate", "message"),
    [
        ("GRANT SELECT ON v", "42601", "syntax error at end of input"),
        ("GRANT SELECT v TO r", "42601", 'syntax error at or near "v"'),
        ("GRANT SELECT ON v TO r WITH ADMIN OPTION", "42601", 'syntax error at or near "WITH"'),
        ("GRANT SELECT ON v FROM r", "42601", 'syntax error at or near "FROM"'),
        ("GRANT ON v TO r", "42601", 'syntax error at or near "ON"'),
        ("REVOKE SELECT ON v TO r", "42601", 'syntax error at or near "TO"'),
        ("GRANT SELECT (a) ON v TO r", "0A000", "privileges on columns are not supported"),
        ("GRANT USAGE ON SEQUENCE x TO r", "0A000", "privileges on a SEQUENCE are not supported"),
        ("GRANT ALL ON ALL SEQUENCES IN SCHEMA s TO r", "0A000", "privileges on SEQUENCES are not supported"),
        ("GRANT USAGE ON SCHEMA a.b.c TO r", "42601", "improper qualified name (too many dotted names): a.b.c"),
        ("REASSIGN OWNED BY PUBLIC TO r", "42939", 'role name "public" is reserved'),
        ("ALTER SCHEMA s RENAME TO t", "0A000", "ALTER SCHEMA is supported with OWNER TO only"),
    ],
)
def test_errors(text: str, sqlstate: str, message: str) -> None:
    with pytest.raises(SqlError) as raised:
        parse_one(text)
    assert (raised.value.sqlstate, raised.value.message) == (sqlstate, message)


def test_default_privileges() -> None:
    statement = parse_one("ALTER DEFAULT PRIVILEGES FOR ROLE a, b IN SCHEMA s GRANT SELECT ON TABLES TO c, PUBLIC")
    assert isinstance(statement, AlterDefaultPrivileges)
    assert [spec.name for spec in statement.roles] == ["a", "b"]
    assert [str(name) for name in statement.schemas] == ["s"]
    assert isinstance(statement.change, Grant)
    assert (statement.change.privileges, statement.change.on.kind) == (("select",), "relation")
    statement = parse_one("ALTER DEFAULT PRIVILEGES REVOKE GRANT OPTION FOR ALL ON SCHEMAS FROM c CASCADE")
    assert isinstance(statement, AlterDefaultPrivileges)
    assert isinstance(statement.change, Revoke)
    assert (statement.change.option_only, statement.change.cascade, statement.change.on.kind) == (True, True, "schema")
    for text, sqlstate in (
        ("ALTER DEFAULT PRIVILEGES GRANT SELECT ON v TO c", "42601"),
        ("ALTER DEFAULT PRIVILEGES GRANT USAGE ON SEQUENCES TO c", "0A000"),
        ("ALTER DEFAULT PRIVILEGES IN SCHEMA s GRANT USAGE ON SCHEMAS TO c", "0A000"),
    ):
        with pytest.raises(SqlError) as raised:
            parse_one(text)
        assert raised.value.sqlstate == sqlstate
