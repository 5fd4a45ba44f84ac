"""Rows of Parquet files: fields in other case, maps with a key twice, texts that are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mvserver.sql.types import parse_type

pytestmark = pytest.mark.spark
_ITEM = pa.struct([("itemId", pa.int32()), ("Note", pa.string())])
_SCHEMA = pa.schema([("St", _ITEM), ("items", pa.list_(_ITEM)), ("m", pa.map_(pa.string(), _ITEM)), ("s", pa.string())])
_KINDS = {
    "st": "STRUCT<itemId INTEGER, note VARCHAR(3)>",
    "items": "ARRAY<STRUCT<ITEMID INTEGER, note VARCHAR(3)>>",
    "m": "MAP<VARCHAR, STRUCT<itemid INTEGER, Note VARCHAR(3)>>",
    "s": "VARCHAR(3)",
}


def test_rows_of_parquet_files_are_taken_whole_or_not_at_all(spark: Any, tmp_path: Path) -> None:
    from mvserver.compiler.plans import ScanColumn
    from mvserver.streaming.batch.evaluate import _normal
    from mvserver.streaming.spark.types import spark_schema, spark_type
    from spark_sinks.decode import DecodeColumn, decode, parquet_column

    one, long, nul = {"itemId": 1, "Note": "abc"}, {"itemId": 1, "Note": "abcd"}, {"itemId": 1, "Note": "a\0"}
    read = {"itemid": 1, "note": "abc"}
    rows: list[tuple[dict[str, Any], Any]] = [
        ({"St": one, "items": [one, None], "m": [("a", None), ("b", one), ("a", one)], "s": "é漢字"},
         (read, [read, None], [("a", read), ("b", read)], "é漢字")),
        ({}, (None, None, None, None)),
        ({"s": "abcd"}, 'column "s" is not of type VARCHAR(3): abcd'),
        ({"s": "a\0"}, 'column "s" has \\u0000 or half of a surrogate pair, which no text can hold: a\ufffd'),
        ({"St": long}, 'column "st" is not of type STRUCT<itemId INTEGER, "note" VARCHAR(3)>: '),
        ({"items": [one, nul]}, 'column "items" is not of type '),
        ({"m": [("a", long)]}, 'column "m" is not of type '),
        ({"m": [("a\0", one)]}, 'column "m" is not of type '),
    ]  # fmt: skip
    pq.write_table(pa.Table.from_pylist([row for row, _ in rows], _SCHEMA), tmp_path / "a.parquet")
    types = {name: parse_type(kind) for name, kind in _KINDS.items()}
    columns = [DecodeColumn(name, spark_type(kind), str(kind)) for name, kind in types.items()]
    schema = spark_schema([ScanColumn(name, kind) for name, kind in types.items()])
    frame = spark.read.schema(schema).parquet(str(tmp_path / "a.parquet"))
    frame = frame.selectExpr(*(f"`{name}` AS {parquet_column(name)}" for name in schema.names))
    program = decode("parquet", columns, "value", "d_")
    for stage in program.stages:
        frame = frame.selectExpr("*", *stage)
    values = [f"{reference} AS o{i}" for i, (_, reference) in enumerate(program.columns)]
    found = _normal(frame.selectExpr(f"{program.reason} AS reason", *values).toArrow()).to_pylist()
    for row, (given, wanted) in zip(found, rows, strict=True):
        reason, *taken = row.values()
        if isinstance(wanted, str):
            assert str(reason).startswith(wanted), given
        else:
            assert (reason, tuple(taken)) == (None, wanted), given
