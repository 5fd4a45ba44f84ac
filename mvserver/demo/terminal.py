"""The terminal of both demos: what they print and read."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg

from mvserver.demo.server import HOST, PORT_DEFAULT, Server

REPORT_EVERY_S = 2.0
WAITING_EVERY_S = 10.0

Connection = psycopg.Connection[tuple[Any, ...]]


def run_statement(connection: Connection, statement: str) -> None:
    """Shows the statement and how long it took."""
    print(f"\n{statement}")
    began = time.monotonic()
    connection.execute(statement)
    print(f"  -- done in {time.monotonic() - began:.2f} s")


def run_with_spark(connection: Connection, statement: str, asked_to_stop: Callable[[], bool]) -> None:
    """The same for a statement that waits for Spark. It is sent again as long as Spark is starting, which takes minutes
    on a busy machine, and it is told how long that has been."""
    print(f"\n{statement}")
    began = time.monotonic()
    done = threading.Event()

    def tell() -> None:
        while not done.wait(WAITING_EVERY_S):
            print(f"  -- waiting for Spark, {time.monotonic() - began:.0f} s", flush=True)

    teller = threading.Thread(target=tell, name="waiting", daemon=True)
    teller.start()
    try:
        while True:
            try:
                connection.execute(statement)
                break
            except psycopg.errors.CannotConnectNow:
                if asked_to_stop():
                    raise
    finally:
        done.set()
        teller.join()
    print(f"  -- done in {time.monotonic() - began:.2f} s")


def psql_command(server: Server, database: str) -> str:
    return f"ask it yourself:  psql -h {HOST} -p {server.port} -U postgres {database}    (Ctrl-C here stops the demo)"


def tell_port(port: int) -> None:
    if port != PORT_DEFAULT:
        print(f"port {PORT_DEFAULT} is taken: the server will listen on {port}")


def positive_number(variable: str) -> float | None:
    """A setting from the environment; ValueError when it is not a number above zero."""
    text = os.environ.get(variable, "")
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise ValueError(f"{variable} must be a number above zero, not {text!r}")
    return number
