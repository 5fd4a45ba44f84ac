"""Functions that records are decoded and checked by, made known to a session of Spark when they are first called."""

from __future__ import annotations

from collections.abc import Iterable
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.sql import SparkSession

from mvserver.streaming.spark.java_functions import register_decoder
from spark_sinks.decode import CheckFunction, RecordFunction
from spark_sinks.decode.checked_records import checked

_REGISTERED_MAX = 100  # in a session: each new schema makes another one, and the oldest goes
_registered: WeakKeyDictionary[SparkSession, dict[str, None]] = WeakKeyDictionary()


def register(session: SparkSession, functions: Iterable[RecordFunction | CheckFunction]) -> None:
    """Each once: their names say what they do."""
    for function in functions:
        known = _registered.setdefault(session, {})
        if function.name in known:
            continue
        if isinstance(function, CheckFunction):
            _register_check(session, function)
        else:
            register_decoder(session, function)
        known[function.name] = None
        while len(known) > _REGISTERED_MAX:
            oldest = next(iter(known))
            del known[oldest]
            session._jsparkSession.sessionState().catalog().dropTempFunction(oldest, True)


def _register_check(session: SparkSession, function: CheckFunction) -> None:
    from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]  # it has no annotations of its own

    schemas = function.schemas

    def check(values: pa.Array) -> pa.Array:
        return checked(schemas, values)

    session.udf.register(function.name, arrow_udf(check, "string"))
