"""Decoding: each coercion that loses nothing, and each rejection with its reason, in JSON and CSV."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pytest

from mvserver.sql.types import parse_type
from tests.streaming.decoding import decoded

pytestmark = pytest.mark.spark
D = Decimal
UTC = dt.UTC
_TABLE = {
    "TINYINT": (
        [("127", 127), ('"-128"', -128), ('" 7 "', 7), ("7.0", 7), ("1e1", 10), ('"7.00"', 7), ("null", None)],
        ["128", "-129", "1.5", '"x"', "true", "{}", "[]", '""'],
    ),
    "SMALLINT": ([("32767", 32767), ('"-32768"', -32768)], ["32768", '"1.5"', '"1 2"']),
    "INTEGER": (
        [("2147483647", 2147483647), ('"-2147483648"', -2147483648), ("3.0", 3)],
        ["2147483648", "1.7", '"0x10"'],
    ),
    "BIGINT": (
        [
            ("9223372036854775807", 2**63 - 1),
            ('"12"', 12),
            ("9007199254740993.0", 2**53 + 1),
            ('"-9223372036854775808"', -(2**63)),
        ],
        ["9223372036854775808", "1e30", '"twelve"', "9007199254740993.5"],
    ),
    "DECIMAL(10, 2)": (
        [
            ("1.5", D("1.50")),
            ('"1.50"', D("1.50")),
            ("-12345678.90", D("-12345678.90")),
            ("7", D("7.00")),
            ("1.500", D("1.50")),
            ("1e2", D("100.00")),
        ],
        ["1.005", "123456789", '"1,5"', "true"],
    ),
    "DECIMAL(38, 10)": (
        [
            ("44131988450633526585.0492470912", D("44131988450633526585.0492470912")),
            ('"44131988450633526585.0492470912"', D("44131988450633526585.0492470912")),
        ],
        ['"1e40"'],
    ),
    "FLOAT": ([("1.5", 1.5), ('"-2.5"', -2.5), ("3", 3.0), ('"Infinity"', math.inf)], ["1e39", '"one"', "true"]),
    "DOUBLE": (
        [("1.5", 1.5), ('"1e3"', 1000.0), ("5", 5.0), ('"-Infinity"', -math.inf), ("0.1", 0.1)],
        ["1e400", '"1.5x"', "NaN", "[1]"],
    ),
    "BOOLEAN": ([("true", True), ('"FALSE"', False), ('"true"', True)], ["1", '"yes"', "0"]),
    "VARCHAR": (
        [
            ('"x"', "x"),
            ("12", "12"),
            ("true", "true"),
            ('{"a":[1]}', '{"a":[1]}'),
            ('""', ""),
            ('"é\\u0041\\n"', "éA\n"),
        ],
        [],
    ),
    "VARCHAR(3)": ([('"abc"', "abc"), ('"é漢字"', "é漢字"), ("12", "12")], ['"abcd"', "1234"]),
    "VARBINARY": ([('"aGk="', b"hi"), ('""', b"")], ['"*"', "1.5"]),
    "DATE": (
        [('"2024-02-29"', dt.date(2024, 2, 29))],
        ['"2023-02-29"', '"29/02/2024"', "20240229", '"2024-2-9"', '"2024-02-29x"'],
    ),
    "TIME": (
        [('"10:11"', dt.time(10, 11)), ('"10:11:12.345678"', dt.time(10, 11, 12, 345678))],
        ['"24:00:00"', '"10"', '"10:11:12.3456789"'],
    ),
    "TIMESTAMP": (
        [
            ('"2024-05-17 10:11:12"', dt.datetime(2024, 5, 17, 10, 11, 12)),
            ('"2024-05-17T10:11:12.5"', dt.datetime(2024, 5, 17, 10, 11, 12, 500000)),
            ('"2024-05-17 10:11"', dt.datetime(2024, 5, 17, 10, 11)),
        ],
        ['"2024-02-30 00:00:00"', '"2024-05-17 10:11:12Z"', '"2024-05-17"', "1715940672"],
    ),
    "TIMESTAMP_LTZ": (
        [
            ('"2024-05-17 10:11:12Z"', dt.datetime(2024, 5, 17, 10, 11, 12, tzinfo=UTC)),
            ('"2024-05-17T10:11:12+05:30"', dt.datetime(2024, 5, 17, 4, 41, 12, tzinfo=UTC)),
            ('"2024-05-17 10:11:12"', dt.datetime(2024, 5, 17, 10, 11, 12, tzinfo=UTC)),
        ],
        ['"2024-05-17 10:11:12 Mars"', '"x"'],
    ),
    "ARRAY<INTEGER>": (
        [("[1,null,3]", [1, None, 3]), ("[]", []), ('"[1,2]"', [1, 2])],
        ['[1,"x"]', "1", "[1.5]", "{}"],
    ),
    "ARRAY<TINYINT>": ([("[1,-128]", [1, -128])], ["[128]"]),
    "ARRAY<DECIMAL(38, 2)>": (
        [("[123456789012345678901234567890.12]", [D("123456789012345678901234567890.12")])],
        ['["x"]'],
    ),
    "MAP<VARCHAR, INTEGER>": (
        [('{"a":1,"b":null}', [("a", 1), ("b", None)]), ("{}", [])],
        ['{"a":"x"}', "[]", '{"a":1.5}'],
    ),
    "MAP<INTEGER, VARCHAR>": ([('{"1":"x"}', [(1, "x")])], ['{"one":"x"}']),
    "STRUCT<a INTEGER, b STRUCT<c DATE>>": (
        [
            ('{"a":1,"b":{"c":"2024-01-02"}}', {"a": 1, "b": {"c": dt.date(2024, 1, 2)}}),
            ('{"a":1}', {"a": 1, "b": None}),
            ("{}", {"a": None, "b": None}),
        ],
        ['{"a":"x"}', '{"b":{"c":"2024-13-01"}}', "[]", "1"],
    ),
}


def test_json_values_by_type(spark: Any) -> None:
    kinds = {f"c{i}": kind for i, kind in enumerate(_TABLE)}
    cases: list[tuple[str, str, Any, bool]] = []
    for column, kind in kinds.items():
        taken, refused = _TABLE[kind]
        # In upper case the name is taken by the slow path, which must mean the same.
        for name in (column, column.upper()):
            cases += [(name, text, value, True) for text, value in taken]
            cases += [(name, text, None, False) for text in refused]
    rows = decoded(spark, [f'{{"{name}":{text}}}'.encode() for name, text, _, _ in cases], kinds, "json")
    wrong = []
    for (name, text, expected, good), (reason, *values) in zip(cases, rows, strict=True):
        column = name.lower()
        value = values[int(column[1:])]
        start = (
            "the value is not one JSON object"
            if text == "NaN"
            else f'column "{column}" is not of type {parse_type(kinds[column])}: '
        )
        fine = reason is None and value == expected if good else reason is not None and reason.startswith(start)
        if not fine:
            wrong.append(f"{kinds[column]} {name} {text}: {value!r}, {reason}")
    assert wrong == []


def test_reasons_of_json_records_word_for_word(spark: Any) -> None:
    cases: list[tuple[bytes | None, str | None]] = [
        (None, "the value is null"),
        (b'{"id":\xff}', "the value is not valid UTF-8"),
        (b"", "the value is not one JSON object"),
        (b"plain", "the value is not one JSON object"),
        (b'{"id":1', "the value is not one JSON object"),
        (b'[{"id":1}]', "the value is not one JSON object"),
        (b'{"id":1}{"id":2}', "the value is not one JSON object"),
        (b'{"id":1} trailing', "the value is not one JSON object"),
        (b"null", "the value is not one JSON object"),
        (b"{}", 'column "id" is null and must not be'),
        (b'{"id":null}', 'column "id" is null and must not be'),
        (b'{"id":1.7}', 'column "id" is not of type INTEGER: 1.7'),
        (b'{"id":"x"}', 'column "id" is not of type INTEGER: x'),
        (b'{"id":1,"s":"toolong"}', 'column "s" is not of type VARCHAR(5): toolong'),
        (b'{"id":1,"st":{"a":"x"}}', 'column "st" is not of type STRUCT<"a" INTEGER>: {"a":"x"}'),
        (b'{"ID":1,"Id":2}', 'column "id" is null and must not be'),  # which one is not to be guessed
        (b'{"ID":3,"unknown":{"a":[1]}}', None),
        (b' {"id":\n4}\n', None),
        (b'{"id":5,"ID":"x"}', None),  # the exact name goes first
        (b'{"id":6,"s":"}"}', None),
        (b'{"id":1,"s":"' + b"y" * 300 + b'"}', 'column "s" is not of type VARCHAR(5): ' + "y" * 200),
    ]
    kinds = {"id": "INTEGER", "s": "VARCHAR(5)", "st": "STRUCT<a INTEGER>"}
    rows = decoded(spark, [record for record, _ in cases], kinds, "json", not_null="id")
    assert [row[0] for row in rows] == [reason for _, reason in cases]
    assert [row[1] for row in rows if row[0] is None] == [3, 4, 5, 6]


def test_csv_fields_by_position(spark: Any) -> None:
    kinds = {"id": "INTEGER", "s": "VARCHAR", "n": "DECIMAL(10, 2)", "t": "TIMESTAMP", "a": "ARRAY<INTEGER>"}
    fields = "the value is not a CSV line of 5 fields"
    cases: list[tuple[bytes | None, tuple[Any, ...]]] = [
        (b"1,x,1.5,2024-05-17 10:11:12,[1]", (None, 1, "x", D("1.50"), dt.datetime(2024, 5, 17, 10, 11, 12), [1])),
        (b"2,,,,", (None, 2, None, None, None, None)),
        (b'3,"",,,', (None, 3, "", None, None, None)),
        (b'4,"a ""quoted"", b",,,', (None, 4, 'a "quoted", b', None, None, None)),
        (b"5, x ,,,", (None, 5, " x ", None, None, None)),
        (b'6,,,,"[1,null,2]"', (None, 6, None, None, None, [1, None, 2])),
        (b"+7,\xc3\xa9, 2 ,,", (None, 7, "é", D("2.00"), None, None)),
        (b"8,a\\b,,,", (None, 8, "a\\b", None, None, None)),
        (None, ("the value is null", *[None] * 5)),
        (b"\xff,,,,", ("the value is not valid UTF-8", *[None] * 5)),
        (b"9,x", (fields, *[None] * 5)),
        (b"9,x,1,,[1],more", (fields, *[None] * 5)),
        (b"1.5,,,,", ('column "id" is not of type INTEGER: 1.5', *[None] * 5)),
        (b",,,,", ('column "id" is null and must not be', *[None] * 5)),
        (b"1,x,1.005,,", ('column "n" is not of type DECIMAL(10, 2): 1.005', *[None] * 5)),
        (b"1,x,,2024-02-30 00:00:00,", ('column "t" is not of type TIMESTAMP: 2024-02-30 00:00:00', *[None] * 5)),
        (b'1,x,,,"[1,""x""]"', ('column "a" is not of type ARRAY<INTEGER>: [1,"x"]', *[None] * 5)),
    ]
    rows = decoded(spark, [record for record, _ in cases], kinds, "csv", not_null="id")
    for row, (record, expected) in zip(rows, cases, strict=True):
        assert (row if expected[0] is None else row[0]) == (expected if expected[0] is None else expected[0]), record


def test_a_trial_takes_what_the_whole_program_takes_and_asks_for_it_else(spark: Any) -> None:
    import pyarrow as pa

    from mvserver.streaming.spark.types import spark_type
    from spark_sinks.decode import DecodeColumn, decode

    columns = [
        DecodeColumn("i", spark_type(parse_type("INTEGER")), "INTEGER"),
        DecodeColumn("st", spark_type(parse_type("STRUCT<a INTEGER>")), "ST"),
    ]
    cases = [
        (b'{"i":1,"st":{"a":1}}', True), (b'{"i":1,"st":{"a":null}}', True), (b'{"i":1,"st":{"a":1},"more":{}}', True),
        (b'{"i":null,"st":{"a":1}}', True), (b'{"st":{"a":1}}', True), (b'{"i":1,"st":null}', True), (b"{}", True),
        (b'{"I":null,"st":{"a":1}}', False), (b'{"i":1,"St":null}', False), (b'{"\\u0069":1,"st":{}}', False),
        (b'{"i":1,"st":{"A":null}}', False), (b"[]", False), (b"null", False), (b"1", False), (b"[{}]", False),
        (b'{"i":"1","st":{"a":1}}', False), (b'{"I":1,"st":{"a":1}}', False),
        (b'{"i":1,"st":{"a":"x"}}', False), (b'{"i":1,"st":{"a":1}}{}', False), (b"\xff", False), (b"", False),
    ]  # fmt: skip
    trial = decode("json", columns, "value", "d_", trial=True)
    assert trial.reason is None
    frame = spark.createDataFrame(pa.table({"n": list(range(len(cases))), "value": [record for record, _ in cases]}))
    for stage in trial.stages:
        frame = frame.selectExpr("*", *stage)
    found = frame.selectExpr("n", f"{trial.good} AS good").toArrow().sort_by("n").column("good").to_pylist()
    assert found == [good for _, good in cases]


SPELLED = [
    (b'{"orderId":1,"st":{"a":1}}', (1, {"a": 1}), True),
    (b'{"orderid":1,"st":{"a":1}}', (1, {"a": 1}), True),
    (b'{"ORDERID":1,"st":{"a":1}}', (1, {"a": 1}), False),
    (b'{"orderid":1,"orderId":2,"st":{"a":1}}', (1, {"a": 1}), True),  # the exact name first
    (b'{"orderid":null,"orderId":2,"st":{"a":1}}', (2, {"a": 1}), True),
    (b'{"orderid":1,"orderId":null,"st":{"a":1}}', (1, {"a": 1}), True),
    (b'{"orderid":null,"ORDERID":2,"st":{"a":1}}', (None, {"a": 1}), False),
    (b'{"orderId":null,"OrderId":2,"st":{"a":1}}', (None, {"a": 1}), False),
    (b'{"OrderId":1,"ORDERID":2,"st":{"a":1}}', (None, {"a": 1}), False),
    (b'{"orderId":"3","St":{"a":1}}', (3, {"a": 1}), False),
    (b'{"orderid":"x","orderId":2,"st":{"a":1}}', 'column "orderid" is not of type INTEGER: x', False),
    (b'{"orderid":2,"orderId":"x","st":{"a":1}}', (2, {"a": 1}), False),
    (b'{"orderId":1.0,"ST":{"a":"x"}}', 'column "st" is not of type STRUCT<"a" INTEGER>: {"a":"x"}', False),
]


def test_a_field_spelled_as_in_the_declaration_needs_no_search(spark: Any) -> None:
    import pyarrow as pa

    from mvserver.streaming.spark.types import spark_type
    from spark_sinks.decode import DecodeColumn, decode

    kinds = {"orderid": ("INTEGER", "orderId"), "st": ("STRUCT<a INTEGER>", "ST")}
    columns = [
        DecodeColumn(name, spark_type(parse_type(kind)), str(parse_type(kind)), spelling=spelling)
        for name, (kind, spelling) in kinds.items()
    ]
    records = pa.table({"n": list(range(len(SPELLED))), "value": [record for record, _, _ in SPELLED]})
    for trial in (False, True):
        program = decode("json", columns, "value", "d_", trial=trial)
        frame = spark.createDataFrame(records)
        for stage in program.stages:
            frame = frame.selectExpr("*", *stage)
        values = [f"{reference} AS o{i}" for i, (_, reference) in enumerate(program.columns)]
        rows = frame.selectExpr(
            "n", f"{program.good} AS good", f"{program.reason or 'NULL'} AS reason", *values
        ).toArrow()
        for (record, wanted, quick), row in zip(SPELLED, rows.sort_by("n").to_pylist(), strict=True):
            if trial:
                assert row["good"] is quick, record
            if quick or not trial:
                assert (row["reason"] or (row["o0"], row["o1"])) == wanted, record


def test_columns_whose_names_differ_in_case_alone(spark: Any) -> None:
    """A field of exactly the name of one is that one's alone."""
    records = [b'{"a":1,"A":2}', b'{"a":1}', b'{"A":2}']
    rows = decoded(spark, records, {"a": "INTEGER", "A": "INTEGER"}, "json")
    assert rows == [(None, 1, 2), (None, 1, None), (None, None, 2)]
