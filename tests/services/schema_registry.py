"""A real schema registry (Apicurio, Confluent's API) for the whole test run, and subjects of their own for its tests.

Its program comes from the Maven repository the first time, by the Ivy that PySpark brings, and is then kept. Unlike
Confluent's it takes every schema until it is told otherwise, keeps all in memory, and knows no password; a proxy
before it (``tests.schema_registry.proxy``) asks for one.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient

from mvserver.demo.jars import JarsError, default_ivy_home, java_command, resolve
from tests.services.installed import installed

VERSION = "2.6.13.Final"
_COORDINATE = f"io.apicurio:apicurio-registry-app:{VERSION}"
_MODULE = f"""<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
<info organisation="mvserver" module="schema-registry"/>
<configurations><conf name="default"/></configurations>
<dependencies>
<dependency org="io.apicurio" name="apicurio-registry-app" rev="{VERSION}" transitive="false" conf="default->*">
<artifact name="apicurio-registry-app" type="tar.gz" ext="tar.gz" m:classifier="all"/>
</dependency>
</dependencies>
</ivy-module>"""
_START_TIMEOUT_S, _LOOK_S = 300.0, 0.1


def _unpack(folder: Path) -> None:
    try:
        (archive,) = resolve(_MODULE, (_COORDINATE,), default_ivy_home())
    except JarsError as error:
        pytest.skip(str(error))
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")


@dataclass(frozen=True)
class Registry:
    """``address`` is what a statement gives as 'uris'."""

    address: str
    client: SchemaRegistryClient
    process: subprocess.Popen[bytes]

    def register(self, subject: str, text: str, kind: str = "AVRO") -> int:
        from confluent_kafka.schema_registry import Schema

        return self.client.register_schema(subject, Schema(text, kind))


@contextmanager
def running() -> Iterator[Registry]:
    """One of the caller's own."""
    folder = installed(f"apicurio-{VERSION}", _unpack)
    (jar,) = folder.glob("apicurio-registry-app-*-runner.jar")
    work = Path(tempfile.mkdtemp(prefix="mvserver-registry-"))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [java_command(), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
               "-Dquarkus.http.host=127.0.0.1", f"-Dquarkus.http.port={port}", "-jar", str(jar)]  # fmt: skip
    with (work / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=work, start_new_session=True)
    address = f"http://127.0.0.1:{port}/apis/ccompat/v7"
    try:
        _await_answer(f"{address}/subjects", process, work / "log")
        client = SchemaRegistryClient({"url": address, "timeout": 30})
        client.set_compatibility(level="BACKWARD")
        yield Registry(address, client, process)
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(work, ignore_errors=True)


def _await_answer(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while True:
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except (urllib.error.URLError, OSError) as error:
            assert process.poll() is None, log.read_text(errors="replace")[-2000:]
            if time.monotonic() > deadline:
                raise TimeoutError(log.read_text(errors="replace")[-2000:]) from error
        time.sleep(_LOOK_S)


@pytest.fixture(scope="session")
def schema_registry() -> Iterator[Registry]:
    """Shared by all tests: leave it running. Tests that stop a registry use ``own_schema_registry``."""
    with running() as registry:
        yield registry


@pytest.fixture
def own_schema_registry() -> Iterator[Registry]:
    """A registry that the test may treat as it likes."""
    with running() as registry:
        yield registry


@pytest.fixture
def subject() -> Callable[[], str]:
    """A name that no other test uses."""
    return lambda: f"s-{uuid.uuid4().hex[:12]}"
