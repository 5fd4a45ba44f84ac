"""``make demo-stores``: Kinesis, Kafka and PostgreSQL joined, and written to Kafka, Delta and Iceberg."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mvserver.demo.check import Comparison, Row, compare, verdict
from mvserver.demo.folder import NotOursError, fresh_folder
from mvserver.demo.jars import JarsError
from mvserver.demo.kafka_broker import BrokerError
from mvserver.demo.server import HOST, Server, ServerError, free_port
from mvserver.demo.stopping import Stop
from mvserver.demo.terminal import Connection, positive_number, psql_command, run_with_spark, tell_port
from mvserver.java import NoJavaError, find_java
from tests.stores_demo import statements
from tests.stores_demo.places import Places, started
from tests.stores_demo.story import Chapter, Story

DATABASE = "webshop_db"
CATCH_UP_TIMEOUT_S = 180.0
_LOOK_S = 0.5
_WIDTH_MAX = 80
Result = tuple[str, Callable[[], dict[Row, Row]], Callable[[Connection], list[Row]], int]
"""A name, what it must be, how it is read, and how many columns are its key."""

_RETURNS_ROWS = ("LIST", "DESCRIBE", "SELECT", "PRINT")


class StoppedError(Exception):
    """By Ctrl-C."""


def main() -> int:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # a line for each request to S3
    try:
        seconds = positive_number("DEMO_SECONDS")
        print(f"found {find_java()}")
        folder = fresh_folder(Path(os.environ.get("DEMO_DIR", "demo-data")))
    except (NoJavaError, NotOursError, ValueError) as problem:
        print(problem, file=sys.stderr)
        return 2
    stop = Stop()
    port = free_port()
    tell_port(port)
    server = Server(folder / "data", folder / "server.log", port=port)
    try:
        with started(folder, lambda what: print(f"starting {what}")) as places:
            print(f"starting mvserver, whose log is {server.log}")
            with server:
                print(f"mvserver ready on {HOST}:{server.port}")
                return 0 if Show(server, places, stop).run(seconds) else 1
    except (BrokerError, JarsError, ServerError, TimeoutError, pytest.skip.Exception) as error:
        print(error, file=sys.stderr)
    except psycopg.Error as error:
        print(f"the server refused: {error}", file=sys.stderr)
        print(server.log_tail(), file=sys.stderr)
    except (StoppedError, KeyboardInterrupt):
        print("stopped before the end: nothing was compared")
    return 1


class Show:
    def __init__(self, server: Server, places: Places, stop: Stop) -> None:
        self._server = server
        self._places = places
        self._stop = stop
        self._compared = 0
        self._story = Story(int(os.environ.get("DEMO_SEED", "42")))

    def run(self, seconds: float | None) -> bool:
        """Whether all results were as they must be. The server is there for so many seconds longer."""
        with self._server.connect() as connection:
            connection.execute(f"CREATE DATABASE {DATABASE};")
        with self._server.connect(DATABASE) as connection:
            for title, texts in [
                *statements.stores(self._places.properties()),
                *statements.RELATIONS,
                *statements.QUERIES,
            ]:
                print(f"\n--- {title}")
                for text in texts:
                    self._say(connection, text)
            first = self._story.first()
            print(
                f"\n--- Chapter 1: {len(first.users)} users, {len(first.upserted)} accounts, {len(first.views):,} views"
            )
            equal = self._chapter(connection, first)
            second = self._story.second()
            print(
                f"\n--- Chapter 2: {len(second.users)} users move, {len(second.upserted)} upgrade their plans, "
                f"{len(second.deleted)} close their accounts, {len(second.views):,} more views"
            )
            equal = self._chapter(connection, second) and equal
            print("\n--- What is there now")
            for text in statements.LOOKS:
                self._say(connection, text)
            print(f"\n{'PASS' if equal else 'FAIL'}: {self._compared:,} rows compared, 6 results, 5 kinds of stores")
            if seconds is not None:
                print(f"for {seconds:g} s: {psql_command(self._server, DATABASE)}")
                self._stop.wait(seconds)
            return equal

    def _say(self, connection: Connection, text: str) -> None:
        if self._stop.asked():
            raise StoppedError
        if not text.startswith(_RETURNS_ROWS):
            run_with_spark(connection, text, self._stop.asked)
            return
        print(f"\n{text}")
        cursor = connection.execute(text)
        assert cursor.description is not None
        for line in table([column.name for column in cursor.description], cursor.fetchall()):
            print(f"  {line}")

    def _chapter(self, connection: Connection, chapter: Chapter) -> bool:
        """The users first: a view of a page is joined with what was known of its user at its time."""
        self._places.send_users(chapter)
        users, took = self._until_equal(connection, self._users())
        print(f"users and accounts are sent; the users are there after {took:.1f} s")
        self._places.send_views(chapter)
        print("page views are sent; every result is compared with a plain computation of it, until all are equal")
        results, took = self._until_equal(connection, self._results())
        print(f"after {took:.1f} s:")
        equal = verdict([*users, *results])
        self._compared += sum(comparison.found for comparison in (*users, *results))
        return equal

    def _until_equal(self, connection: Connection, results: list[Result]) -> tuple[list[Comparison], float]:
        """How they compare at last, and how many seconds it took."""
        began = time.monotonic()
        while True:
            comparisons = [compare(name, wanted(), read(connection), keys) for name, wanted, read, keys in results]
            took = time.monotonic() - began
            if all(comparison.equal for comparison in comparisons) or took > CATCH_UP_TIMEOUT_S:
                return comparisons, took
            if self._stop.wait(_LOOK_S):
                raise StoppedError
            if not self._server.alive():
                raise ServerError(f"the server ended\n{self._server.log_tail()}")

    def _users(self) -> list[Result]:
        read = partial(_rows, view=statements.USERS)
        return [(f"view {statements.USERS}, by SELECT", self._story.users, read, 1)]

    def _results(self) -> list[Result]:
        story, places = self._story, self._places
        files = self._server.data_directory / "files"
        return [
            (f"topic {statements.ENRICHED}, by a consumer of Kafka", story.enriched, lambda _: places.enriched(), 3),
            (
                f"view {statements.CUSTOMERS}, by SELECT", story.customers,
                partial(_rows, view=statements.CUSTOMERS), 1,
            ),
            (
                f"view {statements.VISITS}, by SELECT", story.by_region,
                partial(_rows, view=statements.VISITS), 2,
            ),
            (f"Delta table delta_{statements.CUSTOMERS}, by delta-rs", story.customers, lambda _: places.delta(), 1),
            (
                f"Iceberg table iceberg_{statements.VISITS}, by pyiceberg", story.by_region,
                lambda _: places.iceberg(files), 2,
            ),
        ]  # fmt: skip


def _rows(connection: Connection, view: str) -> list[Row]:
    return connection.execute(statements.ROWS[view]).fetchall()


def table(names: list[str], rows: list[Any]) -> list[str]:
    """As psql shows it, with long texts cut."""
    texts = [[_cut("" if value is None else str(value)) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(names, *texts, strict=True)]
    lines = [names, ["-" * width for width in widths], *texts]
    return ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines]


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _WIDTH_MAX else f"{text[: _WIDTH_MAX - 1]}…"


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    sys.exit(main())
