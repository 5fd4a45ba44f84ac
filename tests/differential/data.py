"""Random typed rows, and the records that carry them: what the oracle reads, and what the views decode.

The oracle is given the rows from here. A record may spell its row in any way that the decoder's documentation allows,
or be one that must be rejected; what must become of it is known from how it was made.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import random
import struct
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from mvserver.compiler.plans import ScanColumn
from mvserver.sql.types import Kind, SqlType, parse_type

Row = dict[str, Any]

COLUMNS: tuple[ScanColumn, ...] = tuple(
    ScanColumn(name, parse_type(type_), name == "id")
    for name, type_ in {
        "id": "BIGINT",
        "b": "BOOLEAN",
        "i1": "TINYINT",
        "i2": "SMALLINT",
        "i4": "INTEGER",
        "i8": "BIGINT",
        "small": "INTEGER",
        "f4": "FLOAT",
        "f8": "DOUBLE",
        "x": "DOUBLE",
        "u": "DOUBLE",
        "pos": "DOUBLE",
        "n": "DECIMAL(10, 2)",
        "w": "DECIMAL(38, 10)",
        "s": "VARCHAR",
        "s5": "VARCHAR(5)",
        "k": "VARCHAR",
        "js": "VARCHAR",
        "bin": "VARBINARY",
        "d": "DATE",
        "tm": "TIME",
        "ts": "TIMESTAMP",
        "tz": "TIMESTAMP_LTZ",
        "arr": "ARRAY<INTEGER>",
        "words": "ARRAY<VARCHAR>",
        "m": "MAP<VARCHAR, INTEGER>",
        "st": "STRUCT<a INTEGER, inner STRUCT<x VARCHAR>>",
        "Mixed": "INTEGER",
    }.items()
)
NARROW_COLUMNS = tuple(c for c in COLUMNS if c.name in ("id", "k", "small", "n", "ts"))

TEXTS = [
    "",
    " ",
    "a",
    "Abc",
    "hello world",
    "O'Neil",
    "x,y,,z",
    "%_\\",
    "é漢字😀",
    "  pad ",
    "User_9",
    "12",
    "-7",
    "TRUE",
    "aaa",
    "a-b-c",
    '"q"',
    "xxyyxx",
    "a.b",
    "back\\slash",
    "ÉA",
    "$1",
    "l-l,l",
]
WORDS = ["a", "b-c", "hello", "Zz", "l"]
JSONS = [
    '{"a":1,"b":{"c":"x"},"l":[1,2,3],"t":true,"z":null}',
    '[1,"two",{"k":3}]',
    "{}",
    "[]",
    '{"a":"it","l":["p","q"]}',
    '{"a":[],"b":{"c":null}}',
    '{"b":{"c":2.5}}',
    "not json",
    '{"a":"é😀"}',
    '[[1,2],"x"]',
]
_EDGES: dict[Kind, list[Any]] = {
    Kind.TINYINT: [-128, 127, 0],
    Kind.SMALLINT: [-32768, 32767, 0],
    Kind.INTEGER: [-(2**31), 2**31 - 1, 0, -1],
    Kind.BIGINT: [-(2**63), 2**63 - 1, 0, 2**53 + 1],
    Kind.DOUBLE: [0.0, -0.0, float("nan"), float("inf"), float("-inf"), 1.7976931348623157e308, 5e-324, 0.1],
    Kind.FLOAT: [0.0, -0.0, float("nan"), 3.4028234663852886e38, 0.5],
}


@dataclass(frozen=True)
class Record:
    """One record of a topic. ``row`` is what the whole relation must see, ``narrow`` what the narrow one must; None
    where the relation must reject the record."""

    position: str
    value: bytes | None
    row: Row | None
    narrow: Row | None


@dataclass(frozen=True)
class Batches:
    """A topic's records, cut at random."""

    batches: tuple[tuple[Record, ...], ...]
    rows: tuple[Row, ...] = field(default=())
    narrow: tuple[Row, ...] = field(default=())
    rejected: frozenset[str] = frozenset()
    narrow_rejected: frozenset[str] = frozenset()


def cut(records: list[Record], parts: int, rng: random.Random, first_max: int) -> Batches:
    """Into so many batches, the first one of so many records at most."""
    first = rng.randint(1, first_max)
    marks = [first, *sorted(rng.sample(range(first + 1, len(records)), parts - 2))]
    batches = tuple(tuple(records[a:b]) for a, b in zip([0, *marks], [*marks, len(records)], strict=True))
    return Batches(
        batches,
        tuple(r.row for r in records if r.row is not None),
        tuple(r.narrow for r in records if r.narrow is not None),
        frozenset(r.position for r in records if r.row is None),
        frozenset(r.position for r in records if r.narrow is None),
    )


# --- rows -----------------------------------------------------------------------------------------------------------
def random_row(rng: random.Random, number: int, nulls: float) -> Row:
    """``nulls``: the share of NULLs among values."""
    row: Row = {}
    for column in COLUMNS:
        absent = column.name != "id" and rng.random() < nulls
        row[column.name] = None if absent else _column_value(rng, column, number)
    if nulls and row["arr"] is not None:
        row["arr"] = [None if rng.random() < nulls else item for item in row["arr"]]
        row["words"] = row["words"] and [None if rng.random() < nulls else item for item in row["words"]]
    return row


