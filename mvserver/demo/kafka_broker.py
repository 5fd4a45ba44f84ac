"""A real single-node Apache Kafka (KRaft, broker and controller in one process) on loopback, for the demo and tests.

It is started from its own jars and can also be treated badly (killed, paused, restarted), since much of what the
server promises is about brokers that vanish and come back.
"""

from __future__ import annotations

import atexit
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from mvserver.demo.jars import BROKER_VERSION, broker_jars, java_command

HOST = "127.0.0.1"
_CLUSTER_ID = "bXZzZXJ2ZXItZGVtby1rZg"  # any 16 bytes; one cluster never meets another
_START_TIMEOUT_S = 600.0  # on a busy machine; one that ends is noticed at once
_STOP_TIMEOUT_S = 20.0
_FORMAT_TIMEOUT_S = 60.0
_PAUSE_LOOK_S = 0.002
_ATTEMPTS = 3  # a port found free can be taken by another process before the broker listens on it
_LOG_LINES_SHOWN = 20


class BrokerError(Exception):
    """The broker did not start; the message has the end of its log."""


class KafkaBroker:
    """``directory`` keeps the broker's data and log over restarts; ``port`` 0 means a free one, kept from then on.

    ``properties`` are further lines of server.properties. ``listeners`` are names of further ports, with the
    protocol of each; ``java_options`` are of the broker's JVM. Not for use by two threads at once.
    """

    version = BROKER_VERSION

    def __init__(
        self,
        directory: Path,
        port: int = 0,
        *,
        heap_mb: int = 256,
        jars: Sequence[Path] | None = None,
        properties: Mapping[str, str] | None = None,
        listeners: Mapping[str, str] | None = None,
        java_options: Sequence[str] = (),
    ) -> None:
        self.directory = directory
        self._asked_port = port
        self._ports: tuple[int, int] | None = None
        self._heap_mb = heap_mb
        self._jars = list(jars) if jars is not None else None
        self._properties = dict(properties or {})
        self._listeners = dict(listeners or {})
        self._listener_ports: dict[str, int] = {}
        self._java_options = tuple(java_options)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def port(self) -> int:
        if self._ports is None:
            raise BrokerError("the broker has not been started")
        return self._ports[0]

    @property
    def bootstrap(self) -> str:
        """What clients connect to, e.g. as the property 'uris' of a store."""
        return f"{HOST}:{self.port}"

    def address(self, listener: str) -> str:
        """Of one of ``listeners``."""
        return f"{HOST}:{self._listener_ports[listener]}"

    @property
    def log(self) -> Path:
        return self.directory / "broker.log"

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, timeout_s: float = _START_TIMEOUT_S) -> KafkaBroker:
        """Returns when the broker answers."""
        if self.running():
            return self
        self.directory.mkdir(parents=True, exist_ok=True)
        for attempt in range(1, _ATTEMPTS + 1):
            first = self._ports is None
            ports = self._ports or (self._asked_port or _free_port(), _free_port())
            if first:
                self._listener_ports = {name: _free_port() for name in self._listeners}
            try:
                self._launch(ports, timeout_s)
            except BrokerError:
                if not first or attempt == _ATTEMPTS or "Address already in use" not in self._log_end():
                    raise
                continue
            self._ports = ports
            return self
        raise BrokerError("no free port could be had")

    def stop(self) -> None:
        """An orderly end; a broker that does not follow in time is killed."""
        if self._process is None:
            return
        if self.running():
            self.resume()
            self._process.terminate()
            try:
                self._process.wait(_STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._process.wait()
        self._forget()

    def kill(self) -> None:
        """kill -9."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._forget()

    def restart(self, timeout_s: float = _START_TIMEOUT_S) -> None:
        self.stop()
        self.start(timeout_s)

    def pause(self) -> None:
        """SIGSTOP: connections stay open and nothing answers, from the return on where the system tells of threads."""
        self._signal(signal.SIGSTOP)
        if self._process is not None:
            threads = Path(f"/proc/{self._process.pid}/task")
            while not all(_is_stopped(thread) for thread in threads.glob("*/stat")):
                time.sleep(_PAUSE_LOOK_S)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def __enter__(self) -> KafkaBroker:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # --- starting --------------------------------------------------------------------------------------------------
    def _launch(self, ports: tuple[int, int], timeout_s: float) -> None:
        config = self.directory / "server.properties"
        config.write_text(self._config(*ports))
        logging = self.directory / "log4j2.properties"
        logging.write_text(_LOGGING)
        # The ports are part of the quorum's configuration, so a change of them (only before the first good start) makes
        # the storage anew.
        if not (self.directory / "data" / "meta.properties").is_file():
            self._format(config)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._java(logging, "kafka.Kafka", str(config)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                start_new_session=True,  # Ctrl-C is for the program that started it, which then stops it in order
            )
        atexit.register(self.kill)
        self._await_answer(ports[0], time.monotonic() + timeout_s)

    def _format(self, config: Path) -> None:
        command = self._java(None, "kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID, "-c", str(config))
        try:
            told = subprocess.run(command, capture_output=True, text=True, timeout=_FORMAT_TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired as error:
            raise BrokerError("the broker's storage was not made in time") from error
        if told.returncode != 0:
            raise BrokerError(f"the broker's storage could not be made:\n{told.stdout}{told.stderr}")

    def _java(self, logging: Path | None, *arguments: str) -> list[str]:
        if self._jars is None:
            self._jars = broker_jars()
        command = [java_command(), f"-Xmx{self._heap_mb}m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        if logging is not None:
            command += [f"-Dlog4j2.configurationFile={logging}", *self._java_options]
        return [*command, "-cp", os.pathsep.join(map(str, self._jars)), *arguments]

    def _await_answer(self, port: int, deadline: float) -> None:
        client = AdminClient({"bootstrap.servers": f"{HOST}:{port}", "log_level": 0, "reconnect.backoff.max.ms": 200})
        while True:
            if not self.running():
                end = self._log_end()
                self.kill()
                raise BrokerError(f"the broker ended at its start; its log {self.log} ends with:\n{end}")
            try:
                if client.list_topics(timeout=1.0).brokers:
                    return
            except KafkaException:
                if time.monotonic() > deadline:
                    end = self._log_end()
                    self.kill()
                    raise BrokerError(f"the broker does not answer; its log {self.log} ends with:\n{end}") from None

    def _config(self, port: int, controller_port: int) -> str:
        own = "".join(f",{name}://{HOST}:{number}" for name, number in self._listener_ports.items())
        protocols = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT", **self._listeners}
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{HOST}:{controller_port}",
            "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}{own}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{port}{own}",
            "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.directory / "data"),
            **_SETTINGS,
            **self._properties,
        }
        return "".join(f"{key}={value}\n" for key, value in settings.items())

    def _log_end(self) -> str:
        if not self.log.is_file():
            return ""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-_LOG_LINES_SHOWN:])

    def _forget(self) -> None:
        atexit.unregister(self.kill)
        self._process = None

    def _signal(self, number: Any) -> None:
        if self._process is not None and self.running():
            self._process.send_signal(number)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


_SETTINGS = {
    # one node: every internal topic has one replica, and few partitions keep start and memory small
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    # after kill -9 the controller waits for the dead broker's session to end before it takes the new one
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "log.retention.ms": "-1",  # replayed records carry old times, and would be deleted within the first minute
    "log.cleaner.dedupe.buffer.size": "4194304",  # the default of 128 MB is half of the heap
    "log.cleaner.backoff.ms": "500",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "background.threads": "2",
}

_LOGGING = """status=error
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=[%d] %p %m (%c)%n
rootLogger.level=warn
rootLogger.appenderRef.out.ref=out
"""


def _is_stopped(stat: Path) -> bool:
    """A thread of which Linux says that it has stopped, or that has ended."""
    try:
        return stat.read_text().rpartition(")")[2].split()[0] in "TtZX"
    except OSError:
        return True
