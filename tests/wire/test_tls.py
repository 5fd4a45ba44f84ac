"""TLS: what stops the start, who is let in, and that nothing sent in clear survives the handshake."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from mvserver.auth import passwords
from mvserver.auth.password_check import PasswordCheck
from mvserver.errors import SqlError
from mvserver.pgwire import tls
from mvserver.pgwire.authentication import PasswordAuthentication
from mvserver.pgwire.machine import Encryption
from mvserver.pgwire.server import PgWireServer
from tests.wire import certificates as wire_certificates
from tests.wire.certificates import Certificate
from tests.wire.client import Driven, RawClient, errors, kinds, query, special, startup, tags
from tests.wire.server import Running, wait_for
from tests.wire.toy import ToyBackend

SSL_REQUEST = special(5679)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return wire_certificates.make(tmp_path_factory.mktemp("certificates"))


def loaded(certificate: Certificate, *, required: bool = False) -> tls.Tls:
    return tls.load(certificate.file, certificate.key, required=required)


@pytest.fixture(scope="module")
def running(certificate: Certificate) -> Iterator[Running]:
    with Running(tls=loaded(certificate)) as server:
        yield server


@pytest.fixture(scope="module")
def strict(certificate: Certificate) -> Iterator[Running]:
    with Running(tls=loaded(certificate, required=True)) as server:
        yield server


def connect(port: int, **parameters: str) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(
        host="localhost", hostaddr="127.0.0.1", port=port, user="u", dbname="toy", autocommit=True,
        connect_timeout=10, **parameters,
    )  # fmt: skip


def encrypted(client: RawClient) -> ssl.SSLSocket:
    """The client's socket after the handshake; what it trusts is not the question."""
    client.send(SSL_REQUEST)
    assert client.exactly(1) == b"S"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    client.socket = context.wrap_socket(client.socket)
    return client.socket


# --- clients --------------------------------------------------------------------------------------------------------


def test_psycopg_verifies_the_certificate(running: Running, certificate: Certificate) -> None:
    with connect(running.port, sslmode="verify-full", sslrootcert=str(certificate.file)) as connection:
        assert connection.pgconn.ssl_in_use
        assert connection.pgconn.exec_(b"insert 3").command_status == b"INSERT 0 3"


