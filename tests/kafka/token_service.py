"""A small OAuth 2 service for tests: client credentials against tokens that it signs (HS256), over TLS."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

from tests.wire.certificates import Certificate


class TokenService:
    """``requests`` are the client's id and the scope of each token that was given; ``refused`` counts the others."""

    def __init__(self, certificate: Certificate, clients: dict[str, str], *, lifetime_s: int = 300) -> None:
        self.requests: list[tuple[str, str | None]] = []
        self.refused = 0
        self.lifetime_s = lifetime_s
        self._clients = clients
        self._key = secrets.token_bytes(32)
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                status, answer = service.answer(self.headers.get("Authorization", ""), body)
                content = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                """Nothing is printed."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate.file, certificate.key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"https://localhost:{self._server.server_address[1]}/token"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def answer(self, authorization: str, body: dict[str, list[str]]) -> tuple[int, dict[str, object]]:
        client, _, secret = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        known = self._clients.get(client)
        if body.get("grant_type") != ["client_credentials"] or known is None or known != secret:
            self.refused += 1
            return 401, {"error": "invalid_client", "error_description": "The client is not known"}
        scope = body.get("scope", [None])[0]
        self.requests.append((client, scope))
        return 200, {"access_token": self.token(client, scope), "token_type": "Bearer", "expires_in": self.lifetime_s}

    def token(self, client: str, scope: str | None) -> str:
        now = int(time.time())
        claims = {"sub": client, "iss": "tests", "aud": "kafka", "iat": now, "exp": now + self.lifetime_s}
        if scope is not None:
            claims["scope"] = scope
        header = {"alg": "HS256", "typ": "JWT", "kid": "one"}
        text = ".".join(_encoded(json.dumps(part).encode()) for part in (header, claims))
        return f"{text}.{_encoded(hmac.new(self._key, text.encode(), hashlib.sha256).digest())}"

    def write_keys(self, path: Path) -> Path:
        """What the broker compares the signature with (JWKS)."""
        key = {"kty": "oct", "kid": "one", "alg": "HS256", "use": "sig", "k": _encoded(self._key)}
        path.write_text(json.dumps({"keys": [key]}))
        return path

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")
