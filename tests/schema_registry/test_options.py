"""The properties of schema registries: what is taken, and what is refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mvserver.errors import SqlError
from spark_sinks.schema_registry.options import RegistryOptions


def options(type_: str = "CONFLUENT", folder: Path = Path("."), **properties: Any) -> RegistryOptions:
    given = {key.replace("__", "."): value for key, value in properties.items()}
    return RegistryOptions.from_properties(type_, given, folder)


def test_settings_of_the_client(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("certificate")
    found = options(
        "CONFLUENT_CLOUD", tmp_path, uris="https://a:1/, https://b:2/x", confluent_cloud__key="k",
        confluent_cloud__secret="s:t", tls__ca_cert_file="ca.pem",
    )  # fmt: skip
    assert found.settings() == {
        "url": "https://a:1,https://b:2/x", "basic.auth.user.info": "k:s:t", "timeout": 5.0, "max.retries": 1,
        "retries.wait.ms": 200, "retries.max.wait.ms": 200, "ssl.ca.location": str((tmp_path / "ca.pem").resolve()),
    }  # fmt: skip
    assert "s:t" not in repr(found)


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({}, 'a schema registry of type CONFLUENT needs the property "uris"'),
        ({"uris": "host:8081"}, 'property "uris" has a part that is not an address of HTTP'),
        ({"uris": "mock://x"}, 'property "uris" has a part that is not an address of HTTP'),
        ({"uris": "http://a:99999"}, 'property "uris" has a part that is not an address of HTTP'),
        ({"uris": "http://u:p@host"}, 'property "uris" must not have a user name or password in it'),
        ({"uris": "http://a", "color": "red"}, 'property "color" is not known for a schema registry of type CONFLUENT'),
        ({"uris": "http://a", "confluent__username": "u"},
         'properties "confluent.username" and "confluent.password" must be given together'),
        ({"uris": "http://a", "confluent__username": "u:v", "confluent__password": "p"},
         'property "confluent.username" must not have a colon'),
        ({"uris": "http://a", "confluent__username": "u\n", "confluent__password": "p"},
         'property "confluent.username" must be text without control characters'),
        ({"uris": "http://a", "confluent_cloud__key": "u"},
         'property "confluent_cloud.key" is not known for a schema registry of type CONFLUENT'),
    ],
)  # fmt: skip
def test_what_is_wrong_is_22023(properties: dict[str, Any], message: str) -> None:
    with pytest.raises(SqlError) as raised:
        options(**properties)
    assert (raised.value.sqlstate, raised.value.message) == ("22023", message)


def test_files_lie_in_the_configured_folder(tmp_path: Path) -> None:
    folder = tmp_path / "config"
    folder.mkdir()
    (tmp_path / "outside.pem").write_text("x")
    (folder / "link.pem").symlink_to(tmp_path / "outside.pem")
    for name in ("../outside.pem", str(tmp_path / "outside.pem"), "link.pem", "missing.pem"):
        with pytest.raises(SqlError) as raised:
            options(folder=folder, uris="https://a", tls__ca_cert_file=name)
        assert raised.value.sqlstate == "42501"
    (folder / "key.pem").write_text("x")
    with pytest.raises(SqlError, match="needs the property"):
        options(folder=folder, uris="https://a", tls__client__key_file="key.pem")
    with pytest.raises(SqlError, match="begin with https"):
        options(folder=folder, uris="http://a", tls__ca_cert_file="key.pem")
