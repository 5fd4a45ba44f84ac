"""Values of every type at its edges, written by queries in every format, and read back: they are what they were.

The oracle is the value that the record of the source was written by, as Python has it.
"""

from __future__ import annotations

import base64
import datetime as dt
import io
import json
import math
from collections.abc import Callable
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from pyspark.errors import PySparkException

from mvserver.compiler.failures import translate
from mvserver.compiler.plans import Output
from mvserver.errors import SqlError
from mvserver.sql.types import parse_type
from mvserver.streaming.batch.evaluate import _normal
from mvserver.streaming.batch.program import ViewInput
from mvserver.streaming.batch.record_encoding import RecordEncoder
from mvserver.streaming.queries.record_form import RecordForm, WritingRecords
from mvserver.streaming.spark.record_functions import register
from mvserver.streaming.spark.types import decode_column
from spark_sinks.decode import decode, format_of
from spark_sinks.duckdb.changes.outbox import Pending
from spark_sinks.encode.avro_form import avro_form
from spark_sinks.encode.json_form import json_form
from spark_sinks.encode.protobuf_form import protobuf_form
from spark_sinks.file.forms import form_of
from spark_sinks.schema_registry.base import NO_SCHEMAS, KnownSchemas, RegisteredSchema
from spark_sinks.schema_registry.protobuf import prepared

pytestmark = pytest.mark.spark

D, UTC = Decimal, dt.UTC
_NINES = "9" * 38
_MOMENTS = [
    dt.datetime(1, 1, 1), dt.datetime(1500, 2, 28, 0, 0, 0, 1), dt.datetime(1582, 10, 10, 12),
    dt.datetime(1883, 11, 18, 12), dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(2024, 3, 10, 2, 30),
    dt.datetime(2024, 11, 3, 1, 30, 0, 123456), dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
]  # fmt: skip
_TEXTS = ["", "NULL", "null", "\\N", " a ", 'say "x"', "it's", "b\\", "a,b;c\td", "ä€𝄞👩\u200d👧", "e\u0301",
          "\u2028\x85\u00a0", "\ufeffx", "NaN", "true", "1.50", "{}", "[1]", "#c", "\ufffd",
          "x" * 70_000, "<a>&amp;</a>", "a\nb", "a\r\nb", "\r", "\t"]  # fmt: skip
