"""Every type's text and binary form against what a real PostgreSQL 15 wrote (record_encodings.py)."""

from __future__ import annotations

import json
import struct
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from mvserver.front import Field
from mvserver.pgwire.rows import RowFramer
from mvserver.types import arrays, clock, datetimes, numeric
from mvserver.types.registry import decode_parameter, encoder

DAYS, STAMPS = clock.UNIX_TO_2000_DAYS, clock.UNIX_TO_2000_US


class Case:
    def __init__(self, row: list[Any]) -> None:
        self.type, self.oid, self.typmod, self.zone, self.literal, self.text, hexed = row
        self.binary = bytes.fromhex(hexed)


CASES = [Case(row) for row in json.loads((Path(__file__).parent / "pg15_encodings.json").read_text())]
GROUPS: dict[tuple[str, str], list[Case]] = defaultdict(list)
for case in CASES:
    GROUPS[case.type, case.zone].append(case)


def date_days(raw: bytes) -> int:
    (days,) = struct.unpack("!i", raw)
    if days == clock.PG_DATE_INFINITY:
        return clock.DATE_INFINITY
    return clock.DATE_MINUS_INFINITY if days == clock.PG_DATE_MINUS_INFINITY else days + DAYS


def stamp_us(raw: bytes) -> int:
    (count,) = struct.unpack("!q", raw)
    if count == clock.PG_STAMP_INFINITY:
        return clock.STAMP_INFINITY
    return clock.STAMP_MINUS_INFINITY if count == clock.PG_STAMP_MINUS_INFINITY else count + STAMPS


def of(code: str, arrow: pa.DataType) -> Any:
    return lambda cases: pa.array([struct.unpack(code, c.binary)[0] for c in cases], arrow)


def intervals(cases: list[Case]) -> pa.Array:
    parts = [struct.unpack("!qii", c.binary) for c in cases]
    return pa.array([(months, days, us * 1000) for us, days, months in parts], pa.month_day_nano_interval())


def decimals(precision: int, scale: int) -> Any:
    return lambda cases: pa.array([Decimal(c.text) for c in cases], pa.decimal128(precision, scale))


def texts(cases: list[Case]) -> pa.Array:
    return pa.array([c.text for c in cases], pa.string())


BUILD: dict[str, Any] = {
    "bool": lambda cases: pa.array([c.text == "t" for c in cases]),
    "int2": of("!h", pa.int16()), "int4": of("!i", pa.int32()), "int8": of("!q", pa.int64()),
    "oid": of("!I", pa.uint32()), "float4": of("!f", pa.float32()), "float8": of("!d", pa.float64()),
    "numeric(10,2)": decimals(10, 2), "numeric(38,18)": decimals(38, 18),
    "text": texts, "varchar": texts, "name": texts, "uuid": texts, "json": texts, "jsonb": texts,
    "bpchar(4)": lambda cases: pa.array([c.literal for c in cases]),
    "bytea": lambda cases: pa.array([c.binary for c in cases], pa.binary()),
    "date": lambda cases: pa.array([date_days(c.binary) for c in cases], pa.int32()).view(pa.date32()),
    "time": lambda cases: pa.array([struct.unpack("!q", c.binary)[0] for c in cases], pa.int64()).view(pa.time64("us")),
    "timestamp": lambda cases: pa.array([stamp_us(c.binary) for c in cases], pa.int64()).view(pa.timestamp("us")),
    "timestamptz": lambda cases: pa.array([stamp_us(c.binary) for c in cases], pa.int64()).view(
        pa.timestamp("us", "Etc/UTC")
    ),
    "interval": intervals,
}  # fmt: skip


def same_with_nulls(make: Any, column: pa.Array, expected: list[bytes]) -> None:
    """In bulk, by hand, sliced, with NULLs around, and all NULL."""
    assert make.column(column).to_pylist() == expected
    assert make.cells(column) == expected
    gaps = pa.concat_arrays([pa.nulls(1, column.type), column, pa.nulls(2, column.type)])
    assert make.column(gaps).to_pylist() == [None, *expected, None, None]
    assert make.cells(gaps) == [None, *expected, None, None]
    middle = gaps.slice(1, len(column) + 1)
    assert make.column(middle).to_pylist() == [*expected, None]
    assert make.cells(middle) == [*expected, None]
    assert make.column(pa.nulls(3, column.type)).to_pylist() == [None] * 3
    assert make.column(column.slice(0, 0)).to_pylist() == []


