"""Logical types as Spark's."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import types as spark

from mvserver.compiler.plans import ScanColumn
from mvserver.sql.types import Kind, SqlType, parse_type
from spark_sinks.decode.columns import SPELLING, DecodeColumn

_SIMPLE: dict[Kind, spark.DataType] = {
    kind: getattr(spark, kind.row.spark_class)()
    for kind in Kind
    if kind.row.spark_class is not None and kind is not Kind.VARCHAR
}


def spark_schema(columns: Sequence[ScanColumn]) -> spark.StructType:
    """The declared columns as the schema of files that Spark types by itself; it knows texts without lengths alone."""
    return spark.StructType(
        [spark.StructField(column.name, spark_type(column.type, lengths=False)) for column in columns]
    )


def decode_column(name: str, type_: str, not_null: bool) -> DecodeColumn:
    """A column as the catalog keeps it."""
    return DecodeColumn(name, spark_type(parse_type(type_)), type_, not_null)


def spark_type(kind: SqlType, *, lengths: bool = True) -> spark.DataType:
    """Spark's type of the same values; with ``lengths`` VARCHAR(n) keeps its own for the decoder's check. Fields keep
    their spellings."""
    simple = _SIMPLE.get(kind.kind)
    if simple is not None:
        return simple
    if kind.kind is Kind.DECIMAL:
        return spark.DecimalType(kind.precision or 10, kind.scale or 0)
    if kind.kind is Kind.VARCHAR:
        return spark.VarcharType(kind.length) if lengths and kind.length is not None else spark.StringType()
    if kind.kind is Kind.ARRAY and kind.element is not None:
        return spark.ArrayType(spark_type(kind.element, lengths=lengths))
    if kind.kind is Kind.MAP and kind.key is not None and kind.element is not None:
        return spark.MapType(spark_type(kind.key, lengths=lengths), spark_type(kind.element, lengths=lengths))
    if kind.kind is Kind.STRUCT:
        return spark.StructType(
            [
                spark.StructField(
                    name,
                    spark_type(inner, lengths=lengths),
                    metadata=None if spelling is None else {SPELLING: spelling},
                )
                for name, inner, spelling in kind.spelled_fields
            ]
        )
    raise ValueError(f"no column can have type {kind}")
