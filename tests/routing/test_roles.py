"""CREATE, ALTER and DROP ROLE at the router: what is kept, who may, and PostgreSQL's errors."""

from __future__ import annotations

import pytest

from catalog.model import Role
from mvserver.auth import passwords
from mvserver.sql import parse_one
from tests.routing.fakes import Bench


def role(bench: Bench, name: str) -> Role:
    return bench.catalog.roles.get(name)


def kept(bench: Bench, name: str) -> passwords.Verifier | None:
    text = role(bench, name).password
    return None if text is None else passwords.parse(text)


def test_a_role_is_kept_with_a_verifier_and_not_with_its_password(bench: Bench) -> None:
    bench.run("CREATE ROLE anna WITH LOGIN PASSWORD 'hush'", "CREATE USER ben SUPERUSER", "CREATE ROLE team")
    anna = kept(bench, "anna")
    assert isinstance(anna, passwords.ScramVerifier)
    assert anna == passwords.ScramVerifier.of("hush", anna.salt, 4096)
    assert (role(bench, "anna").superuser, role(bench, "anna").can_login) == (False, True)
    assert (role(bench, "ben").superuser, role(bench, "ben").can_login, kept(bench, "ben")) == (True, True, None)
    assert role(bench, "team").can_login is False
    assert "hush" not in "".join(bench.dump())
    assert str(role(bench, "anna").password) not in repr(role(bench, "anna"))
    assert role(bench, "anna").oid >= 16384


def test_two_roles_with_one_password_are_kept_differently(bench: Bench) -> None:
    bench.run("CREATE ROLE a PASSWORD 'x'", "CREATE ROLE b PASSWORD 'x'")
    assert role(bench, "a").password != role(bench, "b").password


def test_md5_by_setting(bench: Bench) -> None:
    bench.context.settings["password_encryption"] = "md5"
    bench.run("CREATE ROLE anna PASSWORD 'hush'")
    assert role(bench, "anna").password == "md5a768340fabd7315490804d295272bf17"


def test_a_verifier_is_kept_as_it_is(bench: Bench) -> None:
    verifier = passwords.stored("hush", "anna", "scram-sha-256")
    bench.run(f"CREATE ROLE anna ENCRYPTED PASSWORD '{verifier}'")
    assert role(bench, "anna").password == verifier


def test_alter_changes_what_it_names_and_nothing_else(bench: Bench) -> None:
    bench.run("CREATE USER anna PASSWORD 'hush'")
    before = role(bench, "anna")
    bench.run("ALTER ROLE anna SUPERUSER NOLOGIN")
    after = role(bench, "anna")
    assert (after.superuser, after.can_login, after.password) == (True, False, before.password)
    bench.run("ALTER USER anna WITH NOSUPERUSER LOGIN PASSWORD NULL")
    assert role(bench, "anna").password is None
    bench.run("ALTER ROLE CURRENT_USER PASSWORD 'own'")
    assert kept(bench, "postgres") is not None


def test_an_empty_password_is_none(bench: Bench) -> None:
    bench.run("CREATE ROLE anna PASSWORD ''")
    assert bench.notices == ["empty string is not a valid password, clearing password"]
    assert role(bench, "anna").password is None


def test_drop_takes_all_or_none(bench: Bench) -> None:
    bench.run("CREATE ROLE a", "CREATE ROLE b", "CREATE ROLE c")
    error = bench.error("DROP ROLE a, nosuch, b")
    assert (error.sqlstate, error.message) == ("42704", 'role "nosuch" does not exist')
    assert bench.catalog.roles.find("a") is not None
    bench.run("DROP ROLE IF EXISTS a, nosuch, b")
    assert bench.notices == ['role "nosuch" does not exist, skipping']
    bench.run("DROP USER c")
    assert [r.name for r in bench.catalog.roles.all()] == ["postgres"]


def test_a_role_that_owns_something_is_not_dropped(bench: Bench) -> None:
    bench.run("CREATE ROLE anna CREATESTORE", "GRANT CREATE ON DATABASE postgres TO anna")
    bench.context.role = "anna"
    bench.run("CREATE SCHEMA hers", "CREATE STORE f WITH ('type' = FILE, 'uris' = 'x')")
    bench.context.role = "postgres"
    error = bench.error("DROP ROLE anna")
    assert (error.sqlstate, error.message) == (
        "2BP01",
        'role "anna" cannot be dropped because some objects depend on it',
    )
    assert error.detail == "owner of schema hers\nowner of store f\nprivileges for database postgres"


@pytest.mark.parametrize(
    ("text", "sqlstate", "message"),
    [
        ("CREATE ROLE postgres", "42710", 'role "postgres" already exists'),
        ('CREATE ROLE "public"', "42939", 'role name "public" is reserved'),
        ("CREATE ROLE pg_mine", "42939", 'role name "pg_mine" is reserved'),
        (f"CREATE ROLE {'x' * 64}", "42602", f'identifier "{"x" * 63}..." is too long'),
        ("ALTER ROLE nosuch LOGIN", "42704", 'role "nosuch" does not exist'),
        ("ALTER ROLE postgres NOSUPERUSER", "42501", "permission denied to alter role"),
        ("DROP ROLE nosuch", "42704", 'role "nosuch" does not exist'),
        ("DROP ROLE postgres", "55006", "current user cannot be dropped"),
    ],
)
def test_errors(bench: Bench, text: str, sqlstate: str, message: str) -> None:
    before = bench.dump()
    error = bench.error(text)
    assert (error.sqlstate, error.message) == (sqlstate, message)
    assert bench.dump() == before


def test_only_superusers_manage_roles_and_databases(bench: Bench) -> None:
    bench.run("CREATE USER anna", "CREATE USER boss SUPERUSER")
    bench.context.role = "anna"
    for text, what in (
        ("CREATE ROLE x", "create role"),
        ("ALTER ROLE postgres PASSWORD 'x'", "alter role"),
        ("ALTER ROLE anna SUPERUSER", "alter role"),
        ("ALTER ROLE anna NOLOGIN PASSWORD 'x'", "alter role"),
        ("DROP ROLE boss", "drop role"),
        ("CREATE DATABASE d", "create database"),
    ):
        error = bench.error(text)
        assert (error.sqlstate, error.message) == ("42501", f"permission denied to {what}")
    bench.run("ALTER USER anna PASSWORD 'mine'")
    assert kept(bench, "anna") is not None
    bench.context.role = "boss"
    bench.run("CREATE ROLE x", "DROP ROLE x, anna")
    error = bench.error("DROP ROLE postgres")
    assert (error.sqlstate, error.message) == (
        "2BP01",
        "cannot drop role postgres because it is required by the database system",
    )


def test_in_a_transaction_roles_are_validated_together(bench: Bench) -> None:
    created = parse_one("CREATE ROLE anna PASSWORD 'x'")
    bench.router.validate(parse_one("ALTER ROLE anna SUPERUSER"), bench.context, [created])
    assert bench.catalog.roles.find("anna") is None
    assert "'x'" not in repr(created).replace(created.text, "")