@pytest.mark.parametrize(("name", "zone"), [key for key in GROUPS if key[0] in BUILD])
def test_columns_are_written_as_postgresql_writes_them(name: str, zone: str) -> None:
    cases = GROUPS[name, zone]
    column = BUILD[name](cases)
    text = encoder(cases[0].oid, cases[0].typmod, 0, column.type, zone)
    same_with_nulls(text, column, [c.text.encode() for c in cases])
    if name == "jsonb":  # kept as it was written, not normalised: only the version byte is added
        binary = encoder(cases[0].oid, -1, 1, column.type, zone)
        assert binary.column(column).to_pylist() == [b"\x01" + c.text.encode() for c in cases]
        return
    binary = encoder(cases[0].oid, cases[0].typmod, 1, column.type, zone)
    same_with_nulls(binary, column, [c.binary for c in cases])


@pytest.mark.parametrize("case", GROUPS["numeric", "UTC"], ids=lambda c: c.literal)
def test_numerics_of_every_scale(case: Case) -> None:
    value = Decimal(case.text)
    scale = max(0, -int(value.as_tuple().exponent))
    column = pa.array([value], pa.decimal128(38, scale))
    for form, expected in ((0, case.text.encode()), (1, case.binary)):
        same_with_nulls(encoder(case.oid, -1, form, column.type, "UTC"), column, [expected])


ELEMENTS = {
    "int4": pa.int32(), "int8": pa.int64(), "bool": pa.bool_(), "float8": pa.float64(), "text": pa.string(),
    "numeric": pa.decimal128(38, 2), "date": pa.date32(), "timestamp": pa.timestamp("us"), "uuid": pa.string(),
    "timestamptz": pa.timestamp("us", "UTC"), "bytea": pa.binary(), "time": pa.time64("us"), "jsonb": pa.string(),
}  # fmt: skip
ARRAYS = [c for c in CASES if c.type.endswith("[]") and c.type[:-2] in ELEMENTS]


@pytest.mark.parametrize("case", ARRAYS, ids=lambda c: f"{c.type}-{c.zone}-{c.literal}")
def test_arrays_both_ways(case: Case) -> None:
    value = decode_parameter(1, case.text.encode(), 0, case.oid, case.zone)
    if case.type != "jsonb[]":
        assert repr(decode_parameter(1, case.binary, 1, case.oid, case.zone)) == repr(value)
    arrow = pa.list_(ELEMENTS[case.type[:-2]])
    if case.text.startswith("{{"):
        arrow = pa.list_(arrow)
    if case.type == "uuid[]":
        value = [str(item) for item in value]
    if case.type == "numeric[]":
        value = [None if item is None else item.quantize(Decimal("0.01")) for item in value]
    column = pa.array([value], arrow)
    for form, expected in ((0, case.text.encode()), (1, case.binary)):
        same_with_nulls(encoder(case.oid, -1, form, arrow, case.zone), column, [expected])


DECODED = [c for c in CASES if not c.type.endswith("]") and c.type != "bpchar(4)"]


@pytest.mark.parametrize("case", DECODED, ids=lambda c: f"{c.type}-{c.zone}-{c.literal}")
def test_parameters_mean_the_same_in_text_and_binary(case: Case) -> None:
    binary = decode_parameter(1, case.binary, 1, case.oid, case.zone)
    text = decode_parameter(1, case.text.encode(), 0, case.oid, case.zone)
    literal = decode_parameter(1, case.literal.encode(), 0, case.oid, case.zone)
    if case.type in ("jsonb", "json", "numeric", "numeric(10,2)", "numeric(38,18)"):
        assert text == binary
        assert literal == binary or case.typmod > 0
    else:
        assert repr(text) == repr(binary)
        if case.type not in ("float4", "float8", "name"):
            assert repr(literal) == repr(binary)


def test_typmod_rounds_half_away_from_zero() -> None:
    column = pa.array([Decimal("1.005"), Decimal("-1.005"), Decimal("2.004"), None])
    typmod = ((10 << 16) | 2) + 4
    assert numeric.typmod_scale(typmod) == 2
    make = encoder(1700, typmod, 0, column.type, "UTC")
    assert make.column(column).to_pylist() == [b"1.01", b"-1.01", b"2.00", None]
    assert make.cells(column) == [b"1.01", b"-1.01", b"2.00", None]


