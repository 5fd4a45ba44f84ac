"""Asks Spark whether it accepts a lowered plan, without running it."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql.types import BinaryType, BooleanType, StringType, StructField, StructType, TimestampType

from mvserver import sqlstates
from mvserver.compiler.changelogs import over_changelog
from mvserver.compiler.patterns import constant_patterns
from mvserver.compiler.plans import Aggregation, Projection
from mvserver.errors import SqlError
from mvserver.streaming.batch.evaluate import partial_frame, row_frame
from mvserver.streaming.batch.program import build_program
from mvserver.streaming.spark.errors import sql_error
from mvserver.streaming.spark.java_functions import check_pattern
from mvserver.streaming.spark.types import spark_type
from mvserver.views.targets import build_target
from spark_sinks.base import METADATA
from spark_sinks.decode import format_of, parquet_column
from spark_sinks.duckdb.record_columns import DELETED

_RAW = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("position", StringType()),
        StructField("record_time", TimestampType()),
    ]
)


def check_plan(session: SparkSession, plan: object) -> None:
    """Raises SqlError where the analyser refuses what the compiler made: before anything is created."""
    if not isinstance(plan, (Projection, Aggregation)):
        raise SqlError(sqlstates.INTERNAL_ERROR, f"not a continuous plan: {type(plan).__name__}")
    for side in () if plan.scan.derived is None else plan.scan.derived.sides:
        check_plan(session, side.plan)
    for pattern in constant_patterns(plan):
        check_pattern(session, pattern)
    fields = list(_RAW.fields)
    if format_of(plan.scan.value_format).typed_by_spark:
        fields += [
            StructField(parquet_column(c.name).strip("`"), spark_type(c.type, lengths=False))
            for c in plan.scan.value_columns
        ]
    if plan.scan.metadata is not None:
        fields.append(StructField(METADATA, spark_type(plan.scan.metadata)))
    if plan.scan.derived is not None and over_changelog(plan):
        fields.append(StructField(DELETED, BooleanType()))
    frame = session.createDataFrame([], StructType(fields))
    target = build_target("check", "check", 1, plan)
    program = build_program([target])
    try:
        row_frame(frame, program).schema  # noqa: B018 - the analyser runs when the schema is asked for
        if isinstance(plan, Aggregation):
            partial_frame(frame, program).schema  # noqa: B018
    except SqlError:  # of a function of a user
        raise
    except Exception as error:
        cause = sql_error(error)
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED, "the query cannot be computed", detail=cause.detail or cause.message
        ) from error
