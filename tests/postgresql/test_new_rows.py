"""Changes that are taken straight from their messages make the records that they make when they are read in full."""

from __future__ import annotations

import os
import random
import struct
from pathlib import Path

import pytest

from mvserver.types import oids
from spark_sinks.postgresql.changes import ChangeRecords, KnownTable
from spark_sinks.postgresql.pgoutput import EPOCH_US, parse
from spark_sinks.postgresql.spool import Spool

SEED = int(os.environ.get("MVSERVER_TEST_SEED", "0")) or random.randrange(1 << 30)
OID = 77
COLUMNS = {
    "id": oids.INT8, "name": oids.TEXT, "of": oids.FLOAT8, "is": oids.BOOL, 'a "b"': oids.BYTEA, "n": oids.NUMERIC,
}  # fmt: skip
VALUES = {
    oids.INT8: [b"0", b"-1", b"9223372036854775807"],
    oids.TEXT: [b"", b"x", 'é\n"\\'.encode(), b"\x01{}"],
    oids.FLOAT8: [b"1.5", b"NaN", b"-Infinity", b"1e-300"],
    oids.BOOL: [b"t", b"f"],
    oids.BYTEA: [b"\\x", b"\\x00ff"],
    oids.NUMERIC: [b"1.50", b"NaN", b"0.000"],
}


def named(text: str) -> bytes:
    return text.encode() + b"\0"


def table() -> bytes:
    columns = b"".join(
        bytes([name == "id"]) + named(name) + struct.pack(">Ii", oid, -1) for name, oid in COLUMNS.items()
    )
    return (
        b"R" + struct.pack(">I", OID) + named("public") + named("t") + b"d" + struct.pack(">H", len(COLUMNS)) + columns
    )


def row(chance: random.Random, *, key: bool = False) -> bytes:
    """A new row, or what the log has of an old one: its key."""
    content = struct.pack(">H", len(COLUMNS))
    for name, oid in COLUMNS.items():
        kind = "t" if name == "id" else "n" if key else chance.choice("tttnu")
        value = chance.choice(VALUES[oid])
        content += kind.encode() + (struct.pack(">I", len(value)) + value if kind == "t" else b"")
    return content


def changes(chance: random.Random) -> list[bytes]:
    found = []
    for number in range(1, 40):
        lsn = number * 1000
        found.append(b"B" + struct.pack(">QqI", lsn, 1_000_000 * number, number))
        if number in (1, 20):
            found.append(table())
        for _ in range(chance.randrange(4)):
            oid = struct.pack(">I", chance.choice([OID, OID, OID, OID + 1]))
            old = b"K" + row(chance, key=True)
            found.append(
                chance.choice(
                    [
                        b"I" + oid + b"N" + row(chance),
                        b"U" + oid + b"N" + row(chance),
                        b"U" + oid + old + b"N" + row(chance),
                        b"D" + oid + old,
                    ]
                )
            )
        found.append(b"C\0" + struct.pack(">QQq", lsn, lsn + 1, 1_000_000 * number))
    return found


@pytest.mark.parametrize("keyed", [False, True], ids=["stream", "changelog"])
def test_new_rows_are_taken_as_they_are_read(tmp_path: Path, *, keyed: bool) -> None:
    print(f"MVSERVER_TEST_SEED={SEED}")
    messages = changes(random.Random(SEED))
    known = KnownTable("db", "public.t", OID, ("id",), COLUMNS, {}, {name: at for at, name in enumerate(COLUMNS)})
    found = []
    for straight in (False, True):
        spool = Spool(tmp_path / str(straight), 0)
        records = ChangeRecords(known, spool, keyed=keyed, record_bytes_max=1 << 20, numbers=lambda: known.numbers)
        for message in messages:
            if straight:
                records.take_message(message)
            else:
                records.take(parse(message))
        found.append([each for batch in spool.table(0, spool.end) for each in batch.to_pylist()])
    assert found[0] == found[1]
    assert len(found[0]) > 20


def test_a_row_of_a_first_insertion(tmp_path: Path) -> None:
    """Written by hand."""
    spool = Spool(tmp_path, 0)
    known = KnownTable("db", "public.t", OID, ("id",), {"id": oids.INT8, "name": oids.TEXT}, {}, {"id": 1, "name": 2})
    records = ChangeRecords(known, spool, keyed=False, record_bytes_max=1 << 20)
    two = (
        bytes([1])
        + named("id")
        + struct.pack(">Ii", oids.INT8, -1)
        + bytes([0])
        + named("name")
        + struct.pack(">Ii", oids.TEXT, -1)
    )
    for message in (
        b"B" + struct.pack(">QqI", 1 << 32, 1_700_000_000_000_000 - EPOCH_US, 7),
        b"R" + struct.pack(">I", OID) + named("public") + named("t") + b"d" + struct.pack(">H", 2) + two,
        b"I" + struct.pack(">I", OID) + b"N" + struct.pack(">H", 2) + b"t" + struct.pack(">I", 2) + b"42n",
        b"U" + struct.pack(">I", OID) + b"N" + struct.pack(">H", 2) + b"t" + struct.pack(">I", 2) + b"42t"
        + struct.pack(">I", 3) + b'a"b',
        b"C\0" + struct.pack(">QQq", 1 << 32, (1 << 32) + 8, 0),
    ):  # fmt: skip
        records.take_message(message)
    values = [each.as_py() for batch in spool.table(0, spool.end) for each in batch.column("value")]
    source = (
        b'"source":{"db":"db","schema":"public","table":"t","lsn":"1/0","txid":7,"ts_ms":1700000000000,"snapshot":false}'
        b',"ts_ms":1700000000000}'
    )
    assert values == [
        b'{"op":"c","before":null,"after":{"id":42,"name":null},' + source,
        b'{"op":"u","before":null,"after":{"id":42,"name":"a\\"b"},' + source,
    ]
