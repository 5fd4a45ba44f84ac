"""The calls of a micro-batch into Spark with as few round trips to the JVM as they need.

PySpark hands every string of ``selectExpr`` to the JVM by itself, and ``toArrow`` asks for settings and the schema
before it collects. A micro-batch repeats the same calls with the same arguments, some ten times a second: what does not
change is handed over, or asked for, once. Measured on a live batch of three views: 22 ms with the public calls, 16 ms
with these. They reach into PySpark's classic classes, whose version is pinned exactly.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import DataFrame
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

_SEQUENCES_MAX = 500

_sequences: WeakKeyDictionary[SparkContext, dict[tuple[str, ...], Any]] = WeakKeyDictionary()


def select_expressions(frame: DataFrame, expressions: tuple[str, ...]) -> DataFrame:
    """``frame.selectExpr(*expressions)``."""
    assert isinstance(frame, ClassicDataFrame)  # noqa: S101 - there is no other session here
    return ClassicDataFrame(frame._jdf.selectExpr(_sequence(frame, expressions)), frame.sparkSession)


def collect(frame: DataFrame, schemas: dict[str, pa.Schema], name: str) -> pa.Table:
    """``frame.toArrow()``; the schema is kept in ``schemas`` under ``name`` and not asked for again."""
    assert isinstance(frame, ClassicDataFrame)  # noqa: S101 - there is no other session here
    schema = schemas.get(name)
    if schema is None:
        table = frame.toArrow()
        schemas[name] = table.schema
        return table
    batches = frame._collect_as_arrow(empty_list_if_zero_records=False)
    return pa.Table.from_batches(batches).cast(schema)


def _sequence(frame: ClassicDataFrame, expressions: tuple[str, ...]) -> Any:
    known = _sequences.setdefault(frame._sc, {})
    sequence = known.get(expressions)
    if sequence is None:
        if len(known) >= _SEQUENCES_MAX:
            known.clear()
        sequence = known[expressions] = frame._jseq(expressions)
    return sequence
