"""CREATE, ALTER and DROP ROLE as the parser reads them."""

from __future__ import annotations

import pytest

from mvserver.errors import SqlError
from mvserver.sql import parse_one
from mvserver.sql.statements.base import RoleSpec, Statement
from mvserver.sql.statements.roles import AlterRole, AlterRoleSetting, CreateRole, DropRole, RenameRole, RoleOptions

PASSWORD = RoleOptions(sets_password=True, password="it's")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CREATE ROLE anna", CreateRole("anna", RoleOptions(login=False))),
        ("CREATE USER Anna", CreateRole("anna", RoleOptions(login=True))),
        ('CREATE ROLE "Anna" LOGIN', CreateRole("Anna", RoleOptions(login=True))),
        ("CREATE USER a NOLOGIN", CreateRole("a", RoleOptions(login=False))),
        ("CREATE ROLE a WITH SUPERUSER LOGIN PASSWORD 'it''s'",
         CreateRole("a", RoleOptions(superuser=True, login=True, sets_password=True, password="it's"))),
        ("CREATE ROLE a NOSUPERUSER NOCREATEDB NOCREATEROLE INHERIT LOGIN NOREPLICATION NOBYPASSRLS",
         CreateRole("a", RoleOptions(superuser=False, login=True, create_database=False, bypass_row_security=False))),
        ("CREATE ROLE a CREATEDB CREATESTORE CONNECTION LIMIT 3 VALID UNTIL 'infinity' IN ROLE b, c ROLE d ADMIN e",
         CreateRole("a", RoleOptions(login=False, create_database=True, create_store=True, connection_limit=3,
                                     valid_until="infinity", in_roles=("b", "c"), members=("d",), admins=("e",)))),
        ("ALTER USER a CONNECTION LIMIT -1 NOCREATESTORE",
         AlterRole("a", RoleOptions(connection_limit=-1, create_store=False))),
        ("ALTER ROLE a RENAME TO b", RenameRole("a", "b")),
        ('ALTER ROLE a SET search_path TO x, "Y"', AlterRoleSetting(RoleSpec("a"), "search_path", 'x, "Y"')),
        ("ALTER ROLE current_user SET mv.freshness = latest",
         AlterRoleSetting(RoleSpec(special="current", position=12), "mv.freshness", "latest")),
        ("ALTER ROLE a SET TIME ZONE DEFAULT", AlterRoleSetting(RoleSpec("a"), "timezone", None)),
        ("ALTER ROLE a RESET ALL", AlterRoleSetting(RoleSpec("a"), None, None)),
        ("ALTER ROLE a PASSWORD 'it''s'", AlterRole("a", PASSWORD)),
        ("ALTER USER a WITH ENCRYPTED PASSWORD 'it''s'", AlterRole("a", PASSWORD)),
        ("ALTER ROLE current_user PASSWORD NULL", AlterRole(None, RoleOptions(sets_password=True))),
        ("ALTER ROLE a", AlterRole("a")),
        ("DROP ROLE a", DropRole(("a",))),
        ('DROP USER IF EXISTS a, "B"', DropRole(("a", "B"), if_exists=True)),
    ],
)  # fmt: skip
def test_forms(text: str, expected: Statement) -> None:
    statement = parse_one(text)
    assert type(statement) is type(expected)
    assert {k: v for k, v in vars(statement).items() if k != "text"} == {
        k: v for k, v in vars(expected).items() if k != "text"
    }


@pytest.mark.parametrize(
    ("text", "sqlstate", "message", "position"),
    [
        ("CREATE ROLE", "42601", "syntax error at end of input", 12),
        ("CREATE ROLE public", "42939", 'role name "public" is reserved', 13),
        ("CREATE ROLE current_user", "42939", "CURRENT_USER cannot be used as a role name here", 13),
        ("CREATE ROLE a LOGIN NOLOGIN", "42601", "conflicting or redundant options", 21),
        ("CREATE ROLE a PASSWORD 'x' ENCRYPTED PASSWORD 'y'", "42601", "conflicting or redundant options", 28),
        ("CREATE ROLE a PASSWORD x", "42601", 'syntax error at or near "x"', 24),
        ("CREATE ROLE a ENCRYPTED PASSWORD NULL", "42601", 'syntax error at or near "NULL"', 34),
        ("CREATE ROLE a UNENCRYPTED PASSWORD 'x'", "0A000", "UNENCRYPTED PASSWORD is no longer supported", 15),
        ("CREATE ROLE a CREATEROLE", "0A000", "the option CREATEROLE of a role is not supported", 15),
        ("CREATE ROLE a CREATEDB NOCREATEDB", "42601", "conflicting or redundant options", 24),
        ("CREATE ROLE a CONNECTION LIMIT -2", "22023", "invalid connection limit: -2", 32),
        ("ALTER ROLE a IN ROLE b", "42601", 'syntax error at or near "IN"', 14),
        ("CREATE ROLE a quick", "42601", 'unrecognized role option "quick"', 15),
        ("CREATE ROLE a, b", "42601", 'syntax error at or near ","', 14),
        ("CREATE USER MAPPING FOR a SERVER s", "0A000", "CREATE USER MAPPING is not supported", 13),
        ("CREATE GROUP g", "0A000", "CREATE GROUP is not supported", 1),
        ("ALTER ROLE current_user RENAME TO b", "42601", 'unrecognized role option "rename"', 25),
        ("ALTER ROLE a SET role = b", "0A000", "only settings of a session can be set for a role", 18),
        ("ALTER ROLE a IN DATABASE d SET x = 1", "0A000", "settings of a role in one database are not supported", 14),
        ("ALTER ROLE ALL SET x = 1", "0A000", "ALTER ROLE ALL is not supported", 12),
        (
            "ALTER TABLE t",
            "0A000",
            "ALTER TABLE is supported with OWNER TO, RENAME TO, SET SCHEMA and ROW LEVEL SECURITY only",
            14,
        ),
        ("DROP ROLE session_user", "22023", "cannot use special role specifier in DROP ROLE", 11),
        ("DROP ROLE a CASCADE", "42601", 'syntax error at or near "CASCADE"', 13),
    ],
)
def test_errors(text: str, sqlstate: str, message: str, position: int) -> None:
    with pytest.raises(SqlError) as raised:
        parse_one(text)
    assert (raised.value.sqlstate, raised.value.message, raised.value.position) == (sqlstate, message, position)


def test_a_password_is_not_in_the_options_text() -> None:
    assert "it's" not in repr(PASSWORD)