def test_other_arrow_types_under_a_type() -> None:
    def cells(oid: int, column: pa.Array, form: int = 0) -> list[bytes | None]:
        make = encoder(oid, -1, form, column.type, "UTC")
        assert make.column(column).to_pylist() == make.cells(column)
        return make.cells(column)

    assert cells(20, pa.array([Decimal(5), None], pa.decimal128(38, 0))) == [b"5", None]
    assert cells(21, pa.array([200], pa.uint8()), 1) == [b"\x00\xc8"]
    assert cells(1700, pa.array([2**64 - 1], pa.uint64())) == [b"18446744073709551615"]
    assert cells(1700, pa.array([1.5e-7, 1e20])) == [b"0.00000015", b"100000000000000000000"]
    assert cells(25, pa.array([True, None])) == [b"t", None]
    assert cells(25, pa.array(["a", "b", "a"]).dictionary_encode()) == [b"a", b"b", b"a"]
    assert cells(25, pa.array(["a"], pa.large_string())) == [b"a"]
    assert cells(25, pa.nulls(2)) == [None, None]
    assert cells(701, pa.array([1, 2], pa.int32())) == [b"1", b"2"]
    assert cells(1114, pa.array([1_500], pa.timestamp("ms"))) == [b"1970-01-01 00:00:01.5"]
    assert cells(1114, pa.array([1_500_000_123], pa.timestamp("ns"))) == [b"1970-01-01 00:00:01.5"]
    assert cells(1186, pa.array([90_000_000], pa.duration("us"))) == [b"00:01:30"]
    assert cells(2950, pa.array([bytes(16)], pa.binary(16))) == [b"00000000-0000-0000-0000-000000000000"]
    assert cells(22, pa.array([[1, 2], None], pa.list_(pa.int16()))) == [b"1 2", None]
    assert cells(1007, pa.array([[1, 2]], pa.list_(pa.int32(), 2))) == [b"{1,2}"]


def test_zones_without_the_systems_zone_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datetimes, "_kernels_know", lambda zone: False)
    column = pa.array([1_719_828_000_000_000, None], pa.timestamp("us", "UTC"))
    make = datetimes.encoder(1184, 0, column.type, "Europe/Berlin")
    assert make.column(column).to_pylist() == make.cells(column) == [b"2024-07-01 12:00:00+02", None]


def test_nested_columns_as_json() -> None:
    arrow = pa.struct(
        [
            ("a", pa.int32()), ("b", pa.list_(pa.string())), ("m", pa.map_(pa.string(), pa.float64())),
            ("t", pa.timestamp("us")), ("d", pa.decimal128(10, 2)), ("n", pa.map_(pa.int32(), pa.bool_())),
        ]
    )  # fmt: skip
    value = {"a": None, "b": ['x"y', None, "é"], "m": [("k", 1e20), ("n", float("nan"))], "t": 0, "d": Decimal("1.50"),
             "n": [(1, True)]}  # fmt: skip
    column = pa.array([value, None], arrow)
    make = encoder(114, -1, 0, arrow, "UTC")
    text = '{"a":null,"b":["x\\"y",null,"é"],"m":{"k":1e+20,"n":"NaN"},"t":"1970-01-01T00:00:00","d":1.50,'
    text += '"n":{"1":true}}'
    assert make.cells(column) == [text.encode(), None]
    json.loads(text)
    infinite = pa.array([clock.STAMP_INFINITY], pa.int64()).view(pa.timestamp("us"))
    nested = pa.StructArray.from_arrays([infinite], names=["t"])
    assert encoder(114, -1, 0, nested.type, "UTC").cells(nested) == [b'{"t":"infinity"}']


def test_ragged_lists_have_text_but_no_binary_form() -> None:
    column = pa.array([[[1, 2], [3]]], pa.list_(pa.list_(pa.int32())))
    assert encoder(1007, -1, 0, column.type, "UTC").cells(column) == [b"{{1,2},{3}}"]
    with pytest.raises(Exception, match="matching dimensions") as raised:
        encoder(1007, -1, 1, column.type, "UTC").cells(column)
    assert raised.value.sqlstate == "2202E"
    assert arrays.leaf_type(column.type).equals(pa.int32())


def test_text_columns_under_other_types_have_no_binary_form() -> None:
    column = pa.array(["{1,2}", None])
    assert encoder(1007, -1, 0, column.type, "UTC").cells(column) == [b"{1,2}", None]
    with pytest.raises(Exception, match=r"of type integer\[\] that is kept as text has no binary form") as raised:
        encoder(1007, -1, 1, column.type, "UTC")
    assert raised.value.sqlstate == "0A000"


def test_value_that_does_not_fit() -> None:
    column = pa.array([2**40])
    with pytest.raises(Exception, match="out of range for type integer") as raised:
        encoder(23, -1, 0, column.type, "UTC").column(column)
    assert raised.value.sqlstate == "22003"


