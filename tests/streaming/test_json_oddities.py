"""What one run over the bytes of a JSON record finds, by which the patterns need not be asked."""

from __future__ import annotations

from typing import Any

import pytest

from spark_sinks.decode import json_text

pytestmark = pytest.mark.spark
MANY, KEYS, NUMBERS = 1, 2, 4
ALL = MANY | KEYS | NUMBERS
DIGITS = 2  # behind the point of a number
TEXTS: dict[str, int] = {
    "{}": 0,
    ' \t\r\n{"a": {"b": [1, {"c": null}]}, "d": true} \n': 0,
    '{"op":"c","before":null,"after":{"n":1,"price":1.00},"source":{"lsn":"0/10F4240","at":"2024-05-17 10:11:12"}}': 0,
    '{"a":"x}{","b":"\\"}","c":"\\\\"}': 0,
    '{"a":"Ä A ſ","b":"","c":"-","d":"x1"}': NUMBERS,  # a minus alone
    '{"a":"1-2","b":"10:11","c":"1/2","d":"1_0","e":"0x1"}': 0,
    # another thing than one object
    "": ALL,
    "[]": ALL,
    "1": ALL,
    '"{}"': ALL,
    "\ufeff{}": ALL,
    "{}{}": MANY,
    "{} x": MANY,
    "{},": MANY,
    '{"a":1': MANY,
    '{"a":"': MANY,
    '{"a":"\\': MANY,
    # keys
    '{"A":1}': KEYS,
    '{"aB" : 1}': KEYS,
    '{"a":{"bC":1}}': KEYS,
    '{"ä":1}': KEYS,
    '{"ſ":1}': KEYS,
    '{"a b":1,"c_1":2}': 0,
    '{"a":"A","b":["B"]}': 0,
    '{"\\u0061":1}': KEYS | NUMBERS,
    '{"a":"\\u0061"}': KEYS | NUMBERS,
    '{"a":"\\\\u0061"}': 0,
    # numbers
    '{"a":1.25,"b":-0.5,"c":[1.00]}': 0,
    '{"a":1.250}': NUMBERS,
    '{"a":[1,1.001]}': NUMBERS,
    '{"a":1e2}': NUMBERS,
    '{"a":1E2}': NUMBERS,
    '{"a":"1"}': NUMBERS,
    '{"a":"1.5"}': NUMBERS,
    '{"a":"1,5"}': NUMBERS,
    '{"a":"1e5"}': NUMBERS,
    '{"a":" 1"}': NUMBERS,
    '{"a":"+1"}': NUMBERS,
    '{"a":"\uff11"}': NUMBERS,
    '{"a":"1\u2019000"}': NUMBERS,
    '{"a":"∞"}': NUMBERS,
    '{"1":"x"}': 0,
}


def test_what_is_odd_about_a_text(spark: Any) -> None:
    import pyarrow as pa

    rows = pa.table({"value": pa.array([text.encode() for text in TEXTS], pa.binary())})
    found = spark.createDataFrame(rows).selectExpr(f"{json_text.ODDITIES}(value, {DIGITS}) AS found").collect()
    assert {text: row.found for text, row in zip(TEXTS, found, strict=True)} == TEXTS


def test_numbers_are_no_matter_where_all_digits_are_kept(spark: Any) -> None:
    query = f"{json_text.ODDITIES}(cast('{{\"a\":1.123456789}}' as binary), 2147483647)"
    assert spark.range(1).selectExpr(query).collect()[0][0] == 0
