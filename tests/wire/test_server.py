"""The server over real sockets: cancel, time-outs, caps, slow readers, shutdown, hostile bytes."""

from __future__ import annotations

import asyncio
import os
import struct
import subprocess
import threading
import time
from collections.abc import Iterator

import pytest

from mvserver import limits
from mvserver.errors import SqlError
from mvserver.pgwire.actions import Action, BlockingCall, Signal
from mvserver.pgwire.connection import Connection
from mvserver.pgwire.machine import Machine
from mvserver.pgwire.server import PgWireServer
from tests.wire.client import (
    SYNC,
    TERMINATE,
    RawClient,
    bind,
    errors,
    execute,
    kinds,
    parse,
    query,
    special,
    split,
    startup,
    tags,
)
from tests.wire.server import Running, wait_for
from tests.wire.toy import ToyBackend


@pytest.fixture
def running() -> Iterator[Running]:
    with Running() as server:
        yield server


def backend_key(greeting: bytes) -> tuple[int, bytes]:
    body = next(body for kind, body in split(greeting) if kind == "K")
    return struct.unpack("!I", body[:4])[0], body[4:]


def test_query_over_a_socket(running: Running) -> None:
    with RawClient(running.port) as client:
        client.send(special(5679))
        assert client.exactly(1) == b"N"
        client.log_in()
        client.send(query("insert 1"))
        assert tags(client.until()) == ["INSERT 0 1"]


def test_pipeline_of_many_statements(running: Running) -> None:
    with RawClient(running.port) as client:
        client.log_in()
        one = parse("echo $1::int4") + bind([b"1"]) + execute() + SYNC
        threading.Thread(target=client.send, args=(one * 500,), daemon=True).start()
        for _ in range(500):
            assert kinds(client.until()) == "12DCZ"


def test_cancel(running: Running) -> None:
    with RawClient(running.port) as client:
        process, key = backend_key(client.log_in())
        client.send(query("sleep 60"))
        session = running.backend.sessions[0]
        wait_for(lambda: session.running)
        with RawClient(running.port) as stranger:
            stranger.send(special(5678, struct.pack("!I", process) + b"nope"))
            assert stranger.rest() == b""
        assert session.cancels == 0
        with RawClient(running.port) as other:
            other.send(special(5678, struct.pack("!I", process) + key))
            assert other.rest() == b""
        assert errors(client.until())[0]["C"] == "57014"
        client.send(query("insert 1"))
        assert tags(client.until()) == ["INSERT 0 1"]


