"""What Python holds of the JVM's objects is let go at once: the collector of cycles is not needed for it."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest
from py4j.finalizer import ThreadSafeFinalizer
from pyspark.sql import DataFrame

from mvserver.streaming.batch.spark_calls import collect, select_expressions
from mvserver.streaming.pipeline.generation import run_generation

pytestmark = pytest.mark.spark

WITHIN_S = 60.0


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_frames_of_a_batch_go_when_they_are_left(spark: Any, no_collector: None) -> None:
    frame = spark.range(3).selectExpr("id + 1 AS n")
    chosen = select_expressions(frame, ("n * 2 AS m",))
    assert collect(chosen, {}, "m").column("m").to_pylist() == [2, 4, 6]
    seen = [weakref.ref(each._jdf) for each in (frame, chosen)]
    del frame, chosen
    assert [ref() for ref in seen] == [None, None]


class _Rates:
    """A reader of Spark's own source of rows."""

    def stream(self, session: Any, position: Any, *, records_per_trigger: int) -> Any:
        return nullcontext(session.readStream.format("rate").option("rowsPerSecond", 100).load())


@pytest.mark.parametrize("fails", [False, True], ids=["ends", "fails"])
def test_a_query_of_sparks_that_has_ended_is_held_by_nobody(
    spark: Any, no_collector: None, tmp_path: Path, fails: bool
) -> None:
    """It and its session held its plans, more than a megabyte of the JVM's memory, for each start of a pipeline."""
    taken: list[int] = []

    def on_batch(frame: DataFrame, number: int) -> None:
        taken.append(collect(select_expressions(frame, ("value + 1 AS v",)), {}, "v").num_rows)
        if fails:
            raise ValueError("of the batch")

    def read(number: int) -> None:
        taken.clear()
        with suppress(ValueError):
            run_generation(
                spark, _Rates(), {}, tmp_path / f"checkpoint-{number}", records_per_trigger=10,  # type: ignore[arg-type]
                on_batch=on_batch, ended=lambda: len(taken) > 2, running=lambda running: None,
            )  # fmt: skip
        assert taken

    read(0)
    before = _held(spark)
    read(1)
    deadline = time.monotonic() + WITHIN_S
    while not _held(spark) <= before:
        assert time.monotonic() < deadline, f"{_held(spark)} objects of Java's are held, before {before}"
        time.sleep(0.1)


def _held(spark: Any) -> int:
    """How many of Java's objects are held here; what Java holds of ours is let go when it collects its own."""
    spark._jvm.java.lang.System.gc()
    return len(ThreadSafeFinalizer.finalizers)


def test_methods_are_javas_and_magic_ones_are_not(spark: Any) -> None:
    java = spark.range(3)._jdf
    assert java.count() == 3
    count = java.count
    del java
    assert count() == 3, "a method keeps its object"
    with pytest.raises(AttributeError):
        spark.range(3)._jdf.__nothing__  # noqa: B018
