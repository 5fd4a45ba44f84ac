"""The example page, served as a site of its own would serve it: the page, and tickets that the site asks for."""

from __future__ import annotations

import base64
import json
import threading
import urllib.error
import urllib.request
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PAGE = Path(__file__).with_name("visits.html")
_TIMEOUT_S = 20.0


class PageServer:
    """On loopback; ``server`` is the address of the server's HTTP front end."""

    def __init__(self, host: str, port: int, server: str, views: list[str]) -> None:
        self._server = ThreadingHTTPServer((host, port), _Handler)
        self._server.daemon_threads = True
        self._server.mvserver = (server, views)  # type: ignore[attr-defined]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def server(self) -> str:
        """The address of the server's HTTP front end."""
        return str(self._server.mvserver[0])  # type: ignore[attr-defined]

    @property
    def address(self) -> str:
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/":
            self._answer(HTTPStatus.OK, "text/html; charset=utf-8", PAGE.read_bytes())
        elif self.path == "/ticket":
            self._ticket()
        else:
            self._answer(HTTPStatus.NOT_FOUND, "text/plain", b"there is nothing here\n")

    def _ticket(self) -> None:
        server, views = self.server.mvserver  # type: ignore[attr-defined]
        request = urllib.request.Request(  # noqa: S310 - the server's own address
            f"{server}/v1/tickets",
            data=json.dumps({"views": views}).encode(),
            headers={
                "Content-Type": "application/json",
                "Authorization": f"Basic {base64.b64encode(b'postgres:').decode()}",
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310 - the same
                ticket = json.load(answer)["ticket"]
        except (urllib.error.URLError, OSError, ValueError) as error:
            self._answer(HTTPStatus.BAD_GATEWAY, "text/plain", f"no ticket: {error}\n".encode())
            return
        body = json.dumps({"server": server, "ticket": ticket}).encode()
        self._answer(HTTPStatus.OK, "application/json", body)

    def _answer(self, status: HTTPStatus, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the base class has it
        """Nothing: the terminal is the demo's."""
