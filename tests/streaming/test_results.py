"""A result of Spark is fetched when there is a descriptor for it, and not lost because there was none."""

from __future__ import annotations

import logging
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from pyspark import util
from pyspark.errors import PySparkRuntimeError

from mvserver.streaming.spark.results import be_patient
from tests.services.few_descriptors import none_left
from tests.serving.kept import until

_WAIT_S = 30.0


def test_a_result_waits_for_a_descriptor(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """PySpark gave up, and waited for ever for the JVM, which waited for the connection."""
    caplog.set_level(logging.WARNING)
    be_patient()
    be_patient()
    found: list[Any] = []
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        fetching = threading.Thread(target=lambda: found.append(util.local_connect_and_auth(path, None)))
        with none_left():
            fetching.start()
            until(lambda: "Too many open files" in caplog.text or not fetching.is_alive())
            assert not found
        fetching.join(_WAIT_S)
        ((file, connection),) = found
        file.close()
        connection.close()


def test_a_connection_that_is_refused_is_not_tried_again(tmp_path: Path) -> None:
    be_patient()
    with pytest.raises(PySparkRuntimeError):
        util.local_connect_and_auth(str(tmp_path / "nobody"), None)
