"""A store's properties, and what libpq is told of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mvserver.errors import SqlError
from spark_sinks.postgresql.options import PostgresOptions

GIVEN = {"uris": "postgresql://db.example:6432/shop", "postgres.username": "cdc"}


def options(**more: Any) -> PostgresOptions:
    return PostgresOptions.from_properties({**GIVEN, **more})


@pytest.mark.parametrize(
    ("uris", "found"),
    [
        ("postgresql://db.example:6432/shop", ("db.example", 6432, "shop")),
        ("postgres://db.example/shop", ("db.example", 5432, "shop")),
        ("db.example:1/a%20b", ("db.example", 1, "a b")),
        ("postgresql://[::1]:5433/x", ("::1", 5433, "x")),
    ],
)
def test_addresses(uris: str, found: tuple[str, int, str]) -> None:
    made = options(uris=uris)
    assert (made.host, made.port, made.database) == found


@pytest.mark.parametrize(
    "uris",
    ["", "db.example:6432", "mysql://db/x", "db:99999/x", "/x", "db/x/y", "db:0/x", "host=a dbname=b", "/tmp/x:5432/y"],
)
def test_no_addresses(uris: str) -> None:
    with pytest.raises(SqlError) as caught:
        options(uris=uris)
    assert caught.value.sqlstate == "22023"
    assert "'uris' = 'postgresql://host:5432/database'" in (caught.value.hint or "")


@pytest.mark.parametrize("uris", ["postgresql://u:p@db/x", "db/x?sslmode=disable", "db/x?options=-c%20role=postgres"])
def test_an_address_is_nothing_else(uris: str) -> None:
    with pytest.raises(SqlError, match="more than a server and a database"):
        options(uris=uris)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"postgres.username": None}, 'a store of type POSTGRESQL needs the property "postgres.username"'),
        ({"postgres.password": "a\nb"}, 'property "postgres.password" must be text without control characters'),
        ({"colour": "red"}, 'property "colour" is not known for a store of type POSTGRESQL'),
        ({"sslmode": "disable"}, 'property "sslmode" is not known for a store of type POSTGRESQL'),
        ({"tls.disabled": "maybe"}, 'property "tls.disabled" cannot be "maybe"'),
    ],
)
def test_what_is_wrong(more: dict[str, Any], message: str) -> None:
    with pytest.raises(SqlError) as caught:
        options(**more)
    assert (caught.value.sqlstate, caught.value.message) == ("22023", message)


def test_a_password_never_travels_in_the_clear_unless_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("-----BEGIN CERTIFICATE-----")
    password = {"postgres.password": "secret"}
    assert options().conninfo()["sslmode"] == "disable"
    assert options(**password).conninfo()["sslmode"] == "require"
    assert options(**password, **{"tls.disabled": True}).conninfo()["sslmode"] == "disable"
    given = {**GIVEN, **password, "tls.ca_cert_file": "ca.pem"}
    made = PostgresOptions.from_properties(given, certificate_folders=[tmp_path])
    assert (made.conninfo()["sslmode"], made.conninfo()["sslrootcert"]) == ("verify-full", str(tmp_path / "ca.pem"))
    with pytest.raises(SqlError, match="contradict each other"):
        PostgresOptions.from_properties({**given, "tls.disabled": True}, certificate_folders=[tmp_path])
    with pytest.raises(SqlError) as caught:
        PostgresOptions.from_properties({**given, "tls.ca_cert_file": "../x"}, certificate_folders=[tmp_path])
    assert caught.value.sqlstate == "42501"
    assert "secret" not in repr(made)


def test_nothing_of_the_environment_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "other")
    assert options().conninfo()["password"] == ""
