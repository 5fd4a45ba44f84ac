"""What the server's settings choose for Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mvserver import config, limits
from mvserver.spark_java import jvm_command
from mvserver.streaming.spark.class_archive import ClassArchives
from mvserver.streaming.spark.options import SparkOptions
from spark_sinks.kinds import KINDS, class_path, spark_settings
from spark_sinks.store_kind import StoreKind


def spark_options(settings: config.ServerSettings, kinds: Sequence[StoreKind[Any]] = KINDS) -> SparkOptions:
    archives = settings.spark_class_archives
    return SparkOptions(
        master=settings.spark_master,
        driver_memory=f"{settings.spark_driver_memory // 2**20}m",
        polling_delay_ms=max(1, round(settings.kafka_poll_interval * 1000)),
        work_directory=settings.data_dir / "spark",
        extra=settings.spark_conf,
        command=jvm_command,
        stores=spark_settings(kinds),
        class_path=lambda: class_path(settings.jar_dir, kinds),
        live_slots=limits.LIVE_SLOTS if settings.live_lane == "auto" else 0,
        jar_directory=settings.jar_dir,
        archives=None if archives is None else ClassArchives(archives),
    )
