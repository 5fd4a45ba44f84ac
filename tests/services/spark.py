"""One Spark session for all tests that compute in this process, as the server starts it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from mvserver.streaming.spark.session import SparkOptions, start_session
    from spark_sinks.kinds import spark_settings

    work = tmp_path_factory.mktemp("spark")
    session = start_session(SparkOptions("local[2]", "1g", 50, work, stores=spark_settings()))
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
