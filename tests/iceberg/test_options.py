"""The properties of a store, and what they may not name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mvserver.errors import SqlError
from spark_sinks.iceberg.kind import ICEBERG
from spark_sinks.iceberg.options import IcebergOptions
from spark_sinks.store_kind import Extra, require_extra

FILE = {"uris": "sqlite:///c.db", "iceberg.warehouse": "lake"}
REST = {"uris": "https://host/catalog"}
S3 = {"s3.access_key_id": "a", "s3.secret_access_key": "b"}


def read(properties: dict[str, Any], *roots: Path) -> IcebergOptions:
    return IcebergOptions.from_properties(properties, roots)


def test_what_the_client_is_given(tmp_path: Path) -> None:
    found = read(FILE, tmp_path)
    assert (found.is_rest, found.uri, found.name) == (False, f"sqlite:///{tmp_path}/c.db", "default")
    assert found.warehouse == (tmp_path / "lake").as_uri()
    found = read(
        {**REST, **S3, "iceberg.credential": "id:secret", "s3.endpoint": "http://s3:9000", "access.region": "eu-west-1"}
    )
    assert dict(found.client) == {
        "credential": "id:secret", "s3.endpoint": "http://s3:9000", "s3.access-key-id": "a",
        "s3.secret-access-key": "b", "s3.region": "eu-west-1",
        "oauth2-server-uri": "https://host/catalog/v1/oauth/tokens",
    }  # fmt: skip
    found = read(
        {"uris": "postgresql://host:5433/db", "iceberg.username": "an/n", "iceberg.password": "p@ss",
         "iceberg.warehouse": "s3://bucket/lake", **S3}
    )  # fmt: skip
    assert found.uri == "postgresql+psycopg://an%2Fn:p%40ss@host:5433/db"
    assert "p%40ss" not in repr(found)
    assert "secret" not in repr(read({**REST, "iceberg.credential": "id:secret"}))


@pytest.mark.parametrize(
    ("properties", "sqlstate", "words"),
    [
        ({"iceberg.warehouse": "lake"}, "22023", 'needs the property "uris"'),
        ({**FILE, "colour": "red"}, "22023", 'property "colour" is not known'),
        ({**FILE, "uris": "mysql://host/db"}, "22023", "is not the address of a catalog"),
        ({**FILE, "uris": "sqlite:///:memory:"}, None, ""),  # a file of that name
        ({**FILE, "uris": "sqlite:///c.db?mode=ro"}, "22023", "is not the address of a catalog"),
        ({**FILE, "uris": "sqlite:////etc/c.db"}, "42501", "is not under a configured root"),
        ({**FILE, "uris": "sqlite:///../c.db"}, "42501", "is not under a configured root"),
        ({**FILE, "iceberg.warehouse": "/etc"}, "42501", "is not under a configured root"),
        ({**FILE, "iceberg.warehouse": "file:///etc"}, "42501", "is not under a configured root"),
        ({**FILE, "iceberg.warehouse": "ftp://host/x"}, "22023", "is not s3://bucket/path or a folder"),
        ({"uris": "postgresql://ann:secret@host/db", "iceberg.warehouse": "lake"}, "22023", "a name or a password"),
        ({**REST, "iceberg.username": "ann"}, "22023", "does not fit a catalog that is a REST service"),
        ({**FILE, "iceberg.token": "t"}, "22023", "does not fit a catalog that is a database"),
        ({"uris": "https://ann:secret@host"}, "22023", "is not the address of a REST catalog"),
        ({**REST, "s3.access_key_id": "a"}, "22023", "are given together"),
        ({**REST, "s3.endpoint": "http://elsewhere"}, "42501", "the server's own credentials are not used"),
    ],
)
def test_what_is_refused(tmp_path: Path, properties: dict[str, Any], sqlstate: str | None, words: str) -> None:
    if sqlstate is None:
        assert read(properties, tmp_path).uri.startswith(f"sqlite:///{tmp_path}")
        return
    with pytest.raises(SqlError) as caught:
        read(properties, tmp_path)
    assert caught.value.sqlstate == sqlstate
    assert words in caught.value.message


def test_links_lead_nowhere_else(tmp_path: Path) -> None:
    inside = tmp_path / "open"
    inside.mkdir()
    (inside / "out").symlink_to(tmp_path)
    with pytest.raises(SqlError, match="42501"):
        read({**FILE, "iceberg.warehouse": "out/lake"}, inside)


def test_packages_that_are_missing_are_named_with_the_command() -> None:
    from dataclasses import replace

    require_extra(ICEBERG)
    with pytest.raises(SqlError) as caught:
        require_extra(replace(ICEBERG, extra=Extra("iceberg", "no_such_package")))
    assert (caught.value.sqlstate, caught.value.message) == (
        "0A000", "stores of type ICEBERG need packages that are not installed",
    )  # fmt: skip
    assert caught.value.hint == "pip install 'mvserver[iceberg]' installs them; then start the server anew."
