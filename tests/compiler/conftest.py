"""One Spark session for the compiler's tests, with the settings that the lowering relies on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.services.spark import session_of


@pytest.fixture(scope="package")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from mvserver.streaming.spark.java_functions import install
    from tests.services import class_archives

    with session_of(_session) as session:
        install(session, tmp_path_factory.mktemp("functions"), Path(class_archives.prepared()))
        yield session


def _session() -> Any:
    from pyspark.sql import SparkSession

    from mvserver.compiler.lower_spark import REQUIRED_SETTINGS
    from tests.services import class_archives

    builder = SparkSession.builder.master("local[2]").appName("compiler tests")
    for key, value in {
        **REQUIRED_SETTINGS,
        **class_archives.settings(),
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        # Constants are to be computed as rows are, not folded away by the optimizer.
        "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ConstantFolding",
    }.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
