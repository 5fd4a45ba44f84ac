"""Logging in, before a small server that answers as the service does: keys, refusals, and answers that are odd."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from mvserver.errors import SqlError
from spark_sinks.snowflake.client import SnowflakeClient
from spark_sinks.snowflake.options import SnowflakeOptions
from spark_sinks.snowflake.session import Session

PEM, PKCS8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8


class Service:
    """Keeps the logins, and answers to what is asked what a test says: by a word of the request."""

    def __init__(self) -> None:
        self.logins: list[dict[str, Any]] = []
        self.answers: dict[str, dict[str, Any]] = {}
        self.asked: list[str] = []
        self.delay_s = 0.0
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                answer = service.answer(self.path, json.loads(body or b"{}"))
                text = json.dumps(answer).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *arguments: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def answer(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        if "login-request" in path:
            self.logins.append(body["data"])
            return self.answers.get(
                "login", {"success": True, "data": {"token": "t", "masterToken": "m", "parameters": []}}
            )
        words = str(body.get("sqlText", ""))
        self.asked.append(words or path)
        time.sleep(self.delay_s)
        return next((a for word, a in self.answers.items() if word in words), {"success": True, "data": {}})

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def options(self, **properties: str) -> SnowflakeOptions:
        found = {"uris": f"http://127.0.0.1:{self.port}", "snowflake.account_id": "org-account"}
        return SnowflakeOptions.from_properties({**found, "snowflake.username": "ann", **properties}, [])


@pytest.fixture
def service() -> Iterator[Service]:
    found = Service()
    yield found
    found.close()


def refused(options: SnowflakeOptions) -> SqlError:
    with pytest.raises(SqlError) as caught:
        Session("snow", options, timeout_s=3)
    return caught.value


def failure(code: str, message: str, state: str = "08001") -> dict[str, Any]:
    return {"success": False, "code": code, "message": message, "data": {"errorCode": code, "sqlState": state}}


@pytest.mark.parametrize("passphrase", [None, "p'ss"])
def test_a_key_signs_the_login(service: Service, passphrase: str | None) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    sealing = (
        serialization.NoEncryption()
        if passphrase is None
        else serialization.BestAvailableEncryption(passphrase.encode())
    )
    properties = {"snowflake.client.key": key.private_bytes(PEM, PKCS8, sealing).decode()}
    if passphrase is not None:
        properties["snowflake.client.key_passphrase"] = passphrase
    Session("snow", service.options(**properties), timeout_s=5).close()
    (login,) = service.logins
    assert (login["AUTHENTICATOR"], "PASSWORD" in login) == ("SNOWFLAKE_JWT", False)
    claims = jwt.decode(login["TOKEN"], key.public_key(), algorithms=["RS256"])
    der = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    print_ = base64.b64encode(hashlib.sha256(der).digest()).decode()
    assert claims["sub"] == "ORG-ACCOUNT.ANN"
    assert claims["iss"] == f"ORG-ACCOUNT.ANN.SHA256:{print_}"


def test_a_password_role_and_names_are_sent(service: Service) -> None:
    options = service.options(**{"snowflake.password": "hidden", "snowflake.role_name": '"r-1"'})
    Session("snow", options, timeout_s=5, tag="mvserver query q").close()
    (login,) = service.logins
    assert (login["LOGIN_NAME"], login["PASSWORD"], login["ACCOUNT_NAME"]) == ("ann", "hidden", "org-account")
    assert login["SESSION_PARAMETERS"]["QUERY_TAG"] == "mvserver query q"
    assert login["SESSION_PARAMETERS"]["TIMEZONE"] == "UTC"


@pytest.mark.parametrize("kind", ["text", "elliptic", "sealed"])
def test_what_is_no_key_is_refused_before_anything_is_asked(service: Service, kind: str) -> None:
    texts = {
        "text": "-----BEGIN PRIVATE KEY-----\nnothing\n-----END PRIVATE KEY-----",
        "elliptic": ec.generate_private_key(ec.SECP256R1())
        .private_bytes(PEM, PKCS8, serialization.NoEncryption()).decode(),
        "sealed": rsa.generate_private_key(public_exponent=65537, key_size=2048)
        .private_bytes(PEM, PKCS8, serialization.BestAvailableEncryption(b"x")).decode(),
    }  # fmt: skip
    error = refused(service.options(**{"snowflake.client.key": texts[kind]}))
    assert (error.sqlstate, 'property "snowflake.client.key" is not' in error.message) == ("22023", True)
    assert service.logins == []


@pytest.mark.parametrize(
    ("code", "sqlstate"), [("390100", "42501"), ("390144", "42501"), ("390189", "42501"), ("390201", "42501")]
)
def test_a_login_that_is_refused(service: Service, code: str, sqlstate: str) -> None:
    service.answers["login"] = failure(code, "Incorrect username or password was specified.")
    error = refused(service.options(**{"snowflake.password": "hidden"}))
    assert error.sqlstate == sqlstate
    assert "hidden" not in str(error)


def test_an_address_that_does_not_answer_is_known_at_once() -> None:
    options = SnowflakeOptions.from_properties(
        {
            "uris": "http://127.0.0.1:9",
            "snowflake.account_id": "x",
            "snowflake.username": "a",
            "snowflake.password": "b",
        },
        [],
    )
    assert refused(options).sqlstate == "08006"


def test_an_address_that_says_nothing_is_given_up_in_time() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(16)
        given = {"uris": f"http://127.0.0.1:{listener.getsockname()[1]}", "snowflake.account_id": "x",
                 "snowflake.username": "a", "snowflake.password": "b"}  # fmt: skip
        began = time.monotonic()
        error = refused(SnowflakeOptions.from_properties(given, []))
    assert error.sqlstate == "08006"
    assert time.monotonic() - began < 15  # 3 s and what the client rests, where a statement may take 60 s


@pytest.mark.parametrize(
    ("code", "state", "sqlstate"),
    [
        ("000606", "57P03", "57P03"),  # no warehouse runs
        ("000625", "57014", "40001"),  # a lock was not had in time
        ("000604", "57014", "57P03"),  # canceled
        ("002003", "42S02", "42704"),
        ("002043", "02000", "42704"),
        ("003001", "42501", "42501"),
        ("002002", "42710", "42710"),
        ("100078", "22000", "22000"),
        ("100072", "22000", "22000"),
        ("001003", "42000", "58000"),
        ("390112", "08001", "08006"),
    ],
)
def test_errors_of_statements(service: Service, code: str, state: str, sqlstate: str) -> None:
    service.answers["DO IT"] = failure(code, "the words of the service", state)
    session = Session("snow", service.options(**{"snowflake.password": "x"}), timeout_s=3)
    with pytest.raises(SqlError) as caught:
        session.run("DO IT")
    assert caught.value.sqlstate == sqlstate
    session.close()


def test_a_statement_that_takes_long_is_neither_canceled_nor_sent_again(service: Service) -> None:
    session = Session("snow", service.options(**{"snowflake.password": "x"}), timeout_s=1)
    service.answers["DO IT"] = failure("002003", "the words of the service", "42S02")
    service.delay_s = 2.5
    with pytest.raises(SqlError, match="42704"):
        session.run("DO IT")
    assert service.asked == ["DO IT"]


def test_an_odd_answer_is_an_error_of_the_store(service: Service) -> None:
    service.answers["DO IT"] = {"success": True, "data": {"rowtype": 5}}
    session = Session("snow", service.options(**{"snowflake.password": "x"}), timeout_s=3)
    with pytest.raises(SqlError) as caught:
        session.run("DO IT")
    assert caught.value.sqlstate == "58000"


@pytest.mark.parametrize("place", ["LOCAL_FS", "UNKNOWN"])
def test_a_server_does_not_write_to_this_machine(service: Service, tmp_path: Path, place: str) -> None:
    """What a file is put to is its word."""
    service.answers["PUT"] = {
        "success": True,
        "data": {
            "command": "UPLOAD", "src_locations": ["x.parquet"], "parallel": 1, "autoCompress": False,
            "overwrite": True, "sourceCompression": "none", "encryptionMaterial": None,
            "stageInfo": {"locationType": place, "location": str(tmp_path / "made"), "creds": {}},
        },
    }  # fmt: skip
    session = Session("snow", service.options(**{"snowflake.password": "x"}), timeout_s=3)
    with pytest.raises(SqlError) as caught:
        session.upload("x.parquet", b"rows", "STAGE/1/")
    assert "is not written to" in (caught.value.detail or "")
    assert list(tmp_path.iterdir()) == []


def test_tables_beyond_what_the_service_lists_are_told(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    client = SnowflakeClient("snow", service.options(**{"snowflake.password": "x"}), timeout_s=3)
    row = {"database_name": "D", "schema_name": "S", "name": "T"}
    monkeypatch.setattr(SnowflakeClient, "_tables", lambda *given: [row] * 10_000)
    with pytest.raises(SqlError) as caught:
        client.list_entities()
    assert caught.value.sqlstate == "54000"
