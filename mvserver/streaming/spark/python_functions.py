"""Users' functions in Spark. One in Python is a function over Arrow, whose worker asks the function's own process."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from mvserver.compiler.own_functions import OwnFunction, spark_name
from mvserver.java_functions.definition import JavaFunction
from mvserver.python_functions.definition import PythonFunction, kind_of
from mvserver.python_functions.process import RunnableFunction, run
from mvserver.streaming.spark import java_functions_of_users
from mvserver.streaming.spark.types import spark_type

_REGISTERED_MAX = 1_000  # in a session: each text of a function makes another one, and the oldest goes
_INSTANT = pa.timestamp("us", tz="UTC")
_ZONED = {"TIMESTAMP_LTZ": _INSTANT, "ARRAY<TIMESTAMP_LTZ>": pa.list_(_INSTANT)}
_registered: WeakKeyDictionary[SparkSession, dict[str, None]] = WeakKeyDictionary()


def register(session: SparkSession, functions: Sequence[OwnFunction]) -> None:
    """Each text once: its name says what it does."""
    known = _registered.setdefault(session, {})
    for function in functions:
        name = spark_name(function)
        if name in known:
            continue
        if isinstance(function, JavaFunction):
            java_functions_of_users.register(session, name, function)
        else:
            _register(session, name, function)
        known[name] = None
    while len(known) > max(_REGISTERED_MAX, len(functions)):
        oldest = next(iter(known))
        del known[oldest]
        session._jsparkSession.sessionState().catalog().dropTempFunction(oldest, True)


def _register(session: SparkSession, name: str, function: PythonFunction) -> None:
    from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]  # it has no annotations of its own

    runnable = RunnableFunction.of(function)
    has_arguments = bool(function.parameters)
    zone = _ZONED.get(kind_of(function.result))

    def call(*columns: pa.Array) -> pa.Array:
        """Without arguments Spark gives a column that only counts the rows."""
        table = run(runnable, columns if has_arguments else (), len(columns[0]))
        value, error = (table.column(i).combine_chunks() for i in range(2))
        return pa.StructArray.from_arrays(
            [value if zone is None else value.cast(zone), error], names=["value", "error"]
        )

    result = StructType(
        [StructField("value", spark_type(function.result, lengths=False)), StructField("error", StringType())]
    )
    session.udf.register(name, arrow_udf(call, result))
