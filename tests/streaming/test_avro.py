"""Avro records: what is decoded of each type, by each of several schemas, and what is rejected with which reason."""

from __future__ import annotations

import datetime as dt
import json
import math
import uuid
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from mvserver.streaming.spark import record_functions
from spark_sinks.schema_registry.base import KnownSchemas, RegisteredSchema
from tests.streaming.avro_records import decoded, known, of_fields, record

pytestmark = pytest.mark.spark
D = Decimal
UTC = dt.UTC
MOMENT = dt.datetime(2024, 2, 29, 12, 34, 56, 789012, UTC)
MILLIS = MOMENT.replace(microsecond=789000)
LOCAL = MOMENT.replace(tzinfo=None)


def logical(of: str, logical_type: str, **more: Any) -> dict[str, Any]:
    return {"type": of, "logicalType": logical_type, **more}


VALUES = [
    ("boolean", True, "BOOLEAN", True),
    ("int", -7, "TINYINT", -7),
    ("int", 32767, "SMALLINT", 32767),
    ("int", -(2**31), "INTEGER", -(2**31)),
    ("int", 7, "BIGINT", 7),
    ("long", 2**63 - 1, "BIGINT", 2**63 - 1),
    ("long", 12, "INTEGER", 12),
    ("long", 12, "DECIMAL(10, 2)", D("12.00")),
    ("long", 2**53, "DOUBLE", float(2**53)),
    ("float", 0.5, "FLOAT", 0.5),
    ("float", 0.10000000149011612, "DOUBLE", 0.10000000149011612),
    ("double", 0.1, "DOUBLE", 0.1),
    ("double", math.inf, "DOUBLE", math.inf),
    ("double", -0.5, "FLOAT", -0.5),
    ("string", "é\n😀", "VARCHAR", "é\n😀"),
    ("string", "😀😀", "VARCHAR(2)", "😀😀"),
    ("string", "", "VARCHAR", ""),
    ("bytes", b"\0\xff", "VARBINARY", b"\0\xff"),
    ({"type": "fixed", "name": "F", "size": 2}, b"ab", "VARBINARY", b"ab"),
    ({"type": "enum", "name": "E", "symbols": ["RED", "BLUE"]}, "BLUE", "VARCHAR", "BLUE"),
    (logical("bytes", "decimal", precision=9, scale=2), D("-12345.67"), "DECIMAL(9, 2)", D("-12345.67")),
    (logical("bytes", "decimal", precision=9, scale=4), D("1.5000"), "DECIMAL(9, 2)", D("1.50")),
    (logical("fixed", "decimal", name="F", size=16, precision=38, scale=0), D(10**37), "DECIMAL(38, 0)", D(10**37)),
    (logical("int", "date"), dt.date(1900, 1, 1), "DATE", dt.date(1900, 1, 1)),
    (logical("int", "time-millis"), dt.time(23, 59, 59, 999000), "TIME", dt.time(23, 59, 59, 999000)),
    (logical("long", "time-micros"), dt.time(0, 0, 0, 1), "TIME", dt.time(0, 0, 0, 1)),
    (logical("long", "timestamp-millis"), MILLIS, "TIMESTAMP", MILLIS.replace(tzinfo=None)),
    (logical("long", "timestamp-micros"), MOMENT, "TIMESTAMP", LOCAL),
    (logical("long", "timestamp-millis"), MILLIS, "BIGINT", round(MILLIS.timestamp() * 1000)),
    (logical("long", "local-timestamp-micros"), LOCAL, "TIMESTAMP", LOCAL),
    (logical("string", "uuid"), uuid.UUID(int=5), "VARCHAR", str(uuid.UUID(int=5))),
    (["null", "string"], None, "VARCHAR", None),
    (["null", "string"], "x", "VARCHAR", "x"),
    (["int", "long", "string"], 5, "BIGINT", 5),
    ({"type": "array", "items": ["null", "int"]}, [1, None, 3], "ARRAY<INTEGER>", [1, None, 3]),
    ({"type": "map", "values": "long"}, {"a": 1, "b": 2}, "MAP<VARCHAR, BIGINT>", [("a", 1), ("b", 2)]),
    ({"type": "map", "values": "int"}, {"7": 1}, "MAP<INTEGER, INTEGER>", [(7, 1)]),
    (
        of_fields(("x", "int"), ("Y", "string"), name="N"),
        {"x": 1, "Y": "z"},
        "STRUCT<x BIGINT, y VARCHAR>",
        {"x": 1, "y": "z"},
    ),
    (of_fields(("x", "int"), name="N"), {"x": 1}, "MAP<VARCHAR, INTEGER>", [("x", 1)]),
    ({"type": "array", "items": of_fields(("x", "int"), name="N")}, [{"x": 1}], "ARRAY<STRUCT<x INTEGER>>", [{"x": 1}]),
]


