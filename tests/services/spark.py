"""One Spark session for a folder of tests, as the server starts it. A folder's conftest imports the fixture.

The folders do not share one: a test that starts a whole server in this process ends the process's Spark with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="package")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from mvserver.streaming.spark.session import SparkOptions, start_session
    from spark_sinks.kinds import spark_settings

    work = tmp_path_factory.mktemp("spark")
    session = start_session(SparkOptions("local[2]", "1g", 50, work, stores=spark_settings()))
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