@pytest.mark.parametrize("zone", ["UTC", "Europe/Paris"])
@pytest.mark.parametrize("oid", [1114, 1184])
def test_times_that_stand_in_runs_are_written_as_others(zone: str, oid: int) -> None:
    """The times of a view's changes: many rows of each commit. NULLs, infinities and centuries are among them."""
    odd = [clock.STAMP_INFINITY, -62_000_000_000_000_001, clock.STAMP_MINUS_INFINITY]
    moments = [0, None, 1_795_785_413_977_901, *odd]
    counts = [moment for moment in moments for _ in range(40)] + moments
    column = pa.array(counts, pa.timestamp("us", "UTC") if oid == 1184 else pa.timestamp("us"))
    make = encoder(oid, -1, 0, column.type, zone)
    alone = [make.column(column.slice(at, 1)).to_pylist()[0] for at in range(len(counts))]
    assert make.column(column).to_pylist() == alone
    assert make.column(column.slice(13, 200)).to_pylist() == alone[13:213]
    assert alone[80] == (b"2026-11-27 13:16:53.977901" if oid == 1114 else alone[80])


def test_framing_by_hand_and_in_bulk_agree() -> None:
    rows = 100
    batch = pa.record_batch(
        [
            pa.array([None if at % 7 == 0 else at for at in range(rows)], pa.int32()),
            pa.array(["x" * (at % 5) for at in range(rows)]),
            pa.array([None] * rows, pa.string()),
        ],
        names=["a", "b", "c"],
    )
    fields = (Field("a", 23), Field("b", 25), Field("c", 25))
    framer = RowFramer(fields, (0, 1, 0), "UTC")
    whole = bytes(framer.frame(batch))
    pieces = b"".join(bytes(framer.frame(batch.slice(at, 10))) for at in range(0, rows, 10))
    assert whole == pieces
    assert whole.startswith(b"D\0\0\0\x12\0\x03\xff\xff\xff\xff\0\0\0\0\xff\xff\xff\xff")
    assert bytes(framer.frame(batch.slice(3, 60))) in whole
    empty = pa.RecordBatch.from_arrays([pa.array([1, 2])], names=["x"]).select([])
    assert bytes(RowFramer((), (), "UTC").frame(empty)) == b"D\0\0\0\x06\0\0" * empty.num_rows


@pytest.mark.parametrize(
    ("oid", "raw", "sqlstate", "message"),
    [
        (23, b"abc", "22P02", 'invalid input syntax for type integer: "abc"'),
        (23, b"", "22P02", 'invalid input syntax for type integer: ""'),
        (23, b"1_0", "22P02", 'invalid input syntax for type integer: "1_0"'),
        (21, b"40000", "22003", 'value "40000" is out of range for type smallint'),
        (20, b"9" * 5000, "22003", None),
        (16, b"maybe", "22P02", 'invalid input syntax for type boolean: "maybe"'),
        (701, b"1e400", "22003", '"1e400" is out of range for type double precision'),
        (701, b"1_0", "22P02", 'invalid input syntax for type double precision: "1_0"'),
        (700, b"1e39", "22003", '"1e39" is out of range for type real'),
        (1700, b"1.2.3", "22P02", 'invalid input syntax for type numeric: "1.2.3"'),
        (1700, b"1e999999999", "22003", None),
        (1082, b"2024-02-30", "22008", 'date/time field value out of range: "2024-02-30"'),
        (1082, b"tomorrowish", "22007", 'invalid input syntax for type date: "tomorrowish"'),
        (1083, b"25:00", "22008", None),
        (1114, b"x", "22007", 'invalid input syntax for type timestamp: "x"'),
        (1184, b"2024-01-01 00:00+99", "22009", None),
        (1186, b"1 parsec", "22007", 'invalid input syntax for type interval: "1 parsec"'),
        (2950, b"123", "22P02", 'invalid input syntax for type uuid: "123"'),
        (114, b"{", "22P02", 'invalid input syntax for type json: "{"'),
        (114, b"NaN", "22P02", None),
        (114, b"[" * 100_000, "22P02", None),
        (17, b"\\xz", "22023", 'invalid hexadecimal digit: "z"'),
        (17, b"\\x0", "22023", "invalid hexadecimal data: odd number of digits"),
        (17, b"\\9", "22P02", None),
        (25, b"\xff", "22021", 'invalid byte sequence for encoding "UTF8": 0xff'),
        (25, b"a\x00b", "22021", 'invalid byte sequence for encoding "UTF8": 0x00'),
        (1007, b"{1,2", "22P02", 'malformed array literal: "{1,2"'),
        (1007, b"1", "22P02", 'malformed array literal: "1"'),
        (1007, b"{1}x", "22P02", None),
        (1007, b"{a}", "22P02", 'invalid input syntax for type integer: "a"'),
        (1007, b"{" * 7 + b"}" * 7, "54000", None),
        (1009, b'{"a', "22P02", None),
    ],
)
def test_wrong_text_parameters(oid: int, raw: bytes, sqlstate: str, message: str | None) -> None:
    with pytest.raises(Exception) as raised:
        decode_parameter(1, raw, 0, oid, "UTC")
    assert raised.value.sqlstate == sqlstate
    if message is not None:
        assert raised.value.message == message


