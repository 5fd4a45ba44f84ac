"""Unity Catalog's REST API over a dictionary; it can be told to fail, and to lose replies."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

TOKEN = "dapi-1"
_PAGE = 2  # of tables, so that there are several


class UnityServer:
    """One workspace with the catalog main, whose schemas are default and web."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[str, Any]] = {}
        self.status: int | None = None  # of each answer
        self.lost = 0  # replies to registrations that nobody hears
        self.asked: list[tuple[str, str]] = []
        self.address = ""

    def add(self, name: str, location: str | None, *, type_: str = "EXTERNAL", format_: str = "DELTA") -> None:
        """As another program registers one."""
        catalog, schema, table = name.split(".")
        self.tables[name] = {
            "catalog_name": catalog, "schema_name": schema, "name": table, "table_type": type_,
            "data_source_format": format_, "storage_location": location, "columns": [],
        }  # fmt: skip

    def answer(self, method: str, parts: list[str], query: dict[str, list[str]], body: Any) -> tuple[int, Any]:
        if self.status is not None:
            return self.status, {"error_code": "FAILED", "message": "as it was told to"}
        match method, parts:
            case "GET", ["catalogs"]:
                return 200, {"catalogs": [{"name": "system", "catalog_type": "SYSTEM_CATALOG"}, {"name": "main"}]}
            case "GET", ["schemas"]:
                return 200, {"schemas": [{"name": name} for name in ("information_schema", "default", "web")]}
            case "GET", ["tables"]:
                return 200, self._page(f"{query['catalog_name'][0]}.{query['schema_name'][0]}.", query)
            case "POST", ["tables"]:
                return self._register(body)
            case "GET", ["tables", name]:
                found = self.tables.get(name)
                return (404, {"error_code": "TABLE_DOES_NOT_EXIST"}) if found is None else (200, found)
            case "DELETE", ["tables", name]:
                return (200, {}) if self.tables.pop(name, None) else (404, {"error_code": "TABLE_DOES_NOT_EXIST"})
        return 400, {"error_code": "UNKNOWN", "message": f"{method} {parts}"}

    def _page(self, prefix: str, query: dict[str, list[str]]) -> dict[str, Any]:
        found = [table for name, table in sorted(self.tables.items()) if name.startswith(prefix)]
        start = int(query.get("page_token", ["0"])[0])
        following = {"next_page_token": str(start + _PAGE)} if start + _PAGE < len(found) else {}
        return {"tables": found[start : start + _PAGE], **following}

    def _register(self, body: Any) -> tuple[int, Any]:
        name = f"{body['catalog_name']}.{body['schema_name']}.{body['name']}"
        if body["schema_name"] not in ("default", "web"):
            return 404, {
                "error_code": "SCHEMA_DOES_NOT_EXIST",
                "message": f"Schema '{body['schema_name']}' is not there",
            }
        if name in self.tables:
            return 400, {"error_code": "TABLE_ALREADY_EXISTS", "message": f"Table '{name}' is there"}
        self.tables[name] = body
        if self.lost:
            self.lost -= 1
            raise ConnectionAbortedError
        return 200, body


@contextmanager
def serving() -> Iterator[UnityServer]:
    unity = UnityServer()

    class Handler(BaseHTTPRequestHandler):
        def _handle(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            split = urlsplit(self.path)
            parts = [unquote(part) for part in split.path.removeprefix("/api/2.1/unity-catalog/").split("/")]
            unity.asked.append((self.command, "/".join(parts)))
            try:
                if self.headers["Authorization"] == f"Bearer {TOKEN}":
                    status, content = unity.answer(self.command, parts, parse_qs(split.query), body)
                else:
                    status, content = 401, {"error_code": "UNAUTHENTICATED", "message": "Credential was not sent"}
            except ConnectionAbortedError:
                self.close_connection = True
                return
            text = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_DELETE = _handle

        def log_message(self, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    unity.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield unity
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
