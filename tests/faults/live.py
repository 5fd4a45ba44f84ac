"""A server as a child process that tests may kill, and a stream of clicks whose truth is counted on the way in."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from confluent_kafka import Consumer, Producer

from tests.services import class_archives, forked

START_TIMEOUT_S = 180.0  # bounds for a machine that many share; nothing waits so long otherwise
CATCH_UP_TIMEOUT_S = 240.0

VIEWS = {
    "by_url": ("url",),
    "by_device": ("url", "device"),
    "by_user": ("user_id", "url", "device"),
}
STREAM = (
    "CREATE STREAM clicks (n BIGINT, url VARCHAR, device VARCHAR, user_id VARCHAR) "
    "WITH ('store' = 's', 'topic' = '{topic}', 'value.format' = 'json')"
)


@contextmanager
def temporary_server() -> Iterator[LiveServer]:
    """Over an empty directory that goes with it; to be started."""
    folder = Path(tempfile.mkdtemp(prefix="mvserver-live-"))
    live = LiveServer(folder / "data")
    try:
        yield live
    finally:
        live.close()
        shutil.rmtree(folder, ignore_errors=True)


def topic_values(bootstrap: str, topic: str, expected: int, *, timeout_s: float = 90, quiet_s: float = 2) -> list[Any]:
    """All committed values of a topic, in each partition's order, None for a deletion. Waits a little longer than
    needed, so that a doubled one would be seen."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": uuid.uuid4().hex,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([topic])
    found: list[Any] = []
    deadline = time.monotonic() + timeout_s
    quiet_until = None
    while time.monotonic() < deadline:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            found.append(json.loads(message.value() or b"null"))
            quiet_until = None
        elif len(found) >= expected:
            quiet_until = quiet_until or time.monotonic() + quiet_s
            if time.monotonic() > quiet_until:
                break
    consumer.close()
    return found


@contextmanager
def flowing(produce: Callable[[], None], pause_s: float) -> Iterator[None]:
    """Again and again, as long as the block lasts."""
    over = threading.Event()

    def run() -> None:
        while not over.wait(pause_s):
            produce()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class LiveServer:
    """``mvserver serve`` over one data directory, through any number of lives."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.port = free_port()
        self._process: forked.Forked | None = None

    def start(self, **environment: str) -> LiveServer:
        self._process = forked.start(
            ["serve", "--data-dir", str(self.data), "--port", str(self.port)],
            {**os.environ, class_archives.VARIABLE: class_archives.prepared(), **environment},
            self.data.parent / f"{self.data.name}.log",
        )
        self.wait_for(self._answers, START_TIMEOUT_S, "the server did not answer")
        return self

    def _answers(self) -> bool:
        if self._process is not None and self._process.poll() is not None:
            if self._process.returncode == -signal.SIGKILL:
                return True  # its failpoint came before the first answer
            raise AssertionError(f"the server ended with {self._process.returncode}: {self.log_tail()}")
        try:
            self.query("SELECT 1")
        except (psycopg.OperationalError, psycopg.errors.DataCorrupted):  # or it has met damage, and begins anew
            return False
        return True

    @property
    def process(self) -> forked.Forked:
        assert self._process is not None
        return self._process

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.wait_killed()

    def wait_killed(self, timeout_s: float = 180.0) -> None:
        """Returns when the JVM has gone too: it notices its parent's end, and writes to the directory until then."""
        assert self.process.wait(timeout_s) == -signal.SIGKILL, self.log_tail()
        self.wait_for(lambda: not any(map(self._works_here, Path("/proc").iterdir())), 60, "the JVM lives on")

    def _works_here(self, process: Path) -> bool:
        try:
            return process.name.isdigit() and str(self.data).encode() in (process / "cmdline").read_bytes()
        except OSError:  # it has just ended
            return False

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(60)

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()

    def connect(self, user: str = "postgres") -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(
            host="127.0.0.1", port=self.port, user=user, dbname="postgres", autocommit=True, connect_timeout=5
        )

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        with self.connect() as connection:
            cursor = connection.execute(sql)
            return cursor.fetchall() if cursor.description else []

    def run(self, *statements: str) -> None:
        with self.connect() as connection:
            for statement in statements:
                connection.execute(statement)

    def states(self) -> dict[str, tuple[str, str | None]]:
        rows = self.query("SELECT sink, state, error FROM mv_catalog.queries")
        return {name.rsplit(".", 1)[-1]: (state, error) for name, state, error in rows}

    def log(self) -> str:
        return (self.data.parent / f"{self.data.name}.log").read_text(errors="replace")

    def log_tail(self) -> str:
        return self.log()[-3000:]

    def wait_for(self, condition: Callable[[], bool], timeout_s: float, what: str) -> None:
        deadline = time.monotonic() + timeout_s
        while not self._holds(condition, what):
            if time.monotonic() > deadline:
                raise AssertionError(f"{what} within {timeout_s:g} s: {self.log_tail()}")
            time.sleep(0.1)

    def _holds(self, condition: Callable[[], bool], what: str) -> bool:
        """Of a server that does not answer any more, its last words are wanted, too."""
        try:
            return condition()
        except psycopg.OperationalError as error:
            error.add_note(f"{what}; the server's exit code is {self.process.poll()}: {self.log_tail()}")
            raise

    def wait_equal(self, sql: str, expected: Mapping[Any, Any], timeout_s: float = CATCH_UP_TIMEOUT_S) -> None:
        """Until the rows (last column the value, the others the key) are exactly the expected ones."""
        deadline = time.monotonic() + timeout_s
        while True:
            found = {row[:-1]: row[-1] for row in self.query(sql)}
            if found == expected:
                return
            if time.monotonic() > deadline:
                states = self.states()
                raise AssertionError(f"{sql}: {_difference(found, expected)}; {states}; {self.log_tail()}")
            time.sleep(0.2)


