"""Arrow's types of the columns of files."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import types as spark

PLAIN: dict[type[spark.DataType], pa.DataType] = {
    spark.BooleanType: pa.bool_(),
    spark.ByteType: pa.int8(),
    spark.ShortType: pa.int16(),
    spark.IntegerType: pa.int32(),
    spark.LongType: pa.int64(),
    spark.FloatType: pa.float32(),
    spark.DoubleType: pa.float64(),
    spark.StringType: pa.string(),
    spark.VarcharType: pa.string(),
    spark.BinaryType: pa.binary(),
    spark.DateType: pa.date32(),
    spark.TimeType: pa.time64("us"),
    spark.TimestampType: pa.timestamp("us", "UTC"),
    spark.TimestampNTZType: pa.timestamp("us"),
}
"""Of types without parts; a decimal's has its digits."""


def arrow_type(kind: spark.DataType) -> pa.DataType:
    """KeyError for a type that files do not have."""
    if isinstance(kind, spark.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, spark.ArrayType):
        return pa.list_(arrow_type(kind.elementType))
    if isinstance(kind, spark.MapType):
        return pa.map_(arrow_type(kind.keyType), arrow_type(kind.valueType))
    if isinstance(kind, spark.StructType):
        return pa.struct([(field.name, arrow_type(field.dataType)) for field in kind.fields])
    return PLAIN[type(kind)]
