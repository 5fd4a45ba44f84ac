"""The same over a REST catalog: its words, its faults, and replies that are lost."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pyarrow as pa
import pytest

from mvserver.errors import SqlError
from spark_sinks.base import TableShape
from spark_sinks.iceberg.client import IcebergClient
from spark_sinks.iceberg.options import IcebergOptions
from spark_sinks.iceberg.sink import IcebergSink
from spark_sinks.store_kind import TableTarget
from spark_sinks.table_options import TableOptions
from spark_sinks.table_writes import RetriedTable
from tests.iceberg.places import TIMEOUT_S, keys_of, table_of
from tests.iceberg.rest_catalog import RestServer, serving

SHAPE = TableShape(pa.schema([pa.field("k", pa.int64(), False), ("v", pa.string())]), ("k",))
QUICK = TableOptions.of({"retry.backoff.millis": "10"})


@pytest.fixture
def rest(tmp_path: Path) -> Iterator[RestServer]:
    with serving(tmp_path) as server:
        yield server


def options(address: str, folder: Path) -> IcebergOptions:
    return IcebergOptions.from_properties({"uris": address}, [folder])


def sink(address: str, folder: Path) -> IcebergSink:
    target = TableTarget("far", options(address, folder), "web.t", "q", SHAPE, QUICK, {})
    return IcebergSink(target, timeout_s=TIMEOUT_S)


def rows(rest: RestServer) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rest.catalog.load_table("web.t").scan().to_arrow().to_pylist()
    return sorted(found, key=repr)


def test_rows_are_written_once_although_replies_are_lost(rest: RestServer, tmp_path: Path) -> None:
    client = IcebergClient("far", options(rest.address, tmp_path), timeout_s=TIMEOUT_S)
    client.check()
    assert not client.check_table("web.t", SHAPE, {})
    client.create_table("web.t", SHAPE, {})
    assert [entity.name for entity in client.list_entities()] == ["web.t"]
    writing = RetriedTable(lambda: sink(rest.address, tmp_path), QUICK, lambda: False)
    assert writing.committed_position() is None
    for seq in range(1, 7):
        rest.lost = seq % 2
        changed = table_of(SHAPE, [{"k": seq, "v": "new"}, {"k": 0, "v": str(seq)}])
        gone = keys_of(SHAPE, [{"k": seq - 2}] if seq > 2 else [])
        writing.write(changed, gone, {"seq": seq})
    assert rest.commits == 6
    assert rows(rest) == [{"k": 0, "v": "6"}, {"k": 5, "v": "new"}, {"k": 6, "v": "new"}]
    assert sink(rest.address, tmp_path).committed_position() == {"seq": 6}
    client.drop_entity("web.t", {})
    assert client.list_entities() == []


def test_a_catalog_that_is_away_is_named(tmp_path: Path) -> None:
    with serving(tmp_path) as rest:
        address = rest.address
        IcebergClient("far", options(address, tmp_path), timeout_s=TIMEOUT_S).create_table("web.t", SHAPE, {})
        writing = sink(address, tmp_path)
        writing.committed_position()
    with pytest.raises(SqlError) as caught:
        writing.write(table_of(SHAPE, [{"k": 1, "v": "x"}]), keys_of(SHAPE), {"seq": 1})
    assert (caught.value.sqlstate, caught.value.message) == ("08006", 'could not connect to store "far"')


def test_a_table_outside_of_the_open_folders_is_not_touched(rest: RestServer, tmp_path: Path) -> None:
    """Whatever the catalog says of where it lies."""
    inside = tmp_path / "open"
    inside.mkdir()
    client = IcebergClient("far", options(rest.address, inside), timeout_s=TIMEOUT_S)
    with pytest.raises(SqlError, match="42501"):
        client.create_table("web.t", SHAPE, {})
    assert client.list_entities() == []


class Page(BaseHTTPRequestHandler):
    status, content = 200, b"<html>It works!</html>"

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(self.content)

    do_POST = do_GET

    def log_message(self, *args: Any) -> None: ...


@contextmanager
def serving_pages(page: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), page) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def checked(page: type[Page], tmp_path: Path, **properties: str) -> SqlError:
    with serving_pages(page) as address:
        given = IcebergOptions.from_properties({"uris": address, **properties}, [tmp_path])
        client = IcebergClient("far", given, timeout_s=TIMEOUT_S)
        with pytest.raises(SqlError) as caught:
            client.check()
    return caught.value


def test_a_page_of_the_web_is_no_catalog(tmp_path: Path) -> None:
    error = checked(Page, tmp_path)
    assert (error.sqlstate, error.message) == ("58000", 'store "far" gave an answer that is not understood')


class Asking(BaseHTTPRequestHandler):
    """A catalog without tables, which has tokens for a client's credentials."""

    def do_POST(self) -> None:
        asked = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        known = (asked["client_id"], asked["client_secret"], asked["scope"]) == (["me"], ["hidden"], ["lake"])
        assert self.path == "/v1/oauth/tokens"
        self._answer(200 if known else 401, {"access_token": "t1", "token_type": "bearer", "expires_in": 3600})

    def do_GET(self) -> None:
        known = self.headers["Authorization"] == "Bearer t1"
        content: Any = {"namespaces": []} if self.path.endswith("namespaces") else {"defaults": {}, "overrides": {}}
        self._answer(200 if known else 401, content)

    def _answer(self, status: int, content: Any) -> None:
        text = json.dumps(content if status == 200 else {"error": "invalid_client"}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args: Any) -> None: ...


@pytest.mark.parametrize(("secret", "sqlstate"), [("hidden", None), ("guess", "42501")])
def test_credentials_are_exchanged_for_a_token(tmp_path: Path, secret: str, sqlstate: str | None) -> None:
    with serving_pages(Asking) as address:
        given = {"uris": address, "iceberg.credential": f"me:{secret}", "iceberg.scope": "lake"}
        client = IcebergClient("far", IcebergOptions.from_properties(given, [tmp_path]), timeout_s=TIMEOUT_S)
        if sqlstate is None:
            assert client.list_entities() == []
        else:
            with pytest.raises(SqlError, match=sqlstate):
                client.check()


class Refusing(Page):
    status = 401
    content = b'{"error": {"message": "Not authorized", "type": "NotAuthorizedException", "code": 401}}'


class Forbidding(Page):
    status = 403
    content = b'{"error": {"message": "No access", "type": "ForbiddenException", "code": 403}}'


class NoToken(Page):
    """Of OAuth2."""

    status = 401
    content = b'{"error": "invalid_client", "error_description": "The client is not known"}'


@pytest.mark.parametrize(
    ("page", "properties", "message", "words"),
    [
        (Refusing, {"iceberg.token": "hidden"}, 'store "far" refuses the credentials', "Not authorized"),
        (Forbidding, {"iceberg.token": "hidden"}, 'store "far" does not allow the request', "No access"),
        (NoToken, {"iceberg.credential": "me:hidden"}, 'store "far" refuses the credentials', "invalid_client"),
    ],
)
def test_who_is_refused_is_told_so(
    tmp_path: Path, page: type[Page], properties: dict[str, str], message: str, words: str
) -> None:
    error = checked(page, tmp_path, **properties)
    assert (error.sqlstate, error.message) == ("42501", message)
    assert words in (error.detail or "")
    assert "hidden" not in str(error)
