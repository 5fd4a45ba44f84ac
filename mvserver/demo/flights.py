"""``make demo-kafka``: a year of real flights through a real Apache Kafka into three materialized views."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import psycopg

from mvserver.demo import flights_data
from mvserver.demo.check import Comparison, compare, verdict
from mvserver.demo.flights_data import FLIGHTS_PER_ORIGIN, FetchError, Flight
from mvserver.demo.flights_views import STREAM, VIEWS
from mvserver.demo.folder import NotOursError, fresh_folder
from mvserver.demo.jars import JarsError
from mvserver.demo.kafka_broker import BrokerError, KafkaBroker
from mvserver.demo.replay import Replay
from mvserver.demo.server import HOST, Server, ServerError, free_port
from mvserver.demo.stopping import Stop
from mvserver.demo.terminal import (
    REPORT_EVERY_S,
    Connection,
    positive_number,
    psql_command,
    run_statement,
    run_with_spark,
    tell_port,
)
from mvserver.java import NoJavaError, find_java

DATABASE = "flights_db"
STORE = "demo_kafka"
TOPIC = "flights"
CATCH_UP_TIMEOUT_S = 180.0
BY_ORIGIN = "SELECT origin, flights, dep_delay_avg FROM flights_by_origin ORDER BY origin;"


def main() -> int:
    try:
        rate = positive_number("FLIGHTS_RATE")
        print(f"found {find_java()}")
        folder = fresh_folder(Path(os.environ.get("DEMO_DIR", "demo-data")))
        print(f"reading the flights of the package {flights_data.PACKAGE}")
        flights = flights_data.read_flights(flights_data.fetch(_cache()))
    except (NoJavaError, NotOursError, FetchError, ValueError) as problem:
        print(problem, file=sys.stderr)
        return 2
    stop = Stop()
    port = free_port()
    tell_port(port)
    server = Server(folder / "data", folder / "server.log", port=port)
    broker = KafkaBroker(folder / "kafka")
    try:
        print("starting Apache Kafka (its jars are fetched the first time)")
        broker.start()
        print(f"Apache Kafka ready on {broker.bootstrap}; starting mvserver, whose log is {server.log}")
        with server:
            print(f"mvserver ready on {HOST}:{server.port}")
            return _show(server, broker.bootstrap, flights, rate, stop)
    except (BrokerError, JarsError, ServerError) as error:
        print(error, file=sys.stderr)
    except psycopg.Error as error:
        print(f"the server refused: {error}", file=sys.stderr)
        print(server.log_tail(), file=sys.stderr)
    except KeyboardInterrupt:
        print("stopped")
    finally:
        server.stop()
        broker.stop()
    return 1


def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "mvserver"


def _show(server: Server, bootstrap: str, flights: list[Flight], rate: float | None, stop: Stop) -> int:
    with server.connect() as connection:
        run_statement(connection, f"CREATE DATABASE {DATABASE};")
    with server.connect(DATABASE) as connection:
        run_statement(connection, f"CREATE STORE {STORE} WITH ('type' = KAFKA, 'uris' = '{bootstrap}');")
        run_statement(connection, STREAM.format(store=STORE))
        print("(the first view waits until Spark is up)")
        for view in VIEWS:
            run_with_spark(connection, view.create(), stop.asked)
            if stop.asked():
                return 1
        replay = Replay(bootstrap, TOPIC, flights, rate)
        speed = "as fast as the broker takes them" if rate is None else f"{rate:g} a second"
        print(f"\nreplaying {len(flights):,} flights to topic {TOPIC}, {speed}")
        print(psql_command(server, DATABASE))
        replay.start()
        try:
            complete = _report_until_visible(connection, server, replay, len(flights), stop)
        finally:
            replay.stop()
        if replay.error is not None:
            print(f"the replay failed: {replay.error}", file=sys.stderr)
            return 1
        if stop.asked():
            print("\nstopped before the end: nothing was compared")
            return 1
        if not complete:
            print(f"\nnothing more became visible for {CATCH_UP_TIMEOUT_S:g} s after the last flight was sent")
        return 0 if _check(connection, flights) else 1


def _report_until_visible(connection: Connection, server: Server, replay: Replay, number: int, stop: Stop) -> bool:
    """True when all flights are visible; False when stopped, failed, or too long after the last one that was seen."""
    began = time.monotonic()
    deadline, seen = float("inf"), 0
    while not stop.wait(REPORT_EVERY_S):
        if not server.alive():
            raise ServerError(f"the server ended\n{server.log_tail()}")
        rows = connection.execute(BY_ORIGIN).fetchall()
        visible = sum(int(row[1]) for row in rows)
        passed = time.monotonic() - began
        origins = "   ".join(f"{origin} {count:,} (average delay {average} min)" for origin, count, average in rows)
        print(f"{passed:5.0f} s  {replay.acknowledged:,} sent, {visible:,} visible    {origins}")
        if visible >= number:
            return True
        if replay.error is not None or time.monotonic() > deadline:
            return False
        if replay.done() and (deadline == float("inf") or visible > seen):  # as long as it goes on
            deadline = time.monotonic() + CATCH_UP_TIMEOUT_S
        seen = visible
    return False


def _check(connection: Connection, flights: list[Flight]) -> bool:
    """Every row of the three views beside the package's, and the package's beside what is known of it."""
    print("\ncomparing every row with numbers computed from the package")
    comparisons: list[Comparison] = []
    for view in VIEWS:
        found = connection.execute(view.select()).fetchall()
        comparisons.append(compare(view.name, view.expected(flights), found, len(view.key_columns)))
    counts: dict[str, int] = dict(connection.execute("SELECT origin, flights FROM flights_by_origin;").fetchall())
    known = counts == FLIGHTS_PER_ORIGIN
    told = ", ".join(f"{origin} {count:,}" for origin, count in sorted(counts.items()))
    print(f"  flights per origin: {told}: {'as known' if known else 'NOT as known'}")
    return verdict(comparisons) and known


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    sys.exit(main())
