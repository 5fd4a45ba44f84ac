"""Spark sessions for tests that compute in their own process.

A folder has one session, which ends with its last test: a test that starts a whole server in this process needs PySpark
for itself. The fixture is imported by the folder's conftest.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


@contextlib.contextmanager
def session_of(make: Callable[[], Any]) -> Iterator[Any]:
    """The session that ``make`` gives, in a JVM that answers; it is stopped at the end."""
    from mvserver.streaming.spark.pyspark_state import forget_jvm

    if not _answers():
        forget_jvm()
    session = make()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def _answers() -> bool:
    """Whether the JVM that PySpark remembers is still there; a server in this process may have ended it."""
    from py4j.protocol import Py4JError
    from pyspark import SparkContext

    if SparkContext._jvm is None:
        return SparkContext._gateway is None
    try:
        SparkContext._jvm.java.lang.System.nanoTime()
    except (Py4JError, OSError):
        return False
    return True


def as_the_server_starts_it(work: Path) -> Any:
    from mvserver.streaming.spark.options import SparkOptions
    from mvserver.streaming.spark.session import start_session
    from spark_sinks.kinds import spark_settings
    from tests.services import class_archives

    archived = tuple(class_archives.settings().items())
    return start_session(SparkOptions("local[2]", "1g", 50, work, extra=archived, stores=spark_settings()))


@pytest.fixture(scope="package")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with session_of(lambda: as_the_server_starts_it(tmp_path_factory.mktemp("spark"))) as session:
        yield session