def _column_value(rng: random.Random, column: ScanColumn, number: int) -> Any:
    made = {
        "id": lambda: number,
        "small": lambda: rng.randint(-20, 20),
        "x": lambda: round(rng.uniform(-1000, 1000), rng.choice((0, 1, 3))),
        "u": lambda: rng.choice((rng.uniform(-1, 1), 0.0, 1.0, -1.0, 0.5)),
        "pos": lambda: round(rng.uniform(0.01, 100), 4),
        "n": lambda: Decimal(
            rng.choice((rng.randint(-9_999_999_999, 9_999_999_999), rng.randint(-500, 500), 0))
        ).scaleb(-2),
        "w": lambda: Decimal(rng.randint(-(10**30), 10**30)).scaleb(-10),
        "s": lambda: rng.choice(TEXTS) + rng.choice(("", "", "", rng.choice(WORDS))),
        "s5": lambda: rng.choice([text for text in TEXTS if len(text) <= 5]),
        "k": lambda: rng.choice(WORDS),
        "js": lambda: rng.choice(JSONS),
        "words": lambda: [rng.choice(("a", "b", "c,d", "é", "")) for _ in range(rng.randint(0, 4))],
        "m": lambda: {key: rng.randint(-9, 9) for key in rng.sample(["a", "b", "c d", "é"], rng.randint(0, 3))},
        "st": lambda: {"a": rng.randint(-9, 9), "inner": {"x": rng.choice(WORDS)}},
    }.get(column.name)
    return made() if made is not None else _value(rng, column.type)


def _value(rng: random.Random, type_: SqlType) -> Any:
    kind = type_.kind
    if kind in _EDGES and rng.random() < 0.3:
        return rng.choice(_EDGES[kind])
    if kind is Kind.BOOLEAN:
        return rng.random() < 0.5
    if type_.is_integer:
        return rng.choice((rng.randint(-100, 100), rng.randint(-128, 127)))
    if kind is Kind.DOUBLE:
        return rng.uniform(-1, 1) * 10.0 ** rng.randint(-5, 15)
    if kind is Kind.FLOAT:
        return struct.unpack("f", struct.pack("f", rng.uniform(-1000, 1000)))[0]
    if kind is Kind.VARBINARY:
        return rng.randbytes(rng.randint(0, 6))
    moment = dt.datetime(1960, 1, 1) + dt.timedelta(
        seconds=rng.randint(0, 4_000_000_000), microseconds=rng.choice((0, 0, 345_000, rng.randint(0, 999_999)))
    )
    if kind is Kind.DATE:
        return moment.date()
    if kind is Kind.TIME:
        return moment.time()
    if kind is Kind.TIMESTAMP:
        return rng.choice((moment, dt.datetime(2024, 2, 29, 23, 59, 59, 999_999), dt.datetime(2000, 1, 1)))
    if kind is Kind.TIMESTAMP_LTZ:
        return moment.replace(tzinfo=dt.UTC)
    return [None if value is None else value for value in [rng.randint(-3, 9) for _ in range(rng.randint(0, 5))]]


# --- records --------------------------------------------------------------------------------------------------------
def clean_json(row: Row) -> str:
    """The row as the fast path takes it; no value may be NULL or not finite."""
    return "{" + ",".join(f"{json.dumps(c.name)}:{_json(row[c.name], c.type)}" for c in COLUMNS) + "}"


def is_plain(row: Row) -> bool:
    return all(value is not None and str(value) not in ("nan", "inf", "-inf") for value in row.values())


def coerced_json(row: Row, rng: random.Random) -> str:
    """The same row with spellings that lose nothing: numbers as text, names in other case, fields left out."""
    fields = []
    for column in COLUMNS:
        value = row[column.name]
        if value is None:
            if rng.random() < 0.5:
                fields.append((column.name, "null"))
            continue
        text = _json(value, column.type)
        name = column.name
        if rng.random() < 0.3:
            text = _other_spelling(value, column.type, text, rng)
        if rng.random() < 0.2:
            name = rng.choice((name.upper(), name.capitalize()))
        fields.append((name, text))
    fields += [("unknown", '{"deep":[1,{}]}'), ("", "1")] if rng.random() < 0.3 else []
    rng.shuffle(fields)
    space = rng.choice(("", " ", "\n"))
    return space + "{" + f",{space}".join(f"{json.dumps(name)}:{space}{text}" for name, text in fields) + "}" + space


def _other_spelling(value: Any, type_: SqlType, text: str, rng: random.Random) -> str:
    kind = type_.kind
    if kind is Kind.BOOLEAN:
        return rng.choice((f'"{text}"', f'"{text.upper()}"'))
    if type_.is_integer:
        return rng.choice((f'"{text}"', f'" {text} "', f"{text}.0", f'"{text}.00"'))
    if kind is Kind.DECIMAL:
        return rng.choice((f'"{text}"', f"{text}000", f'" {text}"')) if "." in text else f'"{text}"'
    if type_.is_approximate and text[0] != '"':
        return f'"{text}"'
    if kind is Kind.TIMESTAMP:
        return text.replace(" ", "T", 1)
    if kind is Kind.TIMESTAMP_LTZ:
        return json.dumps(value.astimezone(dt.timezone(dt.timedelta(hours=5, minutes=30))).isoformat(" "))
    return text