def test_a_cancel_of_what_no_worker_has_begun_is_repeated(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message has come, and the session does not know of it yet; an idle one is asked once."""
    with RawClient(running.port) as client:
        process, key = backend_key(client.log_in())
        session = running.backend.sessions[0]
        cancel, asked = session.cancel, list[bool]()

        def cancelled() -> bool:
            asked.append(session.running)
            return len(asked) > 3 and cancel()

        monkeypatch.setattr(session, "cancel", cancelled)
        client.send(query("sleep 60"))
        wait_for(lambda: session.running)
        for _ in range(2):
            with RawClient(running.port) as other:
                other.send(special(5678, struct.pack("!I", process) + key))
                assert other.rest() == b""
            if len(asked) == 4:
                assert errors(client.until())[0]["C"] == "57014"
        assert asked == [True] * 4 + [False]


def test_cancel_is_not_held_up_by_busy_workers() -> None:
    with Running(connections_max=2) as running, RawClient(running.port) as one, RawClient(running.port) as two:
        process, key = backend_key(one.log_in())
        two.log_in()
        one.send(query("sleep 60"))
        two.send(query("sleep 60"))
        wait_for(lambda: all(session.running for session in running.backend.sessions))
        with RawClient(running.port) as other:  # over the cap, and still heard
            other.send(special(5678, struct.pack("!I", process) + key))
            other.rest()
        assert errors(one.until())[0]["C"] == "57014"


def test_client_that_leaves_in_the_middle_of_a_statement(running: Running) -> None:
    client = RawClient(running.port)
    client.log_in()
    client.send(query("sleep 60"))
    session = running.backend.sessions[0]
    wait_for(lambda: session.running)
    client.close()
    wait_for(session.closed.is_set)
    assert session.cancels == 1
    wait_for(lambda: running.server.connections == 0)


def test_client_that_leaves_in_the_middle_of_rows(running: Running) -> None:
    client = RawClient(running.port)
    client.log_in()
    client.send(query("rows 100000000 1000"))
    client.exactly(100_000)
    client.close()
    session = running.backend.sessions[0]
    wait_for(session.closed.is_set)
    assert running.backend.open_results == 0


def test_terminate_closes_the_session(running: Running) -> None:
    with RawClient(running.port) as client:
        client.log_in()
        client.send(TERMINATE)
        assert client.rest() == b""
    wait_for(running.backend.sessions[0].closed.is_set)


def test_slow_reader_costs_bounded_memory() -> None:
    with Running(write_high_water=1024 * 1024) as running, RawClient(running.port) as slow:
        slow.log_in()
        slow.send(query("rows 20000000 5000"))
        backend = running.backend
        connection = next(iter(running.server._connections))
        wait_for(lambda: connection._parked and not connection._busy)
        seen = backend.pulled
        # what left: the socket buffers of both ends, the high-water mark, and a few pieces
        assert seen * 60 < 16 * 1024 * 1024
        with RawClient(running.port) as other:  # nobody else is held up
            other.log_in()
            other.send(query("insert 1"))
            assert tags(other.until()) == ["INSERT 0 1"]
        assert backend.pulled * 60 < 16 * 1024 * 1024
        slow.exactly(20_000_000)
        assert backend.pulled > seen


def test_reading_pauses_while_a_statement_runs(running: Running) -> None:
    with RawClient(running.port) as client:
        process, key = backend_key(client.log_in())
        client.send(query("sleep 60"))
        wait_for(lambda: running.backend.sessions[0].running)
        flood = query("insert 1" + " " * 8000) * 2_000  # 16 MB
        sender = threading.Thread(target=client.send, args=(flood,), daemon=True)
        sender.start()
        connection = next(iter(running.server._connections))
        wait_for(lambda: not connection._reading)
        assert connection._inbox_bytes < 4 * limits.READ_AHEAD_BYTES_MAX
        with RawClient(running.port) as other:
            other.send(special(5678, struct.pack("!I", process) + key))
        assert kinds(client.until()) == "EZ"
        for _ in range(2_000):
            assert kinds(client.until()) == "CZ"
        sender.join(10)


def test_reading_goes_on_where_a_statement_ends_within_a_large_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes that came meanwhile are a part of it: nothing is to be done until the rest is there."""

    def until_full(self: Connection, machine: Machine, work: BlockingCall | None) -> Action:
        """As where the worker has looked for more for the last time before it came."""
        monkeypatch.undo()
        found = machine.advance() if work is None else machine.perform(work)
        while isinstance(found, BlockingCall):
            found = machine.perform(found)
        assert found is Signal.NEED_INPUT
        wait_for(lambda: not self._reading)
        return found

    with Running() as running, RawClient(running.port) as client:
        client.log_in()
        monkeypatch.setattr(Connection, "_advance", until_full)
        large = query("x" * (8 * limits.READ_AHEAD_BYTES_MAX))
        sender = threading.Thread(target=client.send, args=(query("sleep 0") + large,), daemon=True)
        sender.start()
        for _ in range(2):
            assert kinds(client.until()).endswith("Z")
        sender.join(10)


def test_idle_connection_before_log_in_is_dropped() -> None:
    with Running(authentication_timeout_s=0.2) as running:
        with RawClient(running.port) as silent, RawClient(running.port) as half:
            half.send(startup()[:9])
            assert silent.rest() == b""
            assert half.rest() == b""
        with RawClient(running.port) as client:
            client.log_in()
            client.send(query("sleep 0.5"))
            assert kinds(client.until()) == "CZ"
        wait_for(lambda: running.server.connections == 0)


def test_connection_cap() -> None:
    with Running(connections_max=3) as running:
        clients = [RawClient(running.port) for _ in range(3)]
        for client in clients:
            client.log_in()
        with RawClient(running.port) as refused:
            refused.send(special(5679))
            assert refused.exactly(1) == b"N"
            refused.send(startup())
            (error,) = errors(refused.rest())
            assert (error["S"], error["C"], error["M"]) == ("FATAL", "53300", "sorry, too many clients already")
        clients.pop().close()
        wait_for(lambda: running.server.connections == 2)
        with RawClient(running.port) as welcome:
            assert kinds(welcome.log_in()).endswith("Z")
        for client in clients:
            client.close()


def test_far_over_the_cap_nobody_is_heard() -> None:
    with Running(connections_max=1) as running:
        silent = [RawClient(running.port) for _ in range(limits.CONNECTIONS_REFUSED_MAX + 1)]
        wait_for(lambda: running.server.connections == len(silent))
        with RawClient(running.port) as dropped:
            assert dropped.rest() == b""
        for client in silent:
            client.close()


def test_too_long_messages_cost_nothing(running: Running) -> None:
    with RawClient(running.port) as client:
        client.send(struct.pack("!ii", 2**31 - 1, 3 << 16))
        assert errors(client.rest())[0]["C"] == "08P01"
    with RawClient(running.port) as client:
        client.log_in()
        client.send(b"Q" + struct.pack("!I", 2**31 - 1))
        (error,) = errors(client.rest())
        assert (error["S"], error["C"]) == ("FATAL", "08P01")


def test_the_reason_reaches_a_client_that_is_still_sending(running: Running) -> None:
    with RawClient(running.port) as client:
        client.log_in()
        client.send(b"Q" + struct.pack("!I", 64 * 1024 * 1024) + b"x" * 3_000_000)
        assert errors(client.rest())[0]["C"] == "08P01"
    wait_for(lambda: running.server.connections == 0)


def test_a_broken_engine_hangs_up(
    running: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with RawClient(running.port) as client:
        client.log_in()
        session = running.backend.sessions[0]
        connection = next(iter(running.server._connections))
        monkeypatch.setattr(connection._machine, "take_output", lambda: 1 / 0)
        client.send(query("insert 1"))
        assert client.rest() == b""
    wait_for(session.closed.is_set)
    assert "the protocol engine failed" in caplog.text


def test_long_message_within_the_limit(running: Running) -> None:
    with RawClient(running.port) as client:
        client.log_in()
        value = os.urandom(6_000_000).hex().encode()
        client.send(parse("echo $1::text"), bind([value]), execute(), SYNC)
        answer = client.until()
        assert kinds(answer) == "12DCZ"
        assert value in answer


def test_shutdown_lets_statements_end(running: Running) -> None:
    with RawClient(running.port) as idle, RawClient(running.port) as busy:
        idle.log_in()
        busy.log_in()
        busy.send(query("sleep 0.4"))
        wait_for(lambda: running.backend.sessions[1].running or running.backend.sessions[0].running)
        stopped = running.begin(running.server.shutdown(10))
        assert errors(idle.rest())[0]["C"] == "57P01"
        answer = busy.rest()
        assert kinds(answer) == "CZE"
        assert tags(answer) == ["SLEEP"]
        assert errors(answer)[0]["C"] == "57P01"
        stopped.result(10)
    assert all(session.closed.is_set() for session in running.backend.sessions)


def test_shutdown_cancels_what_does_not_end(running: Running) -> None:
    with RawClient(running.port) as busy:
        busy.log_in()
        busy.send(query("sleep 60"))
        session = running.backend.sessions[0]
        wait_for(lambda: session.running)
        begun = time.monotonic()
        patient = running.begin(running.server.shutdown(60))
        running.run(running.server.shutdown(0))
        patient.result(5)
        assert time.monotonic() - begun < 5
        assert session.cancels == 1
        assert session.closed.is_set()


def test_a_session_may_end_by_itself(running: Running) -> None:
    with RawClient(running.port) as client:
        client.log_in()
        client.send(query("begin"))
        client.until()
        session = running.backend.sessions[0]
        wait_for(lambda: session.on_terminate is not None)
        assert session.on_terminate is not None
        session.on_terminate(SqlError("25P03", "terminating connection due to idle timeout", severity="FATAL"))
        (error,) = errors(client.rest())
        assert (error["S"], error["C"]) == ("FATAL", "25P03")
    wait_for(session.closed.is_set)


def test_sessions_know_their_process_number(running: Running) -> None:
    with RawClient(running.port) as client:
        process, _ = backend_key(client.log_in())
        assert running.backend.sessions[0].startup.process == process


def test_listens_on_loopback_only_without_authentication() -> None:
    for host in ("0.0.0.0", "::", "192.0.2.1"):
        with pytest.raises(SqlError, match="without authentication"):
            asyncio.run(PgWireServer(ToyBackend(), host, 0).start())
    with pytest.raises(SqlError, match="could not translate host name"):
        asyncio.run(PgWireServer(ToyBackend(), "no-such-host.invalid", 0).start())


def test_uvloop_drives_it_too() -> None:
    uvloop = pytest.importorskip("uvloop")
    loop = uvloop.new_event_loop()
    server = PgWireServer(ToyBackend(), "127.0.0.1", 0)
    loop.run_until_complete(server.start())
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        with RawClient(server.port) as client:
            client.log_in()
            client.send(query("rows 30000 5000"))
            assert kinds(client.until()).count("D") == 30_000
    finally:
        asyncio.run_coroutine_threadsafe(server.shutdown(0), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)


# --- psql -----------------------------------------------------------------------------------------------------------


def psql(running: Running, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["psql", "-X", "-h", "127.0.0.1", "-p", str(running.port), "-U", "u", "-d", "toy", *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def test_psql(running: Running) -> None:
    try:
        done = psql(running, "-At", "-c", "rows 2; insert 4", "-c", "notice well")
    except FileNotFoundError:
        pytest.skip("psql is not installed")
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "0|name-0|0|2023-11-14 22:13:20|t\n1|name-1|0.125|2023-11-14 22:13:20.001|f\nINSERT 0 4\nNOTICE\n"
    )
    assert done.stderr == "NOTICE:  well\nDETAIL:  A detail.\nHINT:  A hint.\n"
    failed = psql(running, "-v", "VERBOSITY=verbose", "-c", "error 22012 division by zero")
    assert failed.returncode == 1
    assert "ERROR:  22012: division by zero\n" in failed.stderr
    assert "HINT:  What to do." in failed.stderr
    wrong = psql(running, "-c", "insert 1", "-d", "other")
    assert 'FATAL:  database "other" does not exist' in wrong.stderr
