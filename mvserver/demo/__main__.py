"""``make demo``: three materialized views over live clicks, from nothing to answers in one terminal."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import psycopg

from mvserver.demo import clicks
from mvserver.demo.check import verdict
from mvserver.demo.feeder import CLICKS_PER_FILE, FILES_PER_S, Feeder
from mvserver.demo.folder import NotOursError, fresh_folder
from mvserver.demo.page import PageServer
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
from mvserver.demo.watch import FreshnessWatch
from mvserver.java import NoJavaError, find_java

DATABASE = "clickstream_db"
STORE = "demo_files"
HTTP_PORT, PAGE_PORT = 8080, 8000  # where they are free
PAGE_VIEWS = ("url_visit_count",)
CATCH_UP_TIMEOUT_S = 60.0
REJECTED = "SELECT relation, reason, position, raw FROM mv_catalog.rejected_rows ORDER BY rejected_at DESC LIMIT 1;"
REJECTED_COUNT = "SELECT count(*) FROM mv_catalog.rejected_rows;"


def main() -> int:
    try:
        seconds = positive_number("DEMO_SECONDS")
        java = find_java()
        folder = fresh_folder(Path(os.environ.get("DEMO_DIR", "demo-data")))
    except (NoJavaError, NotOursError, ValueError) as problem:
        print(problem, file=sys.stderr)
        return 2
    stop = Stop()
    port, http_port, page_port = free_port(), free_port(HTTP_PORT), free_port(PAGE_PORT)
    page = PageServer(
        HOST, page_port, f"http://{HOST}:{http_port}", [f"{DATABASE}.public.{view}" for view in PAGE_VIEWS]
    )
    web = ("--http-port", str(http_port), "--http-cors-origins", page.address)
    server = Server(folder / "data", folder / "server.log", port=port, arguments=web)
    print(f"starting mvserver with {java}; its log is {server.log}")
    tell_port(port)
    try:
        began = time.monotonic()
        page.start()
        with server:
            print(f"mvserver ready on {HOST}:{server.port} after {time.monotonic() - began:.1f} s")
            return _show(server, page, seconds, stop)
    except ServerError as error:
        print(error, file=sys.stderr)
    except psycopg.Error as error:
        print(f"the server refused: {error}", file=sys.stderr)
        print(server.log_tail(), file=sys.stderr)
    except KeyboardInterrupt:
        print("stopped")
    finally:
        page.stop()
        server.stop()
    return 1


def _show(server: Server, page: PageServer, seconds: float | None, stop: Stop) -> int:
    topic = server.data_directory / "files" / "clicks"
    topic.mkdir(parents=True, exist_ok=True)
    with server.connect() as connection:
        run_statement(connection, f"CREATE DATABASE {DATABASE};")
    with server.connect(DATABASE) as connection:
        run_statement(connection, f"CREATE STORE {STORE} WITH ('type' = FILE, 'uris' = '.');")
        run_statement(connection, clicks.STREAM.format(store=STORE))
        print("(the first view waits until Spark is up)")
        for view in clicks.VIEWS:
            run_with_spark(connection, view, stop.asked)
            if stop.asked():
                return 0
        feeder = Feeder(topic, seed=int(os.environ.get("DEMO_SEED", "42")))
        watch = FreshnessWatch(server, DATABASE, feeder)
        print(f"\nfeeding {FILES_PER_S * CLICKS_PER_FILE} clicks a second in {FILES_PER_S} files a second to {topic}")
        print(psql_command(server, DATABASE))
        print(f"visits by page, live in a browser: {page.address}")
        print(f"the console, for role postgres without a password: {page.server}/console")
        feeder.start()
        watch.start()
        try:
            _report_until(connection, server, feeder, watch, seconds, stop)
        finally:
            feeder.stop()
            watch.stop()
        for error in (feeder.error, watch.error):
            if error is not None:
                print(f"the demo failed: {error}", file=sys.stderr)
                return 1
        if seconds is None or stop.asked():
            print("\nstopping the server")
            return 0 if seconds is None else 1
        return 0 if _check(connection, feeder) else 1


def _report_until(
    connection: Connection, server: Server, feeder: Feeder, watch: FreshnessWatch, seconds: float | None, stop: Stop
) -> None:
    began = time.monotonic()
    reports = 0
    while server.alive() and feeder.error is None and watch.error is None:
        left = REPORT_EVERY_S if seconds is None else began + seconds - time.monotonic()
        if stop.wait(max(0.0, min(REPORT_EVERY_S, left))) or left < REPORT_EVERY_S:
            return
        reports += 1
        print(_report(connection, time.monotonic() - began, feeder, watch))
        if reports % 10 == 0:
            print(psql_command(server, DATABASE))
    if not server.alive():
        raise ServerError(f"the server ended\n{server.log_tail()}")


def _report(connection: Connection, passed_s: float, feeder: Feeder, watch: FreshnessWatch) -> str:
    home = connection.execute(clicks.HOME_VISITS).fetchone()
    most = connection.execute(clicks.MOST_VISITED).fetchone()
    user_9 = connection.execute(clicks.USER_9_ON_MOBILE).fetchall()
    freshness = watch.freshness_ms()
    fresh = "nothing visible yet" if freshness is None else f"fresh {freshness[0]:.0f} ms (median {freshness[1]:.0f})"
    visits = ", ".join(f"{url} {count}" for url, count in sorted(user_9, key=lambda row: -row[1])) or "nothing yet"
    lines = [
        f"\n{passed_s:5.0f} s  {feeder.fed:,} clicks fed, {watch.visible:,} visible, {fresh}",
        f"         visits of ./home: {home[1] if home else 0:,}    most visited: {most[0] if most else '-'}",
        f"         User_9 on mobile: {visits}",
    ]
    rejected = connection.execute(REJECTED).fetchone()
    if rejected is not None:
        relation, reason, position, raw = rejected
        text = bytes(raw).decode(errors="backslashreplace") if isinstance(raw, bytes | memoryview) else str(raw)
        lines.append(f"         rejected by {relation} at {position}: {reason}: {text}")
    return "\n".join(lines)


def _check(connection: Connection, feeder: Feeder) -> bool:
    """Every row of the three views beside what was fed."""
    print(f"\nfeeding has ended with {feeder.fed:,} clicks; waiting for the views to catch up")
    deadline = time.monotonic() + CATCH_UP_TIMEOUT_S
    found = _rows(connection)
    while not all(c.equal for c in feeder.truth.compare(found)) and time.monotonic() < deadline:
        time.sleep(0.2)
        found = _rows(connection)
    equal = verdict(feeder.truth.compare(found))
    row = connection.execute(REJECTED_COUNT).fetchone()
    rejected = int(row[0]) if row else 0
    kept = rejected == feeder.undecodable
    print(f"{'PASS' if kept else 'FAIL'}: {feeder.undecodable} undecodable fed, {rejected} in mv_catalog.rejected_rows")
    return equal and kept


def _rows(connection: Connection) -> list[list[tuple[Any, ...]]]:
    return [connection.execute(select).fetchall() for _, select, _ in clicks.ROWS]


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    sys.exit(main())