@pytest.mark.parametrize(
    ("oid", "raw"),
    [
        (16, b""), (21, b"\0"), (23, b"\0" * 5), (20, b""), (700, b"\0" * 8), (701, b"\0" * 4), (1082, b"\0"),
        (1083, b""), (1114, b"\0" * 4), (1184, b"\0" * 4), (1186, b"\0" * 8), (2950, b"\0" * 15), (1700, b"\0\1"),
        (1700, struct.pack("!hhHHH", 1, 0, 0, 0, 10_000)), (1007, b"\0" * 3),
        (1007, struct.pack("!iiIii", 1, 0, 23, 2**30, 1)), (1007, struct.pack("!iiIiii", 1, 0, 23, 1, 1, 99)),
        (1007, struct.pack("!iiI", 7, 0, 23)),
    ],
)  # fmt: skip
def test_wrong_binary_parameters(oid: int, raw: bytes) -> None:
    with pytest.raises(Exception, match="incorrect binary data format in bind parameter 3") as raised:
        decode_parameter(3, raw, 1, oid, "UTC")
    assert raised.value.sqlstate == "22P03"


def test_unknown_types_are_text_and_have_no_binary_form() -> None:
    assert decode_parameter(1, b"x", 0, 9_999, "UTC") == "x"
    assert decode_parameter(1, b"x", 1, 0, "UTC") == "x"
    assert decode_parameter(1, b"x", 1, 99_998, "UTC") == "x"  # an enum that a user has made
    with pytest.raises(Exception, match="no binary input function") as raised:
        decode_parameter(1, b"x", 1, 9_999, "UTC")
    assert raised.value.sqlstate == "42883"
    with pytest.raises(Exception, match="unsupported format code: 2"):
        decode_parameter(1, b"x", 2, 25, "UTC")


def test_array_literals() -> None:
    def read(text: str, oid: int = 1009) -> object:
        return decode_parameter(1, text.encode(), 0, oid, "UTC")

    assert read(' { a , "b" , NULL, \\NULL, "NULL", x\\,y , "q\\"\\\\" } ') == [
        "a", "b", None, "NULL", "NULL", "x,y", 'q"\\'
    ]  # fmt: skip
    assert read("{{a,b},{c,d}}") == [["a", "b"], ["c", "d"]]
    assert read("[0:1]={7,8}", 1007) == [7, 8]
    assert read("{}") == []
    assert len(read("{" + ",".join(["12345678"] * 200_000) + "}", 1007)) == 200_000  # type: ignore[arg-type]
    for wrong in ("{", "{a", "{a,", "{a,}", "{,a}", '{"a}', "{a}}", "{a b", '{a"b"}', "{a\\"):
        with pytest.raises(Exception, match="malformed array literal") as raised:
            read(wrong)
        assert raised.value.sqlstate == "22P02", wrong


def test_instants_without_an_offset_are_in_the_sessions_zone() -> None:
    def instant(text: str) -> str:
        return str(decode_parameter(1, text.encode(), 0, 1184, "Europe/Berlin"))

    assert instant("2024-07-01 12:00") == "2024-07-01 10:00:00+00:00"
    assert instant("2024-01-01T12:00:00") == "2024-01-01 11:00:00+00:00"
    assert instant("2024-01-01 12:00 Asia/Kolkata") == "2024-01-01 06:30:00+00:00"
    assert instant("2024-01-01 12:00Z") == "2024-01-01 12:00:00+00:00"
    assert instant("2024-03-31 02:30:00") == "2024-03-31 01:30:00+00:00"  # skipped by the clock: standard time
    assert instant("2024-10-27 02:30:00") == "2024-10-27 01:30:00+00:00"  # happens twice: standard time
