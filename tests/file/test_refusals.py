"""Services for objects that refuse the server, say nothing, or are something else: what CREATE STORE says of each."""

from __future__ import annotations

import base64
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from mvserver.errors import SqlError
from spark_sinks.file.objects.options import object_options, service_of
from tests.file.services import store_of

TIMEOUT_S = 2.0
PLACES = {
    "s3": {"uris": "s3://bucket/in", "aws.access_key_id": "a", "aws.secret_access_key": "b"},
    "google": {"uris": "gs://bucket/in", "gcs.token": "t"},
    "azure": {
        "uris": "abfss://container@account.dfs.core.windows.net/in",
        "azure.account_key": base64.b64encode(b"key").decode(),
    },
}
ENDPOINTS = {"s3": "s3.endpoint", "google": "gcs.endpoint", "azure": "azure.endpoint"}
CREDENTIALS, REQUEST = 'store "s" refuses the credentials', 'store "s" does not allow the request'


def of_xml(code: str) -> bytes:
    return (
        f"<?xml version='1.0' encoding='utf-8'?><Error><Code>{code}</Code><Message>{code}!</Message></Error>".encode()
    )


def of_json(message: str) -> bytes:
    return b'{"error": {"message": "%s"}}' % message.encode()


@contextmanager
def answering(status: int, content: bytes, kind: str = "application/xml", **headers: str) -> Iterator[str]:
    """Each request has this answer."""

    class Handler(BaseHTTPRequestHandler):
        def _do(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(status)
            for key, value in {**headers, "Content-Type": kind, "Content-Length": str(len(content))}.items():
                self.send_header(key, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_HEAD = _do

        def log_message(self, *args: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def silent() -> Iterator[str]:
    """It takes connections and says nothing."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def refused(call: Callable[[], object]) -> SqlError:
    with pytest.raises(SqlError) as caught:
        call()
    return caught.value


def checked(name: str, address: str) -> SqlError:
    properties = {**PLACES[name], ENDPOINTS[name]: address}
    service = service_of(properties["uris"])
    assert service is not None
    store = store_of(object_options(service, properties), TIMEOUT_S)
    try:
        return refused(lambda: store.check("in"))
    finally:
        store.close()


@pytest.mark.parametrize(
    ("name", "status", "content", "message"),
    [
        ("s3", 403, of_xml("InvalidAccessKeyId"), CREDENTIALS),
        ("s3", 403, of_xml("SignatureDoesNotMatch"), CREDENTIALS),
        ("s3", 403, of_xml("RequestTimeTooSkewed"), CREDENTIALS),
        ("s3", 400, of_xml("ExpiredToken"), CREDENTIALS),
        ("s3", 400, of_xml("InvalidToken"), CREDENTIALS),
        ("s3", 400, of_xml("AuthorizationHeaderMalformed"), CREDENTIALS),  # of another region
        ("s3", 401, b"", CREDENTIALS),
        ("s3", 403, of_xml("AccessDenied"), REQUEST),
        ("google", 401, of_json("Invalid Credentials"), CREDENTIALS),
        ("google", 403, of_json("reader has no access to the bucket"), REQUEST),
        ("azure", 403, of_xml("AuthenticationFailed"), CREDENTIALS),
        ("azure", 403, of_xml("InvalidAuthenticationInfo"), CREDENTIALS),
        ("azure", 401, of_xml("NoAuthenticationInformation"), CREDENTIALS),
        ("azure", 403, of_xml("AuthorizationPermissionMismatch"), REQUEST),
    ],
)
def test_who_is_refused_is_told_so(name: str, status: int, content: bytes, message: str) -> None:
    code = content.decode().partition("<Code>")[2].partition("<")[0]
    with answering(status, content, **({"x-ms-error-code": code} if name == "azure" else {})) as address:
        error = checked(name, address)
    assert (error.sqlstate, error.message) == ("42501", message)
    assert (error.detail or "").startswith(PLACES[name]["uris"])
    assert (error.hint is not None) == (message == CREDENTIALS)


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("content", [b"<html>hello</html>", b"hello", b"{}", b""])
def test_what_is_no_such_service_is_told_so(name: str, content: bytes) -> None:
    if name == "google" and content == b"{}":
        return  # an empty list, as the service has it
    with answering(200, content, "text/html") as address:
        error = checked(name, address)
    assert error.sqlstate in ("58000", "08006"), error
    assert PLACES[name]["uris"] in (error.detail or "")


def test_a_service_that_sends_elsewhere_is_told_so() -> None:
    with answering(301, of_xml("PermanentRedirect")) as address:
        error = checked("s3", address)
    assert (error.sqlstate, error.message) == ("08006", 'store "s" does not answer')


@pytest.mark.parametrize("name", PLACES)
def test_a_service_that_says_nothing_is_asked_once(name: str) -> None:
    with silent() as address:
        began = time.monotonic()
        error = checked(name, address)
        took = time.monotonic() - began
    assert (error.sqlstate, error.message) == ("08006", 'store "s" does not answer')
    assert TIMEOUT_S <= took < 2 * TIMEOUT_S


@pytest.mark.parametrize("region", ["not a region!", "-us-east-1", "1234", "us.east", "x" * 64])
def test_what_is_no_region(region: str) -> None:
    properties = {**PLACES["s3"], "access.region": region}
    service = service_of(properties["uris"])
    assert service is not None
    error = refused(lambda: object_options(service, properties))
    assert (error.sqlstate, error.message) == (
        "22023", f'property "access.region" has "{region}", which is not a region',
    )  # fmt: skip


def test_other_clouds_than_awss_have_no_region() -> None:
    """As documented, 'access.region' is without effect there."""
    service = service_of(PLACES["google"]["uris"])
    assert service is not None
    assert object_options(service, {**PLACES["google"], "access.region": "GCP us-central1"}).region is None


def test_a_region_may_have_the_clouds_name_before_it() -> None:
    service = service_of("s3://bucket")
    assert service is not None
    assert object_options(service, {**PLACES["s3"], "access.region": "AWS us-east-1"}).region == "us-east-1"


def test_an_account_key_is_base64() -> None:
    service = service_of(PLACES["azure"]["uris"])
    assert service is not None
    error = refused(lambda: object_options(service, {**PLACES["azure"], "azure.account_key": "not base64!"}))
    assert (error.sqlstate, error.message) == (
        "22023", 'property "azure.account_key" is not the key of an account',
    )  # fmt: skip
    assert "not base64!" not in str(error)


@pytest.mark.parametrize(
    "properties",
    [
        {"gcs.hmac.access_id": "GOOG1", "gcs.hmac.secret": "hidden"},
        {"aws.access_key_id": "GOOG1", "aws.secret_access_key": "hidden"},
    ],
)
def test_keys_of_google_that_are_like_those_of_s3_are_not_supported(properties: dict[str, str]) -> None:
    service = service_of("gs://bucket")
    assert service is not None
    error = refused(lambda: object_options(service, {"uris": "gs://bucket", **properties}))
    assert (error.sqlstate, error.message) == (
        "0A000", "HMAC keys are not supported for a store of type FILE in Google's storage",
    )  # fmt: skip
    assert "'gcs.service_account_key'" in (error.hint or "")
    assert "hidden" not in str(error)