def test_psql_says_that_it_is_encrypted(running: Running) -> None:
    told = subprocess.run(
        ["psql", "-h", "127.0.0.1", "-p", str(running.port), "-U", "u", "-c", "\\conninfo", "toy"],
        capture_output=True, text=True, timeout=20, check=False, env={**os.environ, "PGSSLMODE": "require"},
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    assert "TLSv1.3" in told.stdout


def test_without_being_asked_the_connection_stays_in_clear(running: Running) -> None:
    with connect(running.port, sslmode="disable") as connection:
        assert not connection.pgconn.ssl_in_use


def test_large_results_and_cancel_work_under_tls(running: Running) -> None:
    with connect(running.port, sslmode="require") as connection:
        assert connection.pgconn.exec_(b"rows 100000 5000").ntuples == 100_000
        sleeper = threading.Thread(target=lambda: connection.pgconn.exec_(b"sleep 30"))
        sleeper.start()
        wait_for(lambda: any(session.running for session in running.backend.sessions))
        connection.cancel_safe()
        sleeper.join(10)
        assert not sleeper.is_alive()


def test_many_messages_at_once_under_tls(running: Running) -> None:
    with RawClient(running.port) as client:
        encrypted(client).sendall(startup() + query("insert 1") + query("insert 2"))
        assert kinds(client.until()).startswith("RS")
        assert tags(client.until()) == ["INSERT 0 1"]
        assert tags(client.until()) == ["INSERT 0 2"]


def test_a_client_that_does_not_read_is_held_back_under_tls(certificate: Certificate) -> None:
    with Running(tls=loaded(certificate), write_high_water=64 * 1024) as running, RawClient(running.port) as client:
        encrypted(client).sendall(startup())
        client.until()
        client.send(query("rows 20000000 5000"))
        connection = next(iter(running.server._connections))
        wait_for(lambda: connection._parked and not connection._busy)
        assert running.backend.pulled * 60 < 16 * 1024 * 1024


def test_old_versions_are_refused(running: Running, certificate: Certificate) -> None:
    assert loaded(certificate).context.minimum_version is ssl.TLSVersion.TLSv1_2
    with pytest.raises(psycopg.OperationalError, match=r"SSL error|protocol version"):
        connect(running.port, sslmode="require", ssl_min_protocol_version="TLSv1", ssl_max_protocol_version="TLSv1.1")


def test_uvloop_does_it_too(certificate: Certificate) -> None:
    uvloop = pytest.importorskip("uvloop")
    loop = uvloop.new_event_loop()
    server = PgWireServer(ToyBackend(), "127.0.0.1", 0, tls=loaded(certificate))
    loop.run_until_complete(server.start())
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        with connect(server.port, sslmode="require") as connection:
            assert connection.pgconn.exec_(b"rows 30000 5000").ntuples == 30_000
        with RawClient(server.port) as client:
            client.send(SSL_REQUEST)
            assert client.exactly(1) == b"S"
            client.send(startup())
            assert not client.rest().startswith(b"R")
    finally:
        asyncio.run_coroutine_threadsafe(server.shutdown(0), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)


# --- required -------------------------------------------------------------------------------------------------------


def test_required_refuses_clear_text_and_lets_encrypted_in(strict: Running) -> None:
    with pytest.raises(psycopg.OperationalError, match="connections without TLS are not allowed"):
        connect(strict.port, sslmode="disable")
    with connect(strict.port, sslmode="require") as connection:
        assert connection.pgconn.ssl_in_use


def test_required_refuses_before_anything_is_asked() -> None:
    driven = Driven(ToyBackend(), encryption=Encryption.REQUIRED)
    (error,) = errors(driven.say(startup()))
    assert (error["S"], error["C"]) == ("FATAL", "28000")
    assert driven.done


# --- between the request and the handshake --------------------------------------------------------------------------


def test_what_comes_with_the_request_ends_the_connection(running: Running) -> None:
    sessions = len(running.backend.sessions)
    with RawClient(running.port) as client:
        client.send(SSL_REQUEST + startup() + query("insert 1"))
        (error,) = errors(client.rest())
        assert (error["S"], error["C"]) == ("FATAL", "08P01")
        assert error["M"] == "received unencrypted data after SSL request"
    assert len(running.backend.sessions) == sessions


def test_half_a_packet_with_the_request_ends_it_too() -> None:
    driven = Driven(ToyBackend(), encryption=Encryption.OFFERED)
    assert errors(driven.say(SSL_REQUEST + b"\0"))[0]["C"] == "08P01"
    assert driven.done


def test_clear_text_in_the_place_of_the_handshake_is_never_read(running: Running) -> None:
    sessions = len(running.backend.sessions)
    with RawClient(running.port) as client:
        client.send(SSL_REQUEST)
        assert client.exactly(1) == b"S"
        client.send(startup() + query("insert 1"))
        assert b"insert" not in client.rest().lower()
    wait_for(lambda: running.server.connections == 0)
    assert len(running.backend.sessions) == sessions


def test_a_second_request_under_tls_is_refused(running: Running) -> None:
    with RawClient(running.port) as client:
        encrypted(client).sendall(SSL_REQUEST)
        assert errors(client.rest())[0]["M"] == "SSL encryption was requested more than once"


def test_a_handshake_that_does_not_come_is_waited_for_in_bounds(certificate: Certificate) -> None:
    with (
        Running(tls=loaded(certificate), authentication_timeout_s=0.4) as running,
        RawClient(running.port) as client,
    ):
        client.send(SSL_REQUEST)
        assert client.exactly(1) == b"S"
        assert client.rest() == b""
        wait_for(lambda: running.server.connections == 0)


def test_clients_that_vanish_during_the_handshake_leave_nothing(running: Running) -> None:
    for _ in range(20):
        with RawClient(running.port) as client:
            client.send(SSL_REQUEST)
            client.exactly(1)
    wait_for(lambda: running.server.connections == 0)


def test_shutdown_does_not_wait_for_a_handshake(certificate: Certificate) -> None:
    with Running(tls=loaded(certificate)) as running:
        client = RawClient(running.port)
        client.send(SSL_REQUEST)
        assert client.exactly(1) == b"S"
        running.run(running.server.shutdown(5))
        assert client.rest() == b""
        client.close()


# --- SCRAM and TLS --------------------------------------------------------------------------------------------------


class Kept:
    def password_of(self, role: str) -> str | None:
        return passwords.stored("hush", role, "scram-sha-256")


@pytest.mark.parametrize("algorithm", ["ec", "rsa"])
def test_a_client_may_ask_that_the_log_in_is_tied_to_the_certificate(tmp_path: Path, algorithm: str) -> None:
    secured = loaded(wire_certificates.make(tmp_path, algorithm=algorithm))
    with Running(tls=secured, authentication=PasswordAuthentication(PasswordCheck(Kept(), secret=b"x"))) as running:
        with connect(running.port, password="hush", channel_binding="require", sslmode="require"):
            pass
        with connect(running.port, password="hush", channel_binding="disable", sslmode="require"):
            pass
        with connect(running.port, password="hush", sslmode="disable"):
            pass
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            connect(running.port, password="wrong", channel_binding="require", sslmode="require")


def test_the_binding_is_the_hash_of_the_certificate(tmp_path: Path) -> None:
    for algorithm, name in (("ec", "sha256"), ("rsa", "sha384")):
        made = wire_certificates.make(tmp_path, algorithm, algorithm=algorithm)
        der = ssl.PEM_cert_to_DER_cert(made.file.read_text())
        assert loaded(made).binding == hashlib.new(name, der).digest()
    assert loaded(wire_certificates.make(tmp_path, "ed", algorithm="ed25519")).binding is None


# --- what stops the start -------------------------------------------------------------------------------------------


def refused(file: Path, key: Path) -> tuple[str, str | None]:
    with pytest.raises(SqlError) as raised:
        tls.load(file, key, required=False)
    assert raised.value.sqlstate == "F0000"
    return raised.value.message, raised.value.detail


def test_files_that_are_not_there(certificate: Certificate, tmp_path: Path) -> None:
    none = tmp_path / "none"
    assert refused(none, certificate.key) == (
        f"the TLS certificate {none} cannot be read",
        "No such file or directory.",
    )
    assert refused(certificate.file, none)[0] == f"the TLS key {none} cannot be read"
    assert refused(tmp_path, certificate.key) == (f"the TLS certificate {tmp_path} cannot be read", "Is a directory.")


def test_files_that_are_not_what_they_should_be(certificate: Certificate, tmp_path: Path) -> None:
    junk = tmp_path / "junk"
    junk.write_text("junk")
    junk.chmod(0o600)
    assert refused(junk, certificate.key)[0] == f"the TLS certificate {junk} cannot be used"
    assert refused(certificate.file, junk)[0] == f"the TLS key {junk} cannot be used"
    broken = tmp_path / "broken.crt"
    broken.write_text(certificate.file.read_text().replace("M", "N", 3))
    assert refused(broken, certificate.key)[0] == f"the TLS certificate {broken} cannot be used"


def test_a_key_of_another_certificate(certificate: Certificate, tmp_path: Path) -> None:
    other = wire_certificates.make(tmp_path, "other")
    message, _ = refused(certificate.file, other.key)
    assert message == f"the TLS key {other.key} is not the key of the certificate {certificate.file}"


def test_a_key_with_a_passphrase_is_not_asked_for_at_the_terminal(certificate: Certificate, tmp_path: Path) -> None:
    locked = tmp_path / "locked.key"
    wire_certificates.openssl(
        "pkey", "-in", str(certificate.key), "-aes256", "-passout", "pass:hush", "-out", str(locked)
    )
    locked.chmod(0o600)
    assert refused(certificate.file, locked) == (
        f"the TLS key {locked} cannot be used",
        "It is protected by a passphrase.",
    )


def test_a_key_that_others_may_read(certificate: Certificate, tmp_path: Path) -> None:
    key = tmp_path / "open.key"
    shutil.copy(certificate.key, key)
    key.chmod(0o644)
    assert refused(certificate.file, key)[0] == f"the TLS key {key} has group or world access"


def test_a_server_that_others_reach_in_clear_says_so_in_its_log(
    certificate: Certificate, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mvserver.pgwire.server.is_loopback", lambda address: False)
    authentication = PasswordAuthentication(PasswordCheck(Kept(), secret=b"x"))
    with Running(tls=loaded(certificate), authentication=authentication):
        assert caplog.text == ""
    with Running(authentication=authentication):
        assert "listening on 127.0.0.1 without TLS" in caplog.text


def test_off_answers_no() -> None:
    with Running() as running, socket.create_connection(("127.0.0.1", running.port), timeout=10) as client:
        client.sendall(SSL_REQUEST)
        assert client.recv(1) == b"N"
