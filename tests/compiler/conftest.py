"""One Spark session for the compiler's tests, with the settings that the lowering relies on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from pyspark.sql import SparkSession

    from mvserver.compiler.lower_spark import REQUIRED_SETTINGS
    from mvserver.streaming.spark.java_functions import install

    builder = SparkSession.builder.master("local[2]").appName("compiler tests")
    for key, value in {
        **REQUIRED_SETTINGS,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        # Constants are to be computed as rows are, not folded away by the optimizer.
        "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ConstantFolding",
    }.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    install(session, tmp_path_factory.mktemp("functions"))
    yield session
    session.stop()
