"""The properties of a store, what they may not say, and names as Snowflake has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mvserver.errors import SqlError
from spark_sinks.snowflake.kind import SNOWFLAKE
from spark_sinks.snowflake.names import TableName, folded, identifier, parsed
from spark_sinks.snowflake.options import SnowflakeOptions
from spark_sinks.store_kind import Extra, StoreKind, require_extra

PLAIN = {"uris": "https://org-account.snowflakecomputing.com", "snowflake.username": "STREAMING_USER"}
PASSWORD = {"snowflake.password": "hidden"}


def read(properties: dict[str, Any], *folders: Path) -> SnowflakeOptions:
    return SnowflakeOptions.from_properties(properties, folders)


def test_statements_of_the_dialect(tmp_path: Path) -> None:
    (tmp_path / "my_account_rsa.p8").write_text("key")
    found = read(
        {**PLAIN, "snowflake.account_id": "my-account", "snowflake.cloud.region": "AWS us-west-2",
         "snowflake.role_name": "ACCOUNTADMIN", "snowflake.warehouse_name": "compute_wh",
         "access.region": "AWS us-west-2",
         "snowflake.client.key_file": "@/my_account_rsa.p8", "snowflake.client.key_passphrase": "hidden"},
        tmp_path,
    )  # fmt: skip
    assert (found.account, found.protocol, found.host, found.port) == (
        "my-account", "https", "org-account.snowflakecomputing.com", 443,
    )  # fmt: skip
    assert (found.role, found.warehouse, found.key_file) == (
        "ACCOUNTADMIN", "COMPUTE_WH", tmp_path / "my_account_rsa.p8",
    )  # fmt: skip
    assert "hidden" not in repr(found)
    assert str(found.table_name({"snowflake.db.name": "DEMO_DB"}, "visits")) == "DEMO_DB.PUBLIC.VISITS"


@pytest.mark.parametrize(
    ("properties", "address"),
    [
        ({"uris": "o-a.snowflakecomputing.com"}, ("o-a", "https", "o-a.snowflakecomputing.com", 443)),
        ({"uris": None, "snowflake.account_id": "xy1.eu"}, ("xy1.eu", "https", "xy1.eu.snowflakecomputing.com", 443)),
        ({"uris": "http://127.0.0.1:8080", "snowflake.account_id": "x"}, ("x", "http", "127.0.0.1", 8080)),
    ],
)  # fmt: skip
def test_the_account_and_its_address(properties: dict[str, Any], address: tuple[Any, ...]) -> None:
    given = {key: value for key, value in {**PLAIN, **PASSWORD, **properties}.items() if value is not None}
    found = read(given)
    assert (found.account, found.protocol, found.host, found.port) == address


@pytest.mark.parametrize(
    ("properties", "sqlstate", "words"),
    [
        ({**PASSWORD, "snowflake.username": "x"}, "22023", 'needs the property "uris" or "snowflake.account_id"'),
        ({**PASSWORD, "uris": PLAIN["uris"]}, "22023", 'needs the property "snowflake.username"'),
        (PLAIN, "22023", "needs one of 'snowflake.client.key_file'"),
        ({**PLAIN, **PASSWORD, "snowflake.client.key": "x"}, "22023", "needs one of 'snowflake.client.key_file'"),
        ({**PLAIN, **PASSWORD, "snowflake.client.key_passphrase": "x"}, "22023", "is that of a key"),
        ({**PLAIN, **PASSWORD, "uris": "https://host:9"}, "22023", 'the address "host" does not say the account'),
        ({**PLAIN, **PASSWORD, "uris": "https://ann:x@host"}, "22023", "is not the address of an account"),
        ({**PLAIN, **PASSWORD, "uris": "https://host/path"}, "22023", "is not the address of an account"),
        ({**PLAIN, **PASSWORD, "uris": "https://host:x"}, "22023", "is not the address of an account"),
        ({**PLAIN, **PASSWORD, "uris": "ftp://host"}, "22023", "is not the address of an account"),
        ({**PLAIN, **PASSWORD, "snowflake.account_id": "a/b"}, "22023", "is not an account"),
        ({**PLAIN, **PASSWORD, "snowflake.db.name": '"open'}, "22023", "is not a name"),
        ({**PLAIN, **PASSWORD, "snowflake.schema.name": "x" * 250}, "22023", "is longer than a name may be"),
        ({**PLAIN, **PASSWORD, "colour": "red"}, "22023", 'property "colour" is not known'),
        ({**PLAIN, "snowflake.client.key_file": "/etc/passwd"}, "42501", "is not under a configured folder"),
        ({**PLAIN, "snowflake.client.key_file": "@../../etc/passwd"}, "42501", "is not under a configured folder"),
    ],
)  # fmt: skip
def test_what_is_refused(tmp_path: Path, properties: dict[str, Any], sqlstate: str, words: str) -> None:
    with pytest.raises(SqlError) as caught:
        read(properties, tmp_path)
    assert (caught.value.sqlstate, words in caught.value.message) == (sqlstate, True), caught.value.message


def test_a_table_has_the_stores_database_and_schema() -> None:
    found = read({**PLAIN, **PASSWORD, "snowflake.db.name": "lake", "snowflake.schema.name": '"web"'})
    assert str(found.table_name({}, "visits")) == 'LAKE."web".VISITS'
    assert str(found.table_name({}, "Visits")) == 'LAKE."web"."Visits"'
    other = {"snowflake.db.name": '"My.Db"', "snowflake.schema.name": "s", "snowflake.table.name": "my-table"}
    assert str(found.table_name(other, "visits")) == '"My.Db".S."my-table"'
    with pytest.raises(SqlError) as caught:
        read({**PLAIN, **PASSWORD}).table_name({}, "visits")
    assert (caught.value.sqlstate, "a table needs a database" in caught.value.message) == ("22023", True)


def test_an_entity_has_one_name() -> None:
    for name in (TableName("DB", "S", "T"), TableName("db", "a.b", 'c"d'), TableName("D$", "_", "x y")):
        assert parsed(str(name)) == name
    for odd in ("DB.S", "db.s.t", '"DB".S.T', "DB.S.T.X", "", "DB..T", 'DB.S."t', 'DB.S."t"x', "DB.S.T."):
        assert parsed(odd) is None
    assert (folded("url"), folded("Url"), folded("a b"), folded("_x$1")) == ("URL", "Url", "a b", "_X$1")
    assert (identifier("k", "Url"), identifier("k", '"Url"'), identifier("k", '"a""b"')) == ("URL", "Url", 'a"b')


def test_packages_that_are_missing_are_named_with_their_command() -> None:
    require_extra(SNOWFLAKE)
    for module in ("no_such_package", "no_such_package.connector"):
        kind: StoreKind[Any] = StoreKind(
            "SNOWFLAKE", SNOWFLAKE.options, SNOWFLAKE.client, extra=Extra("snowflake", module)
        )
        with pytest.raises(SqlError) as caught:
            require_extra(kind)
        assert (caught.value.sqlstate, caught.value.hint) == (
            "0A000", "pip install 'mvserver[snowflake]' installs them; then start the server anew.",
        )  # fmt: skip
