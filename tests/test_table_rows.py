"""Rows that INSERT INTO ENTITY gives tables: each value as it is written, or an error that names its column."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from mvserver.errors import SqlError
from spark_sinks.base import TableShape
from spark_sinks.table_rows import object_of, row_of, text_of
from tests.databricks.places import Workspace
from tests.databricks.unity_server import serving
from tests.iceberg.places import Lake

ALL = pa.schema(
    [
        pa.field("k", pa.int32(), False),
        ("b", pa.bool_()),
        ("d", pa.decimal128(38, 20)),
        ("f", pa.float64()),
        ("s", pa.string()),
        ("y", pa.binary()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us")),
        ("z", pa.timestamp("us", "UTC")),
        ("a", pa.list_(pa.int64())),
        ("m", pa.map_(pa.string(), pa.int32())),
        ("r", pa.struct([("x", pa.int32()), ("y", pa.string())])),
    ]
)
GIVEN = """{"K": 1, "b": true, "d": 123456789012345678.10000000000000000001, "f": 1e300, "s": "é", "y": "/wA=",
    "day": "2024-05-17", "at": "2024-05-17T01:02:03.000004", "z": "2024-05-17 03:02:03+02:00", "a": [1, null],
    "m": {"p": 2}, "r": {"y": "q"}}"""
WANTED: dict[str, Any] = {
    "k": 1,
    "b": True,
    "d": Decimal("123456789012345678.10000000000000000001"),
    "f": 1e300,
    "s": "é",
    "y": b"\xff\x00",
    "day": dt.date(2024, 5, 17),
    "at": dt.datetime(2024, 5, 17, 1, 2, 3, 4),
    "z": dt.datetime(2024, 5, 17, 1, 2, 3, tzinfo=dt.UTC),
    "a": [1, None],
    "m": [("p", 2)],
    "r": {"x": None, "y": "q"},
}


def made(value: str, schema: pa.Schema = ALL) -> dict[str, Any]:
    (row,) = row_of("e", object_of("e", value, None, {}), schema).to_pylist()
    return dict(row)


def test_values_of_each_type() -> None:
    assert made(GIVEN) == WANTED
    assert math.isnan(made('{"k": -1, "f": "NaN"}')["f"])
    assert made('{"k": 0}') == {name: 0 if name == "k" else None for name in ALL.names}


@pytest.mark.parametrize("value", [GIVEN, '{"k": 0}', '{"k": 1, "f": "-Infinity", "m": {}, "a": [], "d": 1e-19}'])
def test_what_is_shown_of_a_row_can_be_inserted(value: str) -> None:
    table = row_of("e", object_of("e", value, None, {}), ALL)
    (row,) = table.to_pylist(maps_as_pydicts="lossy")
    text = text_of(row)
    assert json.loads(text)["k"] == row["k"]
    assert row_of("e", object_of("e", text, None, {}), ALL) == table


def test_what_is_shown_of_a_row() -> None:
    (row,) = row_of("e", object_of("e", GIVEN, None, {}), ALL).to_pylist(maps_as_pydicts="lossy")
    assert text_of(row) == (
        '{"k": 1, "b": true, "d": 123456789012345678.10000000000000000001, "f": 1e+300, "s": "é", "y": "/wA=", '
        '"day": "2024-05-17", "at": "2024-05-17 01:02:03.000004", "z": "2024-05-17 01:02:03+00:00", "a": [1, null], '
        '"m": {"p": 2}, "r": {"x": null, "y": "q"}}'
    )
    assert text_of([math.nan, math.inf, Decimal("NaN"), '"', 0.1]) == '["NaN", "Infinity", "NaN", "\\"", 0.1]'


@pytest.mark.parametrize(
    ("kind", "given", "wanted"),
    [
        (pa.float64(), "1e400", None),  # which would be infinite
        (pa.float64(), "-1e-400", None),  # and this zero
        (pa.float64(), "5e-324", 5e-324),
        (pa.float64(), "-0.0", -0.0),
        (pa.float32(), "1e39", None),
        (pa.float32(), "1e-50", None),
        (pa.float32(), "3.4028235e38", 3.4028234663852886e38),
        (pa.time64("us"), '"12:00+01:00"', None),
        (pa.time64("us"), '"12:00:00.1234567"', None),
        (pa.time64("us"), '"12:00:00.1234560"', dt.time(12, 0, 0, 123456)),
        (pa.timestamp("us"), '"2024-05-17 00:00:00.1234567"', None),
        (pa.timestamp("us", "UTC"), '"2024-05-17 00:00:00.1234567Z"', None),
        (pa.timestamp("us", "UTC"), '"0001-01-01 00:00:00.000001Z"', dt.datetime(1, 1, 1, 0, 0, 0, 1, dt.UTC)),
    ],
)
def test_a_value_is_not_rounded_to_another(kind: pa.DataType, given: str, wanted: Any) -> None:
    schema = pa.schema([("v", kind)])
    if wanted is not None:
        assert repr(made(f'{{"v": {given}}}', schema)["v"]) == repr(pa.scalar(wanted, kind).as_py())
        return
    with pytest.raises(SqlError) as caught:
        made(f'{{"v": {given}}}', schema)
    assert (caught.value.sqlstate, caught.value.message) == (
        "22P02",
        f'the value of column "v" is none of its type {kind}',
    )


@pytest.mark.parametrize(
    ("value", "sqlstate", "message"),
    [
        ("{}", "23502", 'null value in column "k" of entity "e" is not allowed'),
        ('{"k": 3000000000}', "22P02", 'the value of column "k" is none of its type int32'),
        ('{"k": 1.5}', "22P02", 'the value of column "k" is none of its type int32'),
        ('{"k": true}', "22P02", 'the value of column "k" is none of its type int32'),
        ('{"k": "1"}', "22P02", 'the value of column "k" is none of its type int32'),
        ('{"k": 1, "b": 0}', "22P02", 'the value of column "b" is none of its type bool'),
        ('{"k": 1, "d": 0.000000000000000000001}', "22P02", None),
        ('{"k": 1, "d": 1234567890123456789}', "22P02", None),
        ('{"k": 1, "f": "1"}', "22P02", None),
        ('{"k": 1, "s": 1}', "22P02", None),
        ('{"k": 1, "y": "?"}', "22P02", None),
        ('{"k": 1, "day": "17.5.2024"}', "22P02", None),
        ('{"k": 1, "at": "2024-05-17 01:02:03Z"}', "22P02", None),
        ('{"k": 1, "z": "2024-05-17 01:02:03"}', "22P02", None),
        ('{"k": 1, "a": {}}', "22P02", None),
        ('{"k": 1, "r": {"z": 1}}', "22P02", None),
        ('{"k": 1, "none": 1}', "42703", 'entity "e" has no column "none"'),
        ('{"k": 1, "K": 1}', "42701", 'column "k" specified more than once'),
        ('{"k": NaN}', "22P02", 'the value is no row of entity "e"'),
        ("[]", "22P02", 'the value is no row of entity "e"'),
        ("{", "22P02", 'the value is no row of entity "e"'),
    ],
)
def test_what_is_no_row(value: str, sqlstate: str, message: str | None) -> None:
    with pytest.raises(SqlError) as refused:
        made(value)
    assert refused.value.sqlstate == sqlstate
    assert message in (None, refused.value.message)


def test_a_row_has_no_key() -> None:
    for key, properties in (("k", {}), (None, {"a": 1})):
        with pytest.raises(SqlError, match="0A000"):
            object_of("e", "{}", key, properties)


def test_rows_of_iceberg(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    shape = TableShape(pa.schema([field for field in ALL if field.name != "m"]))
    lake.client.create_table("web.t", shape, {})
    lake.client.insert_record("web.t", GIVEN.replace('"m": {"p": 2}, ', ""), None, {})
    lake.client.insert_record("web.t", '{"k": 2}', None, {})
    assert sorted(lake.rows("web.t"), key=lambda row: row["k"])[0] == {k: v for k, v in WANTED.items() if k != "m"}
    with pytest.raises(SqlError) as refused:
        lake.client.insert_record("web.none", '{"k": 2}', None, {})
    assert refused.value.sqlstate == "42704"


def test_rows_of_databricks(tmp_path: Path) -> None:
    with serving() as unity:
        workspace = Workspace(unity, tmp_path)
        workspace.client.create_table("main.web.t", TableShape(ALL), {})
        workspace.client.insert_record("main.web.t", GIVEN, None, {})
        workspace.client.insert_record("main.web.t", '{"k": 2}', None, {})
        rows = sorted(workspace.rows("main.web.t"), key=lambda row: row["k"])
        assert (rows[0], rows[1]["s"]) == (WANTED, None)
        unity.add("main.web.m", "s3://databricks/t", type_="MANAGED")
        with pytest.raises(SqlError, match="0A000"):
            workspace.client.insert_record("main.web.m", '{"k": 2}', None, {})
