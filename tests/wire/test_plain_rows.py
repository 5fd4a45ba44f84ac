"""Rows framed from Python's values are the bytes that Arrow's columns of the same values give."""

from __future__ import annotations

import random
import string
import time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from mvserver import limits
from mvserver.front import Field, PlainRows, Result
from mvserver.pgwire.rows import RowFramer
from mvserver.pgwire.streams import FramedRows, RowStream, row_stream
from mvserver.types import oids

_COLUMNS: tuple[tuple[int, int, Any, Any], ...] = (
    (oids.BOOL, -1, pa.bool_(), lambda r: r.random() < 0.5),
    (oids.INT2, -1, pa.int16(), lambda r: r.choice([-(2**15), 2**15 - 1, r.randrange(-9, 9)])),
    (oids.INT4, -1, pa.int32(), lambda r: r.choice([-(2**31), 2**31 - 1, 0])),
    (oids.INT8, -1, pa.int64(), lambda r: r.choice([-(2**63), 2**63 - 1, r.randrange(10**6)])),
    (oids.FLOAT8, -1, pa.float64(), lambda r: r.choice([0.1, -0.0, 1e300, float("nan"), float("-inf"), r.random()])),
    (oids.NUMERIC, ((10 << 16) | 2) + 4, pa.decimal128(10, 2), lambda r: Decimal(r.randrange(-999, 999)).scaleb(-2)),
    (oids.NUMERIC, -1, pa.decimal128(20, 10), lambda r: Decimal(r.choice([1, -1, 0, 10**15])).scaleb(-10)),
    (oids.TEXT, -1, pa.string(), lambda r: r.choice(["", "é\n", "".join(r.choices(string.printable, k=9))])),
    (oids.JSON, -1, pa.string(), lambda r: r.choice(['{"a": 1}', "[]", "null"])),
)  # fmt: skip


@pytest.mark.parametrize("form", [0, 1])
def test_both_ways_agree(form: int) -> None:
    seed = time.time_ns() % 1_000_000
    print(f"seed {seed}")
    chance = random.Random(seed)
    for _ in range(40):
        chosen = [chance.choice(_COLUMNS) for _ in range(chance.randrange(1, 6))]
        fields = tuple(Field(f"c{at}", oid, -1, typmod) for at, (oid, typmod, _, _) in enumerate(chosen))
        types = tuple(arrow for _, _, arrow, _ in chosen)
        rows = [
            tuple(None if chance.random() < 0.2 else make(chance) for *_, make in chosen)
            for _ in range(chance.choice([0, 1, 3, 60]))
        ]
        framer = RowFramer(fields, (form,) * len(fields), "UTC")
        framed = framer.frame_values(PlainRows(rows, types))
        assert framed is not None
        arrays = [pa.array([row[at] for row in rows], kind) for at, kind in enumerate(types)]
        batch = pa.record_batch(arrays, [field.name for field in fields])
        assert b"".join(framed) == bytes(framer.frame(batch)), (types, rows)


def test_columns_that_arrow_changes_first_are_left_to_it() -> None:
    framer = RowFramer((Field("c", oids.BPCHAR, -1, 4 + 5),), (0,), "UTC")
    assert framer.frame_values(PlainRows([("ab",)], (pa.string(),))) is None
    result = Result("SELECT ", (), rows=PlainRows([("ab",)], (pa.string(),)))
    assert isinstance(row_stream(result, framer), RowStream)


def test_rows_leave_in_pieces_and_up_to_a_limit() -> None:
    large = "x" * (limits.RESULT_CHUNK_BYTES // 2)
    framer = RowFramer((Field("c", oids.TEXT),), (0,), "UTC")
    stream = row_stream(Result("SELECT ", (), rows=PlainRows([(large,)] * 5, (pa.string(),))), framer)
    assert isinstance(stream, FramedRows)
    taken = [stream.take(1)[1], stream.take(None)[1], stream.take(None)[1]]
    assert (taken, stream.drained, stream.ended) == ([1, 2, 2], True, False)
    assert not stream.pull()
    assert stream.ended