def _difference(found: Mapping[Any, Any], expected: Mapping[Any, Any]) -> str:
    keys = [key for key in {*found, *expected} if found.get(key) != expected.get(key)]
    shown = {key: (found.get(key), expected.get(key)) for key in keys[:5]}
    return f"{len(keys)} keys differ (found, expected): {shown}; sums {sum(found.values())}, {sum(expected.values())}"


class Clicks:
    """Seeded clicks; what was acknowledged by the broker is counted as truth."""

    def __init__(self, seed: int, bootstrap: str, topic: str) -> None:
        self._random = random.Random(seed)
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 2})
        self._topic = topic
        self.fed = 0
        self.truth: dict[str, Counter[tuple[Any, ...]]] = {view: Counter() for view in VIEWS}

    def produce(self, count: int) -> None:
        for _ in range(count):
            self.fed += 1
            row = {
                "n": self.fed,
                "url": self._random.choice(["./home", "./cart", "./search", None]),
                "device": self._random.choice(["mobile", "desktop"]),
                "user_id": f"User_{self._random.randint(1, 50)}",
            }
            for view, keys in VIEWS.items():
                self.truth[view][tuple(row[key] for key in keys)] += 1
            self._producer.produce(self._topic, key=str(self.fed), value=json.dumps(row))
            self._producer.poll(0)
        assert self._producer.flush(60) == 0

    def send_raw(self, values: Sequence[bytes | None]) -> None:
        for value in values:
            self._producer.produce(self._topic, value=value)
            self._producer.poll(0)
        assert self._producer.flush(60) == 0


def create_views(server: LiveServer) -> None:
    server.run(
        *(
            f"CREATE MATERIALIZED VIEW {view} AS SELECT {', '.join(keys)}, count(*) AS visits, sum(n) AS total "
            f"FROM clicks GROUP BY {', '.join(keys)}"
            for view, keys in VIEWS.items()
        )
    )


def check_views(server: LiveServer, clicks: Clicks) -> None:
    """Every view equals the truth: nothing lost, nothing doubled."""
    for view, keys in VIEWS.items():
        server.wait_equal(f"SELECT {', '.join(keys)}, visits FROM {view}", clicks.truth[view])
    total = clicks.fed * (clicks.fed + 1) // 2
    assert server.query("SELECT sum(total) FROM by_user") == [(total,)]


def views_agree(server: LiveServer) -> bool:
    """One read over all views of the pipeline: they always show the same prefix of the source."""
    rows = server.query(
        "SELECT (SELECT coalesce(sum(visits), 0) FROM by_url), (SELECT coalesce(sum(visits), 0) FROM by_device), "
        "(SELECT coalesce(sum(visits), 0) FROM by_user)"
    )
    return len(set(rows[0])) == 1