_RAW = [b"", b"\0", bytes(range(256)), b"\\x41", b"abc", b"x" * 100]
_DAYS = [moment.date() for moment in _MOMENTS]
_TIMES = [dt.time(0), dt.time(23, 59, 59, 999999), dt.time(12, 0, 0, 1), dt.time(12, 34, 56, 100000)]
_FLOAT_MAX, _FLOAT_MIN = 3.4028234663852886e38, 1.401298464324817e-45
SCALARS: dict[str, list[Any]] = {
    "BOOLEAN": [True, False],
    "TINYINT": [-128, 0, 127],
    "SMALLINT": [-(2**15), 0, 2**15 - 1],
    "INTEGER": [-(2**31), 0, 2**31 - 1],
    "BIGINT": [-(2**63), 0, 2**63 - 1, 2**53 + 1],
    "FLOAT": [0.10000000149011612, -0.0, 0.0, _FLOAT_MIN, _FLOAT_MAX, -_FLOAT_MAX, 16777216.0, math.nan, math.inf,
              -math.inf],
    "DOUBLE": [0.1, -0.0, 5e-324, 1.7976931348623157e308, 0.30000000000000004, 2.0**53, 1e15, 1e16, 1e23, 100.0,
               math.nan, math.inf, -math.inf],
    "DECIMAL(38, 0)": [D(_NINES), D("-" + _NINES), D(0)],
    "DECIMAL(38, 18)": [D(f"{_NINES[:20]}.{_NINES[20:]}"), D("-0.000000000000000001"), D("0E-18"),
                        D("1.500000000000000000")],
    "DECIMAL(38, 38)": [D(f"0.{_NINES}"), D(f"-0.{'0' * 37}1"), D("0E-38")],
    "VARCHAR": _TEXTS,
    "VARBINARY": _RAW,
    "DATE": _DAYS,
    "TIME": _TIMES,
    "TIMESTAMP": _MOMENTS,
    "TIMESTAMP_LTZ": [moment.replace(tzinfo=UTC) for moment in _MOMENTS],
}  # fmt: skip
NESTED: dict[str, list[Any]] = {
    "ARRAY<DOUBLE>": [[], [0.1, None, math.nan, -math.inf, -0.0]],
    "ARRAY<FLOAT>": [[_FLOAT_MAX, math.nan]],
    "ARRAY<VARCHAR>": [["", None, "NULL", 'a"b', "👩"], [None]],
    "ARRAY<VARBINARY>": [[b"\0\xff", b"", None]],
    "ARRAY<DECIMAL(38, 10)>": [[D("1.5000000000"), None, D(f"-{_NINES[:28]}.{_NINES[28:]}")]],
    "ARRAY<TIMESTAMP>": [[*_MOMENTS, None]],
    "ARRAY<TIMESTAMP_LTZ>": [[moment.replace(tzinfo=UTC) for moment in _MOMENTS]],
    "ARRAY<DATE>": [[*_DAYS, None]],
    "ARRAY<ARRAY<INTEGER>>": [[[1, None], [], None]],
    "MAP<VARCHAR, BIGINT>": [{}, {"a": 1, "": None, 'q"\n': 2**63 - 1}],
    "STRUCT<i BIGINT, v VARCHAR, d DECIMAL(38, 10), f DOUBLE, n STRUCT<q INTEGER>>": [
        {"i": 2**63 - 1, "v": "", "d": D("0.0000000001"), "f": math.nan, "n": {"q": None}},
        {"i": None, "v": None, "d": None, "f": None, "n": None},
    ],
    "STRUCT<d DATE, ts TIMESTAMP, tz TIMESTAMP_LTZ, x VARBINARY>": [
        {"d": _DAYS[0], "ts": _MOMENTS[1], "tz": _MOMENTS[4].replace(tzinfo=UTC), "x": b"\0\xff"}
    ],
    "ARRAY<TIME>": [[*_TIMES, None]],
    "MAP<VARCHAR, TIME>": [{"a": _TIMES[1]}],
}
KEYS: dict[str, list[Any]] = {
    "MAP<INTEGER, VARCHAR>": [{1: "x", -2: None}],
    "MAP<BOOLEAN, INTEGER>": [{True: 1}],
    "MAP<DOUBLE, INTEGER>": [{0.1: 1, math.inf: 2}],
    "MAP<DECIMAL(38, 18), INTEGER>": [{D("1.500000000000000000"): 1}],
    "MAP<DATE, INTEGER>": [{dt.date(2024, 1, 31): 1, dt.date(1, 1, 1): 2}],
    "MAP<TIME, INTEGER>": [{time: at for at, time in enumerate(_TIMES)}],
    "MAP<TIMESTAMP, INTEGER>": [{moment: at for at, moment in enumerate(_MOMENTS)}],
    "MAP<TIMESTAMP_LTZ, INTEGER>": [{moment.replace(tzinfo=UTC): at for at, moment in enumerate(_MOMENTS)}],
    "MAP<VARBINARY, INTEGER>": [{b"\0\xff": 1, b"": 2, b"x" * 100: 3}],
    "ARRAY<MAP<DATE, MAP<VARBINARY, TIME>>>": [[{dt.date(2024, 1, 31): {b"\xff": _TIMES[1]}}, None, {}]],
    "STRUCT<m MAP<DATE, INTEGER>>": [{"m": {dt.date(2024, 1, 31): 1}}, {"m": None}],
}  # fmt: skip
GROUPS = {"scalars": SCALARS, "nested": NESTED, "keys": KEYS}
_NOT_IN_ORC = ("TIME", "ARRAY<TIME", "MAP<VARCHAR, TIME>", "STRUCT<d DATE, ts")  # its times are a matter of their own
WHERE: list[tuple[str, str, Callable[[str], bool]]] = [
    *((format_, "scalars", lambda kind: True) for format_ in ("json", "csv", "delimited", "xml", "avro", "parquet")),
    ("xml", "nested", lambda kind: kind.startswith("ARRAY") and not kind.startswith("ARRAY<ARRAY")),
    *((format_, "nested", lambda kind: True) for format_ in ("json", "json_schema", "avro", "parquet")),
    *((format_, "keys", lambda kind: True) for format_ in ("json", "json_schema")),
    ("protobuf", "scalars", lambda kind: kind not in ("DATE", "TIME") and not kind.startswith("DECIMAL")),
    ("protobuf", "nested", lambda kind: kind == "ARRAY<FLOAT>"),
    ("orc", "scalars", lambda kind: not kind.startswith(_NOT_IN_ORC)),
    ("orc", "nested", lambda kind: not kind.startswith(_NOT_IN_ORC)),
]