def test_values_of_each_type(spark: SparkSession) -> None:
    """Record i has the field of case i alone, and all others are NULL in it."""
    schemas = [of_fields((f"v{i}", schema)) for i, (schema, *_) in enumerate(VALUES)]
    records = [record(schemas[i], {f"v{i}": value}, i + 1) for i, (_, value, *_) in enumerate(VALUES)]
    declared = [f"v{i} {each[2]}" for i, each in enumerate(VALUES)]
    rows = decoded(spark, declared, known(*schemas), records)
    for i, (row, case) in enumerate(zip(rows, VALUES, strict=True)):
        assert (row[i], row[-1]) == (case[3], None), case
        assert row[:i] + row[i + 1 : -1] == (None,) * (len(VALUES) - 1)


def test_moments_with_a_zone(spark: SparkSession) -> None:
    whole = of_fields(("v", logical("long", "timestamp-micros")))
    ((found, reason),) = decoded(spark, ["v TIMESTAMP_LTZ"], known(whole), [record(whole, {"v": MOMENT})])
    assert (found, reason) == (MOMENT, None)


WRONG = [
    ("int", 200, "TINYINT", "200"),
    ("long", 2**31, "INTEGER", "2147483648"),
    ("double", 1.5, "INTEGER", "1.5"),
    ("double", 1e39, "FLOAT", "1.0E39"),
    ("string", "7", "INTEGER", "7"),
    ("string", "abc", "VARCHAR(2)", "abc"),
    ("string", "a\0b", "VARCHAR", "a\ufffdb"),
    ("int", 7, "VARCHAR", "7"),
    ("boolean", True, "INTEGER", "true"),
    (logical("bytes", "decimal", precision=9, scale=3), D("1.005"), "DECIMAL(9, 2)", "1.005"),
    (logical("bytes", "decimal", precision=9, scale=0), D(12345), "DECIMAL(4, 0)", "12345"),
    ("bytes", b"ab", "VARCHAR", "2 bytes"),
    ({"type": "array", "items": "long"}, [1, 2**31], "ARRAY<INTEGER>", "[1, 2147483648]"),
    ("int", 5, "STRUCT<\"x\" INTEGER>", "5"),
]  # fmt: skip


def test_what_would_lose_something_is_rejected(spark: SparkSession) -> None:
    schemas = [of_fields((f"v{i}", schema)) for i, (schema, *_) in enumerate(WRONG)]
    records = [record(schemas[i], {f"v{i}": value}, i + 1) for i, (_, value, *_) in enumerate(WRONG)]
    declared = [f"v{i} {each[2]}" for i, each in enumerate(WRONG)]
    rows = decoded(spark, declared, known(*schemas), records)
    assert [row[-1] for row in rows] == [
        f'column "v{i}" is not of type {type_}: {shown}' for i, (_, _, type_, shown) in enumerate(WRONG)
    ]
    assert all(row[:-1] == (None,) * len(WRONG) for row in rows)


def test_each_record_is_read_by_its_own_schema(spark: SparkSession) -> None:
    """Fields come, go, move and get wider; a column that the writer did not have is NULL."""
    first = of_fields(("id", "int"), ("name", "string"))
    second = of_fields(("name", ["null", "string"]), ("extra", "double"), ("id", "long"))
    third = of_fields(("ID", "long"))
    values = [
        record(first, {"id": 1, "name": "a"}, 1),
        record(second, {"id": 2**40, "name": None, "extra": 1.0}, 2),
        record(third, {"ID": 3}, 3),
        record(first, {"id": 4, "name": "d"}, 1),
    ]
    assert decoded(spark, ["id BIGINT", "name VARCHAR"], known(first, second, third), values) == [
        (1, "a", None), (2**40, None, None), (3, None, None), (4, "d", None),
    ]  # fmt: skip


def test_a_column_that_must_not_be_null(spark: SparkSession) -> None:
    schema = of_fields(("v", ["null", "int"]))
    rows = decoded(spark, ["v INTEGER NOT NULL"], known(schema), [record(schema, {"v": None})])
    assert rows == [(None, 'column "v" is null and must not be')]


