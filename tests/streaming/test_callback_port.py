"""The port at which Spark's JVM calls for batches outlives want of descriptors, and large numbers of them."""

from __future__ import annotations

import logging
import os
import resource
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.clientserver import PythonParameters

from mvserver.streaming.spark import callbacks
from mvserver.streaming.spark.callbacks import CallbackServer
from tests.services.few_descriptors import none_left
from tests.serving.kept import until


class Called(CallbackServer):
    """It notes the connections in place of reading commands from them."""

    def __init__(self) -> None:
        parameters = PythonParameters(port=0, daemonize=True)
        super().__init__(None, None, parameters, SimpleNamespace(pool={}))
        self.taken: list[socket.socket] = []

    def _create_connection(self, taken: socket.socket, stream: Any) -> Any:
        connection = threading.Thread(target=self.taken.append, args=(taken,))
        connection.close = stream.close  # type: ignore[attr-defined]
        return connection


@contextmanager
def called() -> Iterator[Called]:
    server = Called()
    server.start()
    try:
        yield server
    finally:
        server.shutdown()
        for taken in server.taken:
            taken.close()


def test_calls_go_on_when_descriptors_are_to_be_had_again(caplog: pytest.LogCaptureFixture) -> None:
    """py4j's server ended at the first connection that it could not take, and no query got a batch any more."""
    caplog.set_level(logging.WARNING)
    with called() as server, socket.socket() as first, socket.socket() as second:
        with none_left():
            first.connect(("127.0.0.1", server.get_listening_port()))
            until(lambda: "Too many open files" in caplog.text)
        until(lambda: len(server.taken) == 1)
        second.connect(("127.0.0.1", server.get_listening_port()))
        until(lambda: len(server.taken) == 2)


def test_its_descriptor_may_have_any_number() -> None:
    """As behind a thousand clients: select() takes none above 1,023."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2048:
        pytest.skip("the system allows too few descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    try:
        with ExitStack() as held, socket.socket() as client:
            while (descriptor := os.open(os.devnull, os.O_RDONLY)) < 1024:
                held.callback(os.close, descriptor)
            held.callback(os.close, descriptor)
            with called() as server:
                client.connect(("127.0.0.1", server.get_listening_port()))
                until(lambda: len(server.taken) == 1)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_server_that_could_not_be_started_is_started_the_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    gateway = SimpleNamespace(_callback_server=None)
    listener = socket.socket()
    begun: list[Any] = []

    def start(of: Any) -> None:
        if of._callback_server is None:  # as py4j, which notes a server and then starts it
            of._callback_server = SimpleNamespace(server_socket=listener)
            begun.append(of._callback_server)
            if len(begun) == 1:
                raise RuntimeError("can't start new thread")

    monkeypatch.setattr(callbacks, "ensure_callback_server_started", start)
    with listener:
        with pytest.raises(RuntimeError):
            callbacks.serve_callbacks(gateway)
        assert listener.fileno() == -1
        callbacks.serve_callbacks(gateway)
        callbacks.serve_callbacks(gateway)
    assert len(begun) == 2
