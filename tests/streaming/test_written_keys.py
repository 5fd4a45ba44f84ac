"""The keys of records that queries write: those that Spark makes are those that the rows of an outbox have."""

from __future__ import annotations

import random
import struct
import time
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import Row

from mvserver.compiler.plans import Output
from mvserver.sql.types import Kind, SqlType, parse_type
from mvserver.streaming.batch.program import ViewInput
from mvserver.streaming.batch.record_encoding import RecordEncoder
from mvserver.streaming.queries.record_form import RecordForm
from mvserver.streaming.spark.types import decode_column
from spark_sinks.decode import format_of

pytestmark = pytest.mark.spark

_RANGES = {Kind.SMALLINT: 2**15, Kind.INTEGER: 2**31, Kind.BIGINT: 2**63}


@pytest.mark.parametrize("type_", ["SMALLINT", "INTEGER", "BIGINT", "VARCHAR"])
def test_primitive_keys(spark: Any, type_: str) -> None:
    seed = time.time_ns() % 1_000_000
    print(f"seed {seed}")
    chance, kind = random.Random(seed), parse_type(type_)
    most = _RANGES.get(kind.kind)
    values: list[Any] = [None, "", "a", "é\U00010000", "null"]
    if most is not None:
        values = [None, 0, 1, -1, most - 1, -most, *(chance.randrange(-most, most) for _ in range(50))]
    encoder = RecordEncoder({"k": kind}, ("k",), "primitive")
    assert _made(spark, encoder, [{"k": value} for value in values]) == [
        encoder.key_of({"k": value}) for value in values
    ]
    if most is not None:
        assert encoder.key_of({"k": -2}) == (-2).to_bytes({2**15: 2, 2**31: 4, 2**63: 8}[most], "big", signed=True)


def test_integers_are_texts_where_keys_are(spark: Any) -> None:
    encoder = RecordEncoder({"k": parse_type("BIGINT")}, ("k",), "primitive", text_keys=True)
    rows = [{"k": value} for value in (None, 0, -12, 2**62)]
    assert _made(spark, encoder, rows) == [None, b"0", b"-12", str(2**62).encode()]
    assert [encoder.key_of(row) for row in rows] == _made(spark, encoder, rows)


def test_keys_of_several_columns(spark: Any) -> None:
    columns = {"k": parse_type("BIGINT"), "name": parse_type("VARCHAR"), "left": parse_type("VARCHAR")}
    encoder = RecordEncoder(columns, ("name", "k"), "json")
    rows = [{"k": 1, "name": 'a"b', "left": "x"}, {"k": None, "name": "é", "left": None}]
    assert _made(spark, encoder, rows) == [b'{"name":"a\\"b","k":1}', '{"name":"é","k":null}'.encode()]
    assert [encoder.key_of(row) for row in rows] == _made(spark, encoder, rows)


@pytest.mark.parametrize(
    ("format_", "type_", "value", "wanted"),
    [
        ("primitive", "DOUBLE", 0.5, struct.pack(">d", 0.5)),
        ("primitive", "FLOAT", 0.5, struct.pack(">f", 0.5)),
        ("primitive", "BOOLEAN", True, b"\1"),
        ("primitive", "VARBINARY", b"\xff\0", b"\xff\0"),
        ("csv", "VARCHAR", 'a"b', b'"a""b"'),
        ("csv", "BIGINT", -5, b"-5"),
    ],
)
def test_keys_that_an_encoder_makes(spark: Any, format_: str, type_: str, value: Any, wanted: bytes) -> None:
    """Both ways make an object, of which the encoder of the format makes the key. One value alone is no key if NULL."""
    encoder = RecordEncoder({"_key.k": parse_type(type_)}, ("_key.k",), format_)
    make = format_of(format_).encoder
    assert make is not None
    encode = make([decode_column("k", type_, True)], ",")
    made = [_made(spark, encoder, [{"_key.k": value}])[0], encoder.key_of({"_key.k": value})]
    assert [encode(each) for each in made if each is not None] == [wanted, wanted]
    if format_ == "primitive":
        assert (_made(spark, encoder, [{"_key.k": None}]), encoder.key_of({"_key.k": None})) == ([None], None)


def test_without_columns_for_it_a_record_keeps_its_key(spark: Any) -> None:
    encoder = RecordEncoder({"k": parse_type("VARCHAR")}, (), "json")
    assert _made(spark, encoder, [{"k": "a"}]) == [b"came with it"]


def _made(spark: Any, encoder: RecordEncoder, rows: list[dict[str, Any]]) -> list[bytes | None]:
    """As the query selects them, of columns whose names in the frame are others."""
    fields = ", ".join(f"f{number} {_spark(kind)}" for number, kind in enumerate(encoder.columns.values()))
    frame = spark.createDataFrame(
        [Row(*row.values()) for row in rows], schema=fields
    ).selectExpr("*", "true AS flag", "cast('came with it' as binary) AS key")  # fmt: skip
    outputs = tuple(Output(name, kind, None) for name, kind in encoder.columns.items())
    no_target: Any = None
    view = ViewInput(no_target, "flag", outputs=tuple(f"f{number}" for number in range(len(encoder.columns))))
    plan: Any = SimpleNamespace(outputs=outputs)
    (key, *_) = RecordForm(_no_sink, encoder).selected(view, plan)
    return [None if row[0] is None else bytes(row[0]) for row in frame.selectExpr(key).collect()]


def _spark(kind: SqlType) -> str:
    named = {Kind.VARCHAR: "string", Kind.VARBINARY: "binary", Kind.INTEGER: "int"}
    return named.get(kind.kind) or kind.kind.name.lower()


def _no_sink() -> Any:
    raise AssertionError


def test_fields_of_the_key_alone(spark: Any) -> None:
    """A column "_key.f" is the key's field f; where the key alone has its columns, all of them NULL are no key."""
    types = {"_key.a": parse_type("INTEGER"), "b": parse_type("VARCHAR"), "a": parse_type("INTEGER")}
    alone = RecordEncoder(types, ("_key.a", "b"), "json", ("_key.a", "b"))
    row = {"_key.a": 1, "b": None, "a": 2}
    assert (alone.key_of(row), alone.value_of(row)) == (b'{"a":1,"b":null}', b'{"a":2}')
    rows: list[dict[str, Any]] = [row, {"_key.a": None, "b": "x", "a": 2}, {"_key.a": None, "b": None, "a": 2}]
    assert _made(spark, alone, rows) == [b'{"a":1,"b":null}', b'{"a":null,"b":"x"}', None]
    assert [alone.key_of(each) for each in rows] == _made(spark, alone, rows)
    shared = RecordEncoder(types, ("_key.a", "b"), "json", ("_key.a",))
    assert shared.key_of({"_key.a": None, "b": None, "a": 2}) == b'{"a":null,"b":null}'
    assert shared.value_of(row) == b'{"b":null,"a":2}'
