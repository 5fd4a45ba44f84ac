"""Records of XML: what they are read as, what rejects one, and that what queries write is read back."""

from __future__ import annotations

import datetime as dt
import json
import random
import time
import xml.etree.ElementTree as ET
from decimal import Decimal
from typing import Any

import pytest

from mvserver.errors import SqlError
from mvserver.routing import xml_columns
from mvserver.sql.types import parse_type
from mvserver.streaming.spark.types import decode_column
from spark_sinks.decode import format_of
from tests.streaming.decoding import decoded

COLUMNS = {"_id": "BIGINT", "name": "VARCHAR", "price": "DECIMAL(10, 2)", "tags": "ARRAY<VARCHAR>"}
HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<!-- a sale -->'


def read(spark: Any, records: list[str | bytes | None], columns: dict[str, str], **more: Any) -> list[tuple[Any, ...]]:
    raw = [each.encode() if isinstance(each, str) else each for each in records]
    return decoded(spark, raw, columns, "xml", **more)


@pytest.mark.spark
def test_elements_and_attributes_are_columns(spark: Any) -> None:
    assert read(
        spark,
        [
            f'{HEAD}<sale id="7"><name>tea &amp; cup</name><price> 4.50 </price><tags>a</tags><tags/></sale>\n',
            "<s:x xmlns:s='urn:s'><s:NAME><![CDATA[<b>]]>&#233;</s:NAME><tags>one</tags><other><a/></other></s:x>",
            "<x/>",
            '<x><name xmlns:i="http://www.w3.org/2001/XMLSchema-instance" i:nil="true"/><name2/></x>',
            "<x><name></name></x>",
            "<?xml version='1.0' encoding='ISO-8859-1'?><x><name>é</name></x>".encode("latin-1"),
        ],
        COLUMNS,
    ) == [
        (None, 7, "tea & cup", Decimal("4.50"), ["a", ""]),
        (None, None, "<b>é", None, ["one"]),
        (None, None, None, None, None),
        (None, None, None, None, None),
        (None, None, "", None, None),
        (None, None, "é", None, None),
    ]


@pytest.mark.spark
def test_nested_elements(spark: Any) -> None:
    columns = {
        "at": "TIMESTAMP_LTZ", "size": "STRUCT<_value DOUBLE, _unit VARCHAR>",
        "items": "ARRAY<STRUCT<_no INTEGER, Name VARCHAR, parts ARRAY<BIGINT>>>",
    }  # fmt: skip
    record = """<order><at>2024-05-01T10:00:00+02:00</at><size unit="m">1.5</size>
      <items no="1"><Name>tea</Name><parts>1</parts><parts>2</parts></items><items no="2"/></order>"""
    moment = dt.datetime(2024, 5, 1, 8, tzinfo=dt.UTC)
    ((reason, at, size, items),) = read(spark, [record], columns)
    assert (reason, at.astimezone(dt.UTC), size) == (None, moment, {"_value": 1.5, "_unit": "m"})
    assert [list(each.values()) for each in items] == [[1, "tea", [1, 2]], [2, None, None]]


@pytest.mark.spark
def test_what_rejects_a_record(spark: Any) -> None:
    records: list[str | bytes | None] = [
        None,
        "",
        "<x><name>a</x>",
        "<x/><x/>",
        "<x/>more",
        "tea",
        '{"name": "tea"}',
        "<x><name>a</name><name>b</name></x>",
        "<x><name>a<b/></name></x>",
        "<x>text</x>",
        "<x><price>much</price></x>",
        "<x><price>1.005</price></x>",
        "<x><price/></x>",
        '<x id="seven"/>',
        '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><x><name>&e;</name></x>',
        "<x><name>&e;</name></x>",
        b"<x><name>\xff</name></x>",
        "<x>" + "<name>" * 200 + "</name>" * 200 + "</x>",
    ]
    reasons = [row[0] for row in read(spark, records, COLUMNS)]
    for reason, wanted in zip(
        reasons,
        [
            "the value is null",
            "the value is not one XML element: ",
            "the value is not one XML element: ",
            "the value is not one XML element: ",
            "the value is not one XML element: ",
            "the value is not one XML element: ",
            "the value is not one XML element: ",
            'element "name" is there 2 times',
            'element "name" has elements in it, and is to have a value',
            'element "x" has text, and is to have elements: text',
            'column "price" is not of type DECIMAL(10, 2): much',
            'column "price" is not of type DECIMAL(10, 2): 1.005',
            'column "price" is not of type DECIMAL(10, 2): ',
            'column "_id" is not of type BIGINT: seven',
            "the value has a document type, which is not read",
            "the value",
            "the value is not one XML element: ",
            "the value is nested too deeply",
        ],
        strict=True,
    ):
        assert reason is not None
        assert reason.startswith(wanted), (reason, wanted)
    assert read(spark, ["<x><price>1</price></x>"], COLUMNS, not_null="name")[0][0] == (
        'column "name" is null and must not be'
    )


