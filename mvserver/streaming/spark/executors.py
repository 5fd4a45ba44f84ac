"""The executors that Spark has on other machines."""

from __future__ import annotations

from pyspark.sql import SparkSession


def executor_cores(session: SparkSession) -> int:
    """Task slots of all executors that are there now."""
    active = session.sparkContext._jsc.sc().statusStore().executorList(True)
    return sum(active.apply(number).totalCores() for number in range(active.size()))
