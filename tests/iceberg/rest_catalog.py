"""A REST catalog as Iceberg's specification has it, over a catalog in SQLite; it can be told to lose replies."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pyiceberg import exceptions
from pyiceberg.catalog.rest import CreateTableRequest, TableResponse
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.table import CommitTableRequest, CommitTableResponse, Table
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER

_STATUS: dict[type[Exception], int] = {
    exceptions.NoSuchTableError: 404,
    exceptions.NoSuchNamespaceError: 404,
    exceptions.NamespaceAlreadyExistsError: 409,
    exceptions.TableAlreadyExistsError: 409,
    exceptions.CommitFailedException: 409,
}

_LEFT_OUT = {"location": None, "partition-spec": None, "write-order": None}


class RestServer:
    """What it serves, and how it fails."""

    def __init__(self, folder: Path) -> None:
        self.catalog = SqlCatalog(
            "rest", uri=f"sqlite:///{folder}/rest.db?timeout=30", warehouse=(folder / "rest").as_uri()
        )
        self.turn = threading.Lock()
        self.lost = 0  # replies to commits that nobody hears
        self.commits = 0
        self.address = ""

    def answer(self, method: str, parts: list[str], body: Any) -> Any:
        match method, parts:
            case "GET", ["config"]:
                return {"defaults": {}, "overrides": {}}
            case "GET", ["namespaces"]:
                return {"namespaces": [list(name) for name in self.catalog.list_namespaces()]}
            case "POST", ["namespaces"]:
                self.catalog.create_namespace(tuple(body["namespace"]))
                return {"namespace": body["namespace"], "properties": {}}
            case "GET", ["namespaces", space, "tables"]:
                found = self.catalog.list_tables(space)
                return {"identifiers": [{"namespace": list(name[:-1]), "name": name[-1]} for name in found]}
            case "POST", ["namespaces", space, "tables"]:
                return self._create(space, CreateTableRequest.model_validate({**_LEFT_OUT, **body}))
            case (("GET" | "HEAD"), ["namespaces", space, "tables", name]):
                return _loaded(self.catalog.load_table((space, name)))
            case "DELETE", ["namespaces", space, "tables", name]:
                self.catalog.purge_table((space, name))
                return None
            case "POST", ["namespaces", space, "tables", name]:
                return self._commit((space, name), body)
        raise ValueError(f"{method} {parts}")

    def _create(self, space: str, request: CreateTableRequest) -> Any:
        table = self.catalog.create_table(
            (space, request.name),
            request.table_schema,
            partition_spec=request.partition_spec or UNPARTITIONED_PARTITION_SPEC,
            sort_order=request.write_order or UNSORTED_SORT_ORDER,
            properties=request.properties,
        )
        return _loaded(table)

    def _commit(self, name: tuple[str, str], body: Any) -> Any:
        request = CommitTableRequest.model_validate({**body, "identifier": {"namespace": [name[0]], "name": name[1]}})
        with self.turn:
            done = self.catalog.commit_table(self.catalog.load_table(name), request.requirements, request.updates)
            self.commits += 1
            if self.lost:
                self.lost -= 1
                raise ConnectionAbortedError
        return json.loads(CommitTableResponse.model_validate(done.model_dump(by_alias=True)).model_dump_json())


def _loaded(table: Table) -> Any:
    response = TableResponse.model_validate(
        {"metadata-location": table.metadata_location, "metadata": table.metadata.model_dump(by_alias=True)}
    )
    return json.loads(response.model_dump_json())


@contextmanager
def serving(folder: Path, port: int = 0) -> Iterator[RestServer]:
    rest = RestServer(folder)

    class Handler(BaseHTTPRequestHandler):
        def _handle(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            parts = [unquote(part) for part in urlsplit(self.path).path.removeprefix("/v1/").split("/")]
            try:
                status, content = 200, rest.answer(self.command, parts, body)
            except ConnectionAbortedError:
                self.close_connection = True
                return
            except tuple(_STATUS) as error:
                status = _STATUS[type(error)]
                content = {"error": {"message": str(error), "type": type(error).__name__, "code": status}}
            text = b"" if content is None else json.dumps(content).encode()
            self.send_response(204 if content is None else status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(text)

        do_GET = do_POST = do_DELETE = do_HEAD = _handle

        def log_message(self, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    rest.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield rest
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        rest.catalog.close()