TYPES = {
    "_id": "BIGINT", "_note": "VARCHAR", "text": "VARCHAR", "number": "BIGINT", "exact": "DECIMAL(38, 10)",
    "real": "DOUBLE", "truth": "BOOLEAN", "day": "DATE", "list": "ARRAY<VARCHAR>",
    "part": "STRUCT<_k VARCHAR, v BIGINT, w ARRAY<BOOLEAN>>",
}  # fmt: skip
_TEXTS = ["", " a ", "<&>\"'", "line\nand\r\nmore\ttab", "é✓\U0001f600", "]]>", "null"]


def _row(chance: random.Random) -> dict[str, Any]:
    def some(value: Any) -> Any:
        return None if chance.random() < 0.2 else value

    return {
        "_id": some(chance.randrange(-(2**63), 2**63)),
        "_note": some(chance.choice(_TEXTS)),
        "text": some(chance.choice(_TEXTS)),
        "number": some(chance.randrange(-(2**63), 2**63)),
        "exact": some(Decimal(chance.randrange(-(10**38) + 1, 10**38)).scaleb(-10)),
        "real": some(chance.uniform(-1e10, 1e10)),
        "truth": some(chance.random() < 0.5),
        "day": some(dt.date(2024, 1, 1) + dt.timedelta(days=chance.randrange(1000))),
        "list": some([some(chance.choice(_TEXTS)) for _ in range(chance.randrange(1, 4))]),
        "part": some({"_k": some("k"), "v": some(5), "w": some([True, None, False])}),
    }


def _written(row: dict[str, Any]) -> bytes:
    make = format_of("xml").encoder
    assert make is not None

    def plain(value: Any) -> str:
        if isinstance(value, Decimal):
            return f"{value:f}"
        if isinstance(value, list):
            return "[" + ",".join(map(plain, value)) + "]"
        if isinstance(value, dict):
            return "{" + ",".join(f"{json.dumps(k)}:{plain(v)}" for k, v in value.items()) + "}"
        return json.dumps(value, default=str)

    return make([decode_column(name, type_, False) for name, type_ in TYPES.items()], ",")(plain(row).encode())


@pytest.mark.spark
def test_what_is_written_is_read_back(spark: Any) -> None:
    seed = time.time_ns() % 1_000_000
    print(f"seed {seed}")
    chance = random.Random(seed)
    rows = [_row(chance) for _ in range(200)]
    records = [_written(row) for row in rows]
    for record in records:
        ET.fromstring(record)  # another parser has no objection
    assert decoded(spark, records, TYPES, "xml") == [(None, *row.values()) for row in rows]


def test_how_a_row_is_written() -> None:
    row = dict.fromkeys(TYPES) | {
        "_id": 7, "text": "a<b", "truth": True, "list": ["x", None], "part": {"_k": '"', "v": None, "w": []}
    }  # fmt: skip
    nil = '<list xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:nil="true"/>'
    wanted = f"<text>a&lt;b</text><truth>true</truth><list>x</list>{nil}<part _k=''></part>".replace(
        " _k=''", " k='\"'"
    )
    assert _written(row).decode() == f'<record id="7">{wanted}</record>'


@pytest.mark.parametrize(("text", "code"), [("a\0", "0000"), ("\x1b", "001B"), ("\ufffe", "FFFE")])
def test_what_xml_cannot_hold(text: str, code: str) -> None:
    with pytest.raises(SqlError, match=f"a text with the character U\\+{code} cannot be written as XML"):
        _written(dict.fromkeys(TYPES) | {"text": text})


@pytest.mark.parametrize(
    ("name", "type_", "why"),
    [
        ("a b", "VARCHAR", '"a b" is no name of an element'),
        ("1a", "VARCHAR", '"1a" is no name of an element'),
        ("m", "MAP<VARCHAR, BIGINT>", "the format xml has no MAP<VARCHAR, BIGINT>"),
        ("m", "ARRAY<ARRAY<BIGINT>>", "the format xml has no ARRAY<ARRAY<BIGINT>>"),
        ("_a", "ARRAY<BIGINT>", '"_a" is an attribute, and so no ARRAY<BIGINT>'),
        ("s", "STRUCT<m MAP<VARCHAR, BIGINT>>", "the format xml has no MAP<VARCHAR, BIGINT>"),
    ],
)
def test_columns_that_xml_does_not_have(name: str, type_: str, why: str) -> None:
    with pytest.raises(SqlError) as caught:
        xml_columns.check(name, parse_type(type_))
    assert (caught.value.sqlstate, caught.value.message) == (
        "0A000", f'column "{name}" cannot be in a record of XML: {why}'
    )  # fmt: skip