def test_undecodable_records_have_a_reason(spark: SparkSession) -> None:
    schema = of_fields(("v", "string"), ("w", "int"))
    good = record(schema, {"v": "text", "w": 1})
    rows = decoded(
        spark,
        ["v VARCHAR", "w INTEGER"],
        known(schema, absent=[9]),
        [
            good, None, b"", b"{}", b'{"v": "text"}', good[:-1], good + b"\0", good[:5],
            record(schema, {"v": "x", "w": 1}, 9),
            record(schema, {"v": "x", "w": 1}, 7), b"\0\0\0\0\1\x04\xff\xff\x02", b"\0\0\0\0\1\xff\xff\xff\xff\x0f\x02",
            b"\xff\xfemvserver oversize 5 of 4\xffx",
        ],
    )  # fmt: skip
    no_id = "the value does not begin with the id of a schema"
    short = "the value has fewer bytes than schema 1 says"
    assert [row[-1] for row in rows] == [
        None, "the value is null", no_id, no_id, no_id, short,
        "the value has more bytes than schema 1 says", short, "schema 9 is not in the schema registry",
        "\ufdd17", "a text of the value is not valid UTF-8", short, no_id,
    ]  # fmt: skip
    assert all(row[:-1] == (None, None) for row in rows[1:])


def test_parts_without_bytes_and_deep_values_end(spark: SparkSession) -> None:
    nulls = of_fields(("v", {"type": "array", "items": "null"}))
    tree = of_fields(("v", ["null", "R"]))
    deep: dict[str, Any] = {"v": None}
    for _ in range(200):
        deep = {"v": deep}
    rows = decoded(
        spark,
        ["v ARRAY<INTEGER>"],
        known(nulls, tree),
        [b"\0\0\0\0\1" + b"\x80\x89\x7a" + b"\0", record(tree, deep, 2)],  # a million,
    )
    assert [reason for _, reason in rows] == ["the value has more parts than bytes", "the value is nested too deeply"]


def test_a_schema_that_is_none_rejects_its_records_alone(spark: SparkSession) -> None:
    good = of_fields(("v", "int"))
    schemas = KnownSchemas(1, (*known(good).schemas, RegisteredSchema(2, "AVRO", "no schema"),
                               RegisteredSchema(3, "JSON", "{}")))  # fmt: skip
    rows = decoded(spark, ["v INTEGER"], schemas, [record(good, {"v": 1}, id_) for id_ in (1, 2, 3)])
    assert rows[0] == (1, None)
    assert rows[1][1].startswith("schema 2 cannot be used: ")
    assert rows[2][1] == "schema 3 is of kind JSON"


def test_schemas_that_refer_to_others(spark: SparkSession) -> None:
    inner = of_fields(("x", "int"), name="Inner")
    outer = of_fields(("v", "Inner"), name="Outer")
    schema = RegisteredSchema(1, "AVRO", json.dumps(outer), (("Inner", json.dumps(inner)),))
    value = record(of_fields(("v", inner), name="Outer"), {"v": {"x": 5}})
    assert decoded(spark, ["v STRUCT<x INTEGER>"], KnownSchemas(1, (schema,)), [value]) == [({"x": 5}, None)]


def test_old_decoders_leave_the_session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each set of known schemas is a function of its own; one that was dropped is made again where it is used."""
    monkeypatch.setattr(record_functions, "_REGISTERED_MAX", 2)
    schema = of_fields(("v", "int"))
    first = known(schema)
    for id_ in (7, 8, 9):
        assert decoded(spark, ["v INTEGER"], known(schema, absent=[id_]), [record(schema, {"v": 1})]) == [(1, None)]
    assert decoded(spark, ["v INTEGER"], first, [record(schema, {"v": 1})]) == [(1, None)]
    names = [f.name for f in spark.catalog.listFunctions(pattern="mv_records_*")]
    assert len(names) == 2


def test_a_value_that_is_no_record_is_the_one_column(spark: SparkSession) -> None:
    assert decoded(spark, ["k VARCHAR"], known("string"), [record("string", "a")]) == [("a", None)]
    rows = decoded(spark, ["k VARCHAR", "l VARCHAR"], known("string"), [record("string", "a")])
    assert rows == [(None, None, "the value is not a record with fields")]
