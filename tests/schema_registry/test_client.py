"""The client of schema registries, against a real one: what it finds and registers, and each way to fail."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference

from mvserver.errors import SqlError
from spark_sinks.schema_registry import limits
from spark_sinks.schema_registry.client import ConfluentClient
from spark_sinks.schema_registry.options import RegistryOptions
from tests.schema_registry.proxy import PASSWORD, USER, protected
from tests.services.schema_registry import Registry
from tests.wire import certificates

pytestmark = pytest.mark.registry

ORDER = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "item", "type": "string"}]})
WIDER = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "item", "type": "string"}, {"name": "price", "type": "int", "default": 0}],
    }
)
OTHER = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "item", "type": "int"}]})


def client(address: str, folder: Path = Path("."), **properties: Any) -> ConfluentClient:
    given = {"uris": address, **{key.replace("__", "."): value for key, value in properties.items()}}
    return ConfluentClient("sr", RegistryOptions.from_properties("CONFLUENT", given, folder))


def test_schemas_are_registered_and_found(schema_registry: Registry, subject: Callable[[], str]) -> None:
    ours, name = client(schema_registry.address), subject()
    ours.check()
    assert ours.latest(name) is None
    first = ours.register(name, "AVRO", ORDER)
    assert ours.register(name, "AVRO", ORDER) == first  # the same schema has one id
    second = ours.register(name, "AVRO", WIDER)
    assert second != first
    found, latest = ours.schema(first), ours.latest(name)
    assert found is not None
    assert latest is not None
    assert (found.kind, json.loads(found.text)) == ("AVRO", json.loads(ORDER))
    assert (latest.id, json.loads(latest.text)) == (second, json.loads(WIDER))
    assert ours.schema(2_000_000_000) is None


def test_an_incompatible_schema_is_not_taken(schema_registry: Registry, subject: Callable[[], str]) -> None:
    ours, name = client(schema_registry.address), subject()
    ours.register(name, "AVRO", ORDER)
    with pytest.raises(SqlError) as raised:
        ours.register(name, "AVRO", OTHER)
    assert raised.value.sqlstate == "22023"
    assert raised.value.message == f'schema registry "sr" does not take the schema for subject "{name}"'
    with pytest.raises(SqlError) as raised:
        ours.register(name, "AVRO", '{"type": "no such type"}')
    assert raised.value.sqlstate == "22023"


def test_schemas_that_refer_to_others_bring_them(schema_registry: Registry, subject: Callable[[], str]) -> None:
    inner = subject()
    schema_registry.register(inner, json.dumps({"type": "enum", "name": "Color", "symbols": ["RED"]}))
    outer = json.dumps({"type": "record", "name": "Car", "fields": [{"name": "color", "type": "Color"}]})
    name = subject()
    id_ = schema_registry.client.register_schema(name, Schema(outer, "AVRO", [SchemaReference("Color", inner, 1)]))
    found = client(schema_registry.address).schema(id_)
    assert found is not None
    ((reference, text),) = found.references
    assert (reference, json.loads(text)["symbols"]) == ("Color", ["RED"])


def test_tls_and_passwords(schema_registry: Registry, tmp_path: Path) -> None:
    made = certificates.make(tmp_path)
    with protected(schema_registry.address, made.file, made.key) as address:
        ca = {"tls__ca_cert_file": made.file.name}
        client(address, tmp_path, confluent__username=USER, confluent__password=PASSWORD, **ca).check()
        for name, secret in ((USER, "wrong"), (None, None)):
            given = {} if name is None else {"confluent__username": name, "confluent__password": secret}
            with pytest.raises(SqlError) as raised:
                client(address, tmp_path, **given, **ca).check()
            assert raised.value.sqlstate == "28000"
            assert raised.value.message == 'schema registry "sr" refuses the server'
        with pytest.raises(SqlError) as raised:
            client(address, confluent__username=USER, confluent__password=PASSWORD).check()  # unknown authority
        assert raised.value.sqlstate == "08006"
        assert "CERTIFICATE_VERIFY_FAILED" in (raised.value.detail or "")


def test_one_that_does_not_answer_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections, and says nothing
        began = time.monotonic()
        with pytest.raises(SqlError) as raised:
            client(f"http://127.0.0.1:{silent.getsockname()[1]}").check()
        assert time.monotonic() - began < 2 * limits.REQUEST_TIMEOUT_S * (limits.RETRIES_MAX + 1)
    assert (raised.value.sqlstate, raised.value.message) == ("08006", 'schema registry "sr" does not answer')


def test_what_is_no_registry_is_said_to_be_none() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:

        def answer() -> None:
            connection, _ = other.accept()
            connection.recv(10_000)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
            connection.close()

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(SqlError) as raised:
            client(f"http://127.0.0.1:{other.getsockname()[1]}").check()
        thread.join()
    assert raised.value.sqlstate == "08006"
    assert raised.value.detail == "What answers at its address is no schema registry."
