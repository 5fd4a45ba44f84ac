"""Google's storage where it differs: how the server logs in, uploads in parts, and contents that are packed."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from mvserver.errors import SqlError
from spark_sinks.file.objects import google
from spark_sinks.file.objects.google import GoogleObjects
from spark_sinks.file.objects.options import GOOGLE, object_options
from tests.file.services import Bucket, serving

pytestmark = pytest.mark.slow

PRIVATE = rsa.generate_private_key(65537, 2048)
ACCOUNT = "reader@project.iam.example"
UNIT = 256 * 1024


def account_key(**more: str) -> str:
    pem = PRIVATE.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    key = {
        "type": "service_account", "client_email": ACCOUNT, "private_key_id": "1", "private_key": pem.decode(),
        "token_uri": "http://127.0.0.1:9/elsewhere",
    }  # fmt: skip
    return json.dumps({**key, **more})


@pytest.fixture(scope="module")
def bucket() -> Iterator[Bucket]:
    with serving("google") as service:
        yield service.place()


def objects(**properties: str) -> GoogleObjects:
    given = {"uris": "gs://bucket", **{key.replace("__", "."): value for key, value in properties.items()}}
    return GoogleObjects("s", object_options(GOOGLE, given), 5.0)


def refused(call: Callable[[], object]) -> SqlError:
    with pytest.raises(SqlError) as caught:
        call()
    return caught.value


Answer = tuple[int, dict[str, str], bytes]


@contextmanager
def answering(answer: Callable[[str, str, dict[str, str], bytes], Answer]) -> Iterator[str]:
    """An HTTP service that has such answers to method, path, headers and body."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._do()

        def do_POST(self) -> None:
            self._do()

        def do_PUT(self) -> None:
            self._do()

        def _do(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {key.lower(): value for key, value in self.headers.items()}
            status, said, content = answer(self.command, self.path, headers, body)
            self.send_response(status)
            for key, value in {**said, "Content-Length": str(len(content))}.items():
                self.send_header(key, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


# --- who the server is ------------------------------------------------------------------------------------------------
def test_a_key_is_exchanged_for_a_token_at_googles_own_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the key says of another address does not count: it could be any."""
    tokens: list[str] = []

    def answer(method: str, path: str, headers: dict[str, str], body: bytes) -> Answer:
        if method == "POST":
            (assertion,) = parse_qs(body.decode())["assertion"]
            head, claims, signature = assertion.split(".")
            PRIVATE.public_key().verify(
                _decoded(signature), f"{head}.{claims}".encode(), padding.PKCS1v15(), hashes.SHA256()
            )
            assert json.loads(_decoded(claims))["iss"] == ACCOUNT
            tokens.append(f"t{len(tokens)}")
            return 200, {"Content-Type": "application/json"}, _json(access_token=tokens[-1], expires_in=3600)
        if headers["authorization"] != "Bearer t1":  # the first is said to be no longer good
            return 401, {}, _json(error={"message": "Invalid Credentials"})
        return 200, {"Content-Type": "application/json"}, b"{}"

    with answering(answer) as address:
        monkeypatch.setattr(google, "TOKEN_ADDRESS", f"{address}/token")
        objects(gcs__service_account_key=account_key(), gcs__endpoint=address).check("")
    assert tokens == ["t0", "t1"]


def _json(**content: Any) -> bytes:
    return json.dumps(content).encode()


def _decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def test_a_token_that_is_refused_is_said() -> None:
    def answer(method: str, path: str, headers: dict[str, str], body: bytes) -> Answer:
        assert headers["authorization"] == "Bearer mine"
        return 401, {}, _json(error={"message": "Invalid Credentials"})

    with answering(answer) as address:
        error = refused(lambda: objects(gcs__token="mine", gcs__endpoint=address).check(""))
    assert (error.sqlstate, error.detail) == ("42501", "gs://bucket: Invalid Credentials.")


@pytest.mark.parametrize(("status", "sqlstate"), [(400, "42501"), (503, "08006")])
def test_a_key_for_which_there_is_no_token(monkeypatch: pytest.MonkeyPatch, status: int, sqlstate: str) -> None:
    def answer(method: str, path: str, headers: dict[str, str], body: bytes) -> Answer:
        said = _json(error="invalid_grant", error_description="Invalid JWT Signature.") if status == 400 else b""
        return status, {"Content-Type": "application/json"}, said

    with answering(answer) as address:
        monkeypatch.setattr(google, "TOKEN_ADDRESS", f"{address}/token")
        error = refused(lambda: objects(gcs__service_account_key=account_key(), gcs__endpoint=address).check(""))
    assert error.sqlstate == sqlstate


def test_the_servers_own_credentials_are_looked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "nowhere.json"))
    error = refused(lambda: objects().check(""))
    assert error.sqlstate == "42501"
    assert "nowhere.json" in (error.detail or "")


@pytest.mark.parametrize("wrong", ["x", "[]", '{"type": "service_account"}', account_key(type="external_account"),
                                   account_key(private_key="x")])  # fmt: skip
def test_keys_that_are_none(wrong: str) -> None:
    error = refused(lambda: objects(gcs__service_account_key=wrong))
    assert (error.sqlstate, error.message) == (
        "22023", 'property "gcs.service_account_key" is not the key of a service account',
    )  # fmt: skip


def test_secrets_are_not_in_what_is_logged() -> None:
    options = object_options(GOOGLE, {"uris": "gs://bucket", "gcs.service_account_key": account_key()})
    assert "PRIVATE" not in repr(options)


# --- uploads ----------------------------------------------------------------------------------------------------------
def test_a_part_that_did_not_arrive_whole_fails_the_batch() -> None:
    def answer(method: str, path: str, headers: dict[str, str], body: bytes) -> Answer:
        if method == "POST":
            return 200, {"Location": f"http://elsewhere.example{path}&upload_id=u"}, b""
        return 308, {"Range": f"bytes=0-{UNIT - 1}"}, b""

    with answering(answer) as address:
        store = objects(gcs__token="mine", gcs__endpoint=address)
        assert refused(lambda: store.begin("k", bytes(2 * UNIT))).sqlstate == "08006"
        begun = store.begin("k", bytes(UNIT))
        assert refused(lambda: store.finish("k", begun)).sqlstate == "08006"  # which is not at its end


def test_a_note_cannot_send_the_token_elsewhere(bucket: Bucket) -> None:
    """An upload is named by its id alone: what is in a note may have been written by others."""
    store = bucket.store()
    begun = json.loads(store.begin("k", b"content"))
    assert sorted(begun) == ["at", "rest", "upload"]
    assert "/" not in begun["upload"]


# --- contents ---------------------------------------------------------------------------------------------------------
def test_contents_come_as_they_are_kept(bucket: Bucket, tmp_path: Path) -> None:
    """The service would take apart what was stored as compressed, so that its size would be another."""
    content = gzip.compress(b"1\n2\n")
    named = {"uploadType": "media", "name": "a.json.gz", "contentEncoding": "gzip"}
    bucket._google("POST", f"/upload/storage/v1/b/{bucket.name}/o", params=named, data=content)
    store = bucket.store()
    (found,) = store.list("")
    store.download("a.json.gz", found.version, tmp_path / "a", lambda: False)
    assert (tmp_path / "a").read_bytes() == content
    assert store.read("a.json.gz") == (content, found.version)