def as_json(value: Any) -> Any:
    """A value of Python as the records of the source have it; decimals go by way of a mark, since JSON has floats."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dt.datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, list):
        return [as_json(each) for each in value]
    if isinstance(value, dict):
        return {key if isinstance(key, str) else _key(key): as_json(each) for key, each in value.items()}
    return value


def _key(value: Any) -> str:
    made = as_json(value)
    return made if isinstance(made, str) else json.dumps(made)


def rows_of(values: dict[str, list[Any]]) -> list[tuple[Any, ...]]:
    """The first value of each column, the second ...; then a row of NULLs."""
    most = max(map(len, values.values()))
    return [tuple(each[at] if at < len(each) else None for each in values.values()) for at in range(most + 1)]


def columns_of(values: dict[str, list[Any]]) -> dict[str, str]:
    return {f"c{at}": kind for at, kind in enumerate(values)}


def read(
    spark: Any, columns: dict[str, str], format_: str, records: list[bytes], schemas: KnownSchemas | None = None
) -> Any:
    """The frame of the records' columns, by their number, and the reasons of those that are rejected."""
    made = [decode_column(name, kind, False) for name, kind in columns.items()]
    delimiter = ";" if format_ == "delimited" else None
    program = decode(format_, made, "value", "d_", delimiter=delimiter, schemas=schemas or NO_SCHEMAS)
    register(spark, program.functions)
    frame = spark.createDataFrame(list(enumerate(records)), "n int, value binary")
    for stage in program.stages:
        frame = frame.selectExpr("*", *stage)
    named = [f"{reference} AS {name}" for name, reference in program.columns]
    return frame.selectExpr("n", f"{program.reason} AS reason", *named)


def values_in(frame: Any, columns: dict[str, str]) -> list[tuple[Any, ...]]:
    rows = _normal(frame.toArrow()).sort_by("n").to_pylist()
    assert [row["reason"] for row in rows] == [None] * len(rows)
    return [tuple(row[name] for name in columns) for row in rows]


def written(frame: Any, columns: dict[str, str]) -> list[bytes]:
    """The JSON of rows, as queries make it."""
    types = {name: parse_type(kind) for name, kind in columns.items()}
    nothing: Any = None
    view = ViewInput(nothing, "flag", outputs=tuple(columns))
    expression: Any = None
    plan: Any = SimpleNamespace(outputs=tuple(Output(name, kind, expression) for name, kind in types.items()))
    form = RecordForm(nothing, RecordEncoder(types, (), "json"))
    value = next(each for each in form.selected(view, plan) if each.endswith("AS sink_value"))
    rows = frame.selectExpr("n", "*", "true AS flag").selectExpr("n", value).sort("n").collect()
    return [bytes(row["sink_value"]) for row in rows]


def encoded(format_: str, columns: dict[str, str], rows: list[bytes]) -> tuple[list[bytes], KnownSchemas | None]:
    made = [decode_column(name, kind, False) for name, kind in columns.items()]
    forms = {"avro": avro_form, "protobuf": protobuf_form, "json_schema": json_form}
    if format_ == "json":
        return rows, None
    if format_ in forms:
        form = forms[format_]("out", made, None)
        schema = RegisteredSchema(1, form.kind, form.schema)
        known = KnownSchemas(1, (prepared(schema) if format_ == "protobuf" else schema,), ())
        return [b"\0\0\0\0\1" + form.encode(row) for row in rows], known
    make = format_of(format_).encoder
    assert make is not None
    encode = make(made, ";" if format_ == "delimited" else ",")
    return [encode(row) for row in rows], None


def normal(kind: str, value: Any) -> Any:
    """Comparable: NaN is itself, a zero has its sign, maps have no order."""
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, list | tuple) and kind.startswith("MAP"):
        value = dict(value)
    if isinstance(value, list):
        pairs = all(isinstance(each, tuple) and len(each) == 2 for each in value) and bool(value)
        return (
            sorted((repr(normal("", k)), normal("", v)) for k, v in value) if pairs else [normal("", v) for v in value]
        )
    if isinstance(value, dict):
        return sorted((repr(normal("", k)), normal("", v)) for k, v in value.items())
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).isoformat()
    return value


_made: dict[str, list[bytes]] = {}


def rows_in_json(spark: Any, group: str) -> list[bytes]:
    """What queries make of the group's rows before the format of the sink, which is the same for all."""
    if group not in _made:
        values = GROUPS[group]
        columns = columns_of(values)
        source = [
            json.dumps({name: as_json(value) for name, value in zip(columns, row, strict=True)}).encode()
            for row in rows_of(values)
        ]
        _made[group] = written(read(spark, columns, "json", source), columns)
    return _made[group]