def _json(value: Any, type_: SqlType) -> str:
    kind = type_.kind
    if value is None:
        return "null"
    if kind is Kind.DECIMAL:
        return format(value, "f")
    if kind is Kind.VARBINARY:
        return json.dumps(base64.b64encode(value).decode())
    if type_.is_approximate and str(value) in ("nan", "inf", "-inf"):
        return {"nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}[str(value)]
    if type_.kind in (Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMP_LTZ):
        return json.dumps(spelled(value))
    return json.dumps(value, ensure_ascii=False)


def spelled(value: Any) -> str:
    """A date or time as text."""
    if isinstance(value, dt.datetime):
        return value.isoformat(" ").replace("+00:00", "Z")
    return str(value.isoformat())


def csv_line(row: Row) -> str:
    """By position; NULL is nothing between two commas, an empty text a pair of quotes."""
    return ",".join(_csv(row[c.name], c.type) for c in COLUMNS)


def _csv(value: Any, type_: SqlType) -> str:
    if value is None:
        return ""
    if type_.is_nested or type_.kind in (Kind.VARCHAR, Kind.VARBINARY):
        text = value if isinstance(value, str) else _json(value, type_)
        text = json.loads(text) if type_.kind is Kind.VARBINARY else text
        return '"' + text.replace('"', '""') + '"'
    return json.loads(text) if (text := _json(value, type_))[0] == '"' else text


def faulty_json(row: Row, rng: random.Random) -> tuple[bytes | None, bool]:
    """A record that must be rejected, and whether a relation of the narrow columns takes it all the same."""
    good = {c.name: _json(row[c.name], c.type) for c in COLUMNS}

    def changed(**wrong: str) -> bytes:
        return ("{" + ",".join(f"{json.dumps(n)}:{t}" for n, t in {**good, **wrong}.items()) + "}").encode()

    text = changed()
    faults: list[tuple[bytes | None, bool]] = [
        (None, False),
        (text[:-1], False),
        (b"[" + text + b"]", False),
        (text + text, False),
        (b"\xff" + text, False),
        (b"", False),
        (b"plain", False),
        (b"null", False),
        (changed(id="null"), False),
        (changed(small="1.5"), False),
        (changed(k='{"n":1}', small='"many"'), False),
        (changed(n="1.005"), False),
        (changed(n="123456789.5"), False),
        (changed(ts='"2024-02-30 00:00:00"'), False),
        (changed(i1="128"), True),
        (changed(i4='"x"'), True),
        (changed(s5='"longer"'), True),
        (changed(d='"2023-13-01"'), True),
        (changed(bin='"*"'), True),
        (changed(b="2"), True),
        (changed(arr='[1,"x"]'), True),
        (changed(m='{"a":1.5}'), True),
        (changed(st='{"a":"x"}'), True),
        (changed(i8="1e30"), True),
        (changed(tm='"25:00:00"'), True),
        (changed(f4="1e39"), True),
        (changed(words="7"), True),
    ]
    return rng.choice(faults)


def faulty_csv(row: Row, rng: random.Random) -> bytes | None:
    line = csv_line(row)
    wrong = ",".join(_csv(row[c.name], c.type) if c.name != "i4" else "1.5" for c in COLUMNS)
    return rng.choice(
        (None, line.encode() + b",1", line.split(",")[0].encode(), wrong.encode(), b"\xfe" + line.encode())
    )


def json_topic(rng: random.Random, rows: int, parts: int) -> Batches:
    """A first part of clean records, so that trials succeed there; all kinds of records after it."""
    records: list[Record] = []
    clean = rows // 3
    while len(records) < rows:
        number = len(records)
        if number < clean:
            row = random_row(rng, number, 0.0)
            if not is_plain(row):
                row |= {"f4": 1.5, "f8": -2.25}
            records.append(Record(f"0:{number}", clean_json(row).encode(), row, row))
            continue
        row = random_row(rng, number, rng.choice((0.0, 0.1, 0.3)))
        if rng.random() < 0.15:
            value, narrow = faulty_json(row, rng)
            records.append(Record(f"0:{number}", value, None, row if narrow else None))
        else:
            records.append(Record(f"0:{number}", coerced_json(row, rng).encode(), row, row))
    return cut(records, parts, rng, clean)


def csv_topic(rng: random.Random, rows: int, parts: int) -> Batches:
    records: list[Record] = []
    for number in range(rows):
        row = random_row(rng, number, rng.choice((0.0, 0.1, 0.3)))
        if rng.random() < 0.1:
            records.append(Record(f"0:{number}", faulty_csv(row, rng), None, None))
        else:
            records.append(Record(f"0:{number}", csv_line(row).encode(), row, row))
    return cut(records, parts, rng, rows // 2)
