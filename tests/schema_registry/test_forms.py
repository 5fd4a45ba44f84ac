"""What queries write by schemas: the schema made of columns, and records that other libraries read back."""

from __future__ import annotations

import base64
import io
import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from google.protobuf import json_format
from pyspark.sql.types import LongType

from mvserver.errors import SqlError
from mvserver.sql.types import parse_type
from mvserver.streaming.spark.types import spark_type
from spark_sinks.decode import DecodeColumn
from spark_sinks.encode.avro_form import avro_form
from spark_sinks.encode.protobuf_form import _class, protobuf_form
from spark_sinks.encode.written import FullName

ROW: dict[str, tuple[str, Any]] = {
    "b": ("BOOLEAN", True), "t": ("TINYINT", -1), "i": ("INTEGER", 7), "l": ("BIGINT", 2**62), "f": ("FLOAT", 0.5),
    "d": ("DOUBLE", "NaN"), "n": ("DECIMAL(9, 2)", 1.5), "v": ("VARCHAR", "é"), "x": ("VARBINARY", "AP8="),
    "at": ("TIMESTAMP", "2024-02-29 12:00:00.000001"), "z": ("TIMESTAMP_LTZ", "2024-02-29 12:00:00.000001Z"),
    "day": ("DATE", "1900-01-01"), "clock": ("TIME", "23:59:59.000001"), "a": ("ARRAY<BIGINT>", [1, 2]),
    "m": ("MAP<VARCHAR, DOUBLE>", {"k": 0.5}), "s": ("STRUCT<p INTEGER, q VARCHAR>", {"p": 1, "q": None}),
    "gone": ("VARCHAR", None),
}  # fmt: skip
NOT_IN_PROTOBUF = ("n", "day", "clock")


def columns(*names: str) -> list[DecodeColumn]:
    return [DecodeColumn(name, spark_type(parse_type(ROW[name][0])), ROW[name][0]) for name in names]


def text(*names: str) -> bytes:
    return json.dumps({name: ROW[name][1] for name in names}).encode()


def test_avro_is_read_back_by_fastavro() -> None:
    form = avro_form("out-value", columns(*ROW), None)
    schema = json.loads(form.schema)
    assert schema["name"] == "out_value"
    found: Any = fastavro.schemaless_reader(io.BytesIO(form.encode(text(*ROW))), fastavro.parse_schema(schema), None)
    moment = datetime(2024, 2, 29, 12, 0, 0, 1, UTC)
    assert str(found.pop("d")) == "nan"
    assert found == {
        "b": True, "t": -1, "i": 7, "l": 2**62, "f": 0.5, "n": Decimal("1.50"), "v": "é", "x": b"\0\xff",
        "at": moment.replace(tzinfo=None), "z": moment, "day": date(1900, 1, 1), "clock": time(23, 59, 59, 1),
        "a": [1, 2], "m": {"k": 0.5}, "s": {"p": 1, "q": None}, "gone": None,
    }  # fmt: skip


def test_avro_keeps_the_name_of_the_subject() -> None:
    newest = json.dumps({"type": "record", "name": "Order", "namespace": "shop", "fields": []})
    schema = json.loads(avro_form("out", columns("i"), newest).schema)
    assert (schema["name"], schema["namespace"]) == ("Order", "shop")
    assert json.loads(avro_form("out", columns("i"), "no json").schema)["name"] == "out"


def test_protobuf_is_read_back_by_googles_library() -> None:
    names = [name for name in ROW if name not in NOT_IN_PROTOBUF]
    form = protobuf_form("out-value", columns(*names), None)
    whole = form.encode(text(*names))
    assert whole[:1] == b"\0"  # the first message of the schema
    found = json_format.MessageToDict(_class(form.schema, "M_out_value").FromString(whole[1:]),
                                      preserving_proto_field_name=True)  # fmt: skip
    assert found == {
        "b": True, "t": -1, "i": 7, "l": str(2**62), "f": 0.5, "d": "NaN", "v": "é",
        "x": base64.b64encode(b"\0\xff").decode(), "at": "2024-02-29T12:00:00.000001Z",
        "z": "2024-02-29T12:00:00.000001Z", "a": ["1", "2"], "m": {"k": 0.5}, "s": {"p": 1},
    }  # fmt: skip


def test_protobuf_keeps_the_numbers_of_the_subject() -> None:
    first = protobuf_form("out", columns("i", "v"), None).schema
    later = protobuf_form("other", columns("b", "v"), first).schema
    assert "message M_out {" in later
    assert "optional string v = 2;" in later
    assert "optional bool b = 3;" in later


@pytest.mark.parametrize(
    ("form", "name", "type_", "why"),
    [
        (avro_form, "a b", "INTEGER", "it is no name of Avro"),
        (avro_form, "m", "MAP<INTEGER, INTEGER>", "Avro has no such type"),
        (protobuf_form, "a b", "INTEGER", '"a b" is no name of Protobuf'),
        (protobuf_form, "n", "DECIMAL(9, 2)", "Protobuf has no such type"),
        (protobuf_form, "n", "ARRAY<ARRAY<INTEGER>>", "Protobuf has no such type"),
    ],
)
def test_columns_that_a_format_does_not_have(form: Any, name: str, type_: str, why: str) -> None:
    with pytest.raises(SqlError) as raised:
        form("out", [DecodeColumn(name, spark_type(parse_type(type_)), type_)], None)
    assert (raised.value.sqlstate, raised.value.message) == ("0A000", f'column "{name}" cannot be written: {why}')


def test_a_null_in_an_array_is_not_lost() -> None:
    form = protobuf_form("out", columns("a"), None)
    with pytest.raises(SqlError) as raised:
        form.encode(b'{"a": [1, null]}')
    assert raised.value.sqlstate == "22000"


def test_names_that_are_given_to_records_of_avro() -> None:
    given = FullName("Sale", "org.shop")
    schema = json.loads(avro_form(given, columns("i"), None).schema)
    assert (schema["namespace"], schema["name"]) == ("org.shop", "Sale")
    assert json.loads(avro_form(given, columns("i"), json.dumps(schema)).schema) == schema
    other = json.dumps({**schema, "name": "Purchase"})
    with pytest.raises(SqlError) as caught:
        avro_form(given, columns("i"), other)
    assert caught.value.message == 'records of the subject are called "org.shop.Purchase", and not "org.shop.Sale"'
    assert json.loads(avro_form("out", columns("i"), other).schema)["name"] == "Purchase"


def test_one_value_has_no_record_around_it() -> None:
    column = DecodeColumn("_value", LongType(), "BIGINT")
    form = avro_form("out", [column], None)
    assert json.loads(form.schema) == "long"
    assert form.encode(b'{"_value":-3}') == b"\x05"
    with pytest.raises(SqlError, match='column "_value" is NULL, which the format avro cannot have as a value'):
        form.encode(b'{"_value":null}')
