"""An entry that says it is strict is: one NULL argument, whatever the others are, gives NULL."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from mvserver.compiler.capabilities import all_capabilities
from mvserver.compiler.capabilities.model import Nulls, Parameter
from mvserver.compiler.expressions import Call, Cast, Expression, Literal
from mvserver.compiler.lower_spark import lower
from mvserver.sql import types as t
from mvserver.sql.types import Kind, SqlType

SAMPLES: dict[Kind, tuple[SqlType, object]] = {
    Kind.BOOLEAN: (t.BOOLEAN, True),
    Kind.TINYINT: (t.TINYINT, 1),
    Kind.SMALLINT: (t.SMALLINT, 1),
    Kind.INTEGER: (t.INTEGER, 1),
    Kind.BIGINT: (t.BIGINT, 1),
    Kind.FLOAT: (t.FLOAT, 1.0),
    Kind.DOUBLE: (t.DOUBLE, 1.0),
    Kind.DECIMAL: (t.decimal(5, 2), Decimal("1.50")),
    Kind.VARCHAR: (t.VARCHAR, "1"),
    Kind.VARBINARY: (t.VARBINARY, b"a"),
    Kind.DATE: (t.DATE, "2024-01-01"),
    Kind.TIME: (t.TIME, "10:00:00"),
    Kind.TIMESTAMP: (t.TIMESTAMP, "2024-01-01 00:00:00"),
    Kind.TIMESTAMP_LTZ: (t.TIMESTAMP_LTZ, "2024-01-01 00:00:00"),
    Kind.INTERVAL: (t.INTERVAL, "0 1 0"),
}
CONSTANTS = {
    "extract": "day", "date_part": "day", "date_trunc": "day", "to_char": "YYYY", "date_format": "yyyy",
    "timestampdiff": "day", "timestampadd": "day", "timezone": "UTC", "encode": "hex", "decode": "hex",
    "to_date": "YYYY", "to_timestamp": "YYYY", "to_timestamp_ltz": "yyyy", "unix_timestamp": "yyyy",
    "from_unixtime": "yyyy", "json_value": "$.a", "json_query": "$.a", "json_exists": "$.a", "regexp_like": "i",
    "regexp_replace": "g", "json_path_first": "$.a", "json_path_all": "$.a",
}  # fmt: skip


def _argument(name: str, parameter: Parameter) -> Expression:
    if parameter.container == "array" and name == "flatten":
        return Cast(t.array(t.array(t.INTEGER)), Literal(t.NULL, None))
    if parameter.container == "array" or parameter.kind is Kind.ARRAY:
        return Cast(t.array(t.INTEGER), Literal(t.NULL, None))
    if parameter.container == "map":
        return Cast(t.map_of(t.VARCHAR, t.INTEGER), Literal(t.NULL, None))
    if parameter.variable == "KEY" or parameter.as_text:
        return Literal(t.VARCHAR, "1")
    if parameter.variable:
        return Literal(t.INTEGER, 1)
    assert parameter.kind is not None
    type_, value = SAMPLES[parameter.kind]
    if parameter.constant and parameter.kind is Kind.VARCHAR:
        value = CONSTANTS.get(name, "1")
    if parameter.constant and parameter.kind is Kind.INTEGER and name == "to_timestamp_ltz":
        value = 3
    return Literal(type_, value)  # type: ignore[arg-type]


def _calls() -> list[tuple[str, Expression]]:
    calls: list[tuple[str, Expression]] = []
    for entry in all_capabilities():
        if entry.nulls is not Nulls.STRICT or entry.internal:
            continue
        for overload in entry.overloads:
            arguments = [_argument(entry.name, each) for each in overload.parameters]
            if entry.name.startswith("array_zip"):  # whose constants are names of fields
                arguments[1::2] = [Literal(t.VARCHAR, f"f{at}") for at in range(len(arguments) // 2)]
            if any(each.kind is Kind.TIME for each in overload.parameters):
                arguments[0] = Literal(t.VARCHAR, "hour") if len(arguments) == 2 else arguments[0]
            for index, parameter in enumerate(overload.parameters):
                if parameter.constant:
                    continue
                given = list(arguments)
                given[index] = Literal(given[index].type, None)
                result = overload.result if isinstance(overload.result, SqlType) else overload.result(given)
                calls.append((f"{overload.id} at {index}", Call(result, overload.id, tuple(given))))
    return calls


@pytest.mark.spark
def test_strict_functions_of_null_are_null(spark: Any) -> None:
    calls = _calls()
    assert len(calls) > 200
    texts = [lower(call, str) for _, call in calls]
    row = spark.sql("SELECT " + ", ".join(f"({text}) IS NULL AS c{i}" for i, text in enumerate(texts))).collect()[0]
    assert [name for (name, _), is_null in zip(calls, row, strict=True) if not is_null] == []