@pytest.mark.parametrize(("format_", "group", "fits"), WHERE, ids=[f"{each[0]}-{each[1]}" for each in WHERE])
def test_what_is_written_is_read_back(spark: Any, format_: str, group: str, fits: Callable[[str], bool]) -> None:
    rows = rows_in_json(spark, group)
    columns = {name: kind for name, kind in columns_of(GROUPS[group]).items() if fits(kind)}
    wanted = rows_of({kind: values for kind, values in GROUPS[group].items() if fits(kind)})
    rows = rows[: len(wanted) - 1] + rows[-1:]  # fewer columns have fewer values, and a row of NULLs behind them
    if format_ in ("parquet", "orc"):
        made = [decode_column(name, kind, False) for name, kind in columns.items()]
        file = io.BytesIO(b"".join(form_of(format_, made).content(rows)))
        table = pq.read_table(file) if format_ == "parquet" else orc.ORCFile(file).read()
        found = [tuple(row[name] for name in columns) for row in table.to_pylist()]
    else:
        records, schemas = encoded(format_, columns, rows)
        found = values_in(read(spark, columns, format_, records, schemas), columns)
    assert len(found) == len(wanted)
    empty = {"xml": ("ARRAY",), "protobuf": ("ARRAY", "MAP")}.get(format_, ())
    for kind, was, now in zip(columns.values(), zip(*wanted, strict=True), zip(*found, strict=True), strict=True):
        pairs = [(normal(kind, a), normal(kind, b)) for a, b in zip(was, now, strict=True)]
        if kind.startswith(empty):  # which do not tell an empty one from NULL, as their documents say
            pairs = [(a or None, b or None) for a, b in pairs]
        assert [b for _, b in pairs] == [a for a, _ in pairs], (format_, kind)


@pytest.mark.parametrize("group", GROUPS)
def test_rows_of_an_outbox_are_read_back(spark: Any, group: str) -> None:
    """Those are made by Python, of rows as DuckDB gives them."""
    columns, wanted = columns_of(GROUPS[group]), rows_of(GROUPS[group])
    encoder = RecordEncoder({name: parse_type(kind) for name, kind in columns.items()}, (), "json")
    records = [encoder.value_of(dict(zip(columns, row, strict=True))) for row in wanted]
    found = values_in(read(spark, columns, "json", records), columns)
    for kind, was, now in zip(columns.values(), zip(*wanted, strict=True), zip(*found, strict=True), strict=True):
        assert [normal(kind, each) for each in now] == [normal(kind, each) for each in was], kind


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("DATE", "DATE '-0043-03-15'"), ("DATE", "DATE '+10000-01-01'"),
        ("TIMESTAMP", "TIMESTAMP_NTZ '-0043-03-15 12:00:00'"), ("TIMESTAMP", "TIMESTAMP_NTZ '+10000-01-01 00:00:00'"),
        ("TIMESTAMP_LTZ", "TIMESTAMP_LTZ '0000-12-31 23:59:59.999999Z'"),
        ("ARRAY<DATE>", "array(NULL, DATE '-0043-03-15')"), ("MAP<DATE, INTEGER>", "map(DATE '+10000-01-01', 1)"),
        ("STRUCT<d TIMESTAMP_LTZ>", "named_struct('d', TIMESTAMP_LTZ '+10000-01-01 00:00:00Z')"),
    ],
)  # fmt: skip
def test_years_that_no_record_holds_are_an_error(spark: Any, kind: str, value: str) -> None:
    """They would be read as those of another era, or rejected."""
    frame = spark.sql(f"SELECT 1 AS n, {value} AS c")
    with pytest.raises(PySparkException) as raised:
        written(frame, {"c": kind})
    found = translate(raised.value.getCondition(), str(raised.value))
    assert found is not None
    assert (found.sqlstate, found.message.endswith("a record holds years from 1 to 9999")) == ("22008", True)


def test_years_that_no_record_holds_are_an_error_of_an_outbox() -> None:
    rows = pa.table({"d": pa.array([-735_000], pa.date32())})
    sink: Any = None
    writing = WritingRecords(sink, RecordEncoder({"d": parse_type("DATE")}, (), "json"))
    with pytest.raises(SqlError, match="a record holds years from 1 to 9999") as raised:
        writing.send(Pending(1, (1,), (False,), rows), "incarnation")
    assert raised.value.sqlstate == "22008"
