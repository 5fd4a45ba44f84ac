"""The processes of a measurement and what is asked of them: broker, server, statements, waiting with a bound."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from confluent_kafka.admin import AdminClient

from mvserver.demo.kafka_broker import KafkaBroker
from mvserver.demo.server import Server, free_port
from tests.bench.viewsets import View
from tests.bench.workload import Workload
from tests.services import class_archives

STREAM = "events"
STORE = "bench_kafka"
_WAIT_S = 1_800.0
_PORT_FROM = 15432

Client = psycopg.Connection[tuple[Any, ...]]


@dataclass(frozen=True)
class Settings:
    """``scale`` below 1 makes everything smaller, to try the harness itself; results then say so."""

    scale: float = 1.0
    seconds: float = 60.0  # a live measurement
    warm_up_s: float = 20.0
    backlog_events: int = 5_000_000

    @classmethod
    def from_environment(cls) -> Settings:
        scale = float(os.environ.get("BENCH_SCALE", "1"))
        return cls(
            scale=scale,
            seconds=max(5.0, cls.seconds * scale),
            warm_up_s=max(5.0, cls.warm_up_s * scale),
            backlog_events=max(1_000_000, int(cls.backlog_events * scale)),  # more than one micro-batch
        )


@dataclass
class Bench:
    """One broker for all parts; a fresh server and topic for each measurement (``fresh``)."""

    settings: Settings
    folder: Path
    broker: KafkaBroker
    _servers: int = field(default=0)

    @classmethod
    @contextlib.contextmanager
    def open(cls, settings: Settings) -> Iterator[Bench]:
        folder = Path(tempfile.mkdtemp(prefix="mvserver-bench-"))
        class_archives.use()  # else the first server makes it, beside what is measured
        broker = KafkaBroker(folder / "kafka", heap_mb=768)
        try:
            broker.start()
            yield cls(settings, folder, broker)
        finally:
            broker.stop()
            shutil.rmtree(folder, ignore_errors=True)

    @contextlib.contextmanager
    def server(self, arguments: Sequence[str] = (), command: Sequence[str] = ()) -> Iterator[Server]:
        """A server over data of its own, to be started; both go afterwards."""
        self._servers += 1
        data = self.folder / f"data-{self._servers}"
        log = self.folder / f"server-{self._servers}.log"
        server = Server(data, log, port=free_port(_PORT_FROM), arguments=arguments, command=command)
        try:
            yield server
        finally:
            server.stop()
            shutil.rmtree(data, ignore_errors=True)

    @contextlib.contextmanager
    def fresh(
        self, workload: Workload, views: Sequence[View], *, arguments: Sequence[str] = (), command: Sequence[str] = ()
    ) -> Iterator[Running]:
        """A server with the views over a new, empty topic; topic and data are removed afterwards."""
        with self.server(arguments, command) as server:
            topic = f"{workload.name}-{self._servers}"
            running = Running(server, self.broker.bootstrap, topic, workload, tuple(views))
            try:
                server.start()
                running.declare()
                yield running
            finally:
                server.stop()
                self._delete(topic)

    @contextlib.contextmanager
    def beside(self, running: Running, stream: str, workload: Workload) -> Iterator[str]:
        """Another source of a running server, over a new topic, which goes afterwards."""
        topic = f"{running.topic}-{stream}"
        try:
            with running.connect() as client:
                client.execute(workload.declare(stream, STORE, topic))
            yield topic
        finally:
            running.server.stop()  # who reads a topic that goes would report it
            self._delete(topic)

    def _delete(self, topic: str) -> None:
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap})
        for deleted in admin.delete_topics([topic]).values():
            deleted.result()


@dataclass
class Running:
    server: Server
    bootstrap: str
    topic: str
    workload: Workload
    views: tuple[View, ...]

    def connect(self) -> Client:
        return self.server.connect()

    def declare(self) -> None:
        with self.connect() as client:
            client.execute(f"CREATE STORE {STORE} WITH ('type' = KAFKA, 'uris' = '{self.bootstrap}');")
            client.execute(self.workload.declare(STREAM, STORE, self.topic))
            for view in self.views:
                client.execute(view.create(STREAM))

    def visible(self, client: Client, view: View | None = None) -> int:
        """How many events the first view (or another) shows."""
        row = client.execute(f"SELECT coalesce(sum(n), 0) FROM {(view or self.views[0]).name}").fetchone()
        return int(row[0]) if row else 0

    def watch_until(self, total: int, *, poll_s: float = 0.05, timeout_s: float = _WAIT_S) -> list[tuple[float, int]]:
        """(time, events visible) at each look, until all are; the server may still be starting."""
        points: list[tuple[float, int]] = []
        deadline = time.monotonic() + timeout_s
        with self._patient_client(deadline) as client:
            client.execute("SET mv.read_while_filling = on")
            while True:
                points.append((time.monotonic(), self.visible(client)))
                if points[-1][1] >= total:
                    return points
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{points[-1][1]} of {total} events visible after {timeout_s:g} s")
                time.sleep(poll_s)  # asking more often would take the cores from what is measured

    def check_complete(self, total: int) -> None:
        """Every view without a WHERE holds each event once."""
        with self.connect() as client:
            for view in self.views:
                if view.where is None and (found := self.visible(client, view)) != total:
                    raise AssertionError(f"view {view.name} shows {found} of {total} events")

    def keys(self) -> int:
        with self.connect() as client:
            counts = [client.execute(f"SELECT count(*) FROM {view.name}").fetchone() for view in self.views]
        return sum(int(count[0]) for count in counts if count)

    def _patient_client(self, deadline: float) -> Client:
        while True:
            try:
                return self.connect()
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)  # a new look, bounded by the deadline
