"""Records of a changelog through Spark: keys and values in every format, deletions, rejected records, their order."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from mvserver.compiler.compile import compile_select
from mvserver.compiler.plans import ScanColumn
from mvserver.compiler.shape import RelationShape
from mvserver.sql.dialect import parse_select
from mvserver.sql.types import parse_type
from mvserver.streaming.batch.evaluate import WholeProgramNeeded, evaluate_rows
from mvserver.streaming.batch.program import build_program
from mvserver.views.finishing import layout_of
from mvserver.views.targets import build_target
from spark_sinks.base import RecordOrder
from spark_sinks.duckdb.batch_plans import BatchCommit, TableMerge
from tests.streaming.states import writer_in

pytestmark = pytest.mark.spark

_RAW = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("position", pa.string()),
        ("record_time", pa.timestamp("us", "UTC")),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
    ]
)
Record = tuple[bytes | None, bytes | None]


class _Reader:
    """The part of a source that evaluation asks."""

    record_order = RecordOrder("cast(partition as string)", "offset", "cast(partition as string)")

    @property
    def positions(self) -> Any:
        return self

    def divisible(self, start: Any, end: Any, least: int) -> bool:
        return False

    def segment_ranks(self, segments: Sequence[str]) -> Sequence[int]:
        return [int(segment) for segment in segments]

    def rejected_positions(self, records: Sequence[tuple[str, bytes | None]]) -> Sequence[str]:
        return [position for position, _ in records]


def _columns(primary_key: Sequence[str], **types: str) -> tuple[ScanColumn, ...]:
    return tuple(ScanColumn(name, parse_type(kind), name in primary_key) for name, kind in types.items())


def _view(
    spark: Any, folder: Path, relation: RelationShape, sql: str, records: Sequence[Record]
) -> tuple[list[tuple[Any, ...]], dict[str, str], bool]:
    """The view's rows, the rejected records by position, and whether the cheap decoder was enough."""
    plan = compile_select(parse_select(sql), lambda parts, position: relation, default_starting="earliest")
    target = build_target("q", "v", 1, plan)
    moment = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    rows = [(key, value, f"0:{i}", moment, 0, i) for i, (key, value) in enumerate(records)]
    frame = spark.createDataFrame(pa.Table.from_pylist([dict(zip(_RAW.names, r, strict=True)) for r in rows], _RAW))
    trial = True
    try:
        evaluated = evaluate_rows(frame, build_program([target], trial=True), _Reader())  # type: ignore[arg-type]
    except WholeProgramNeeded:
        trial = False
        evaluated = evaluate_rows(frame, build_program([target]), _Reader())  # type: ignore[arg-type]
    with writer_in(folder) as (database, writer):
        with writer.transaction():
            writer.create_state(target.state, layout_of(target))
        merges = tuple(TableMerge(m.table, m.views) for m in evaluated.merges)
        writer.commit(BatchCommit(None, merges, evaluated.rejected))
        with database.cursor() as cursor:
            found = cursor.execute('SELECT * FROM "_views"."v" ORDER BY ALL NULLS FIRST').fetchall()
        return found, {row[1]: row[2] for row in writer.rejected_rows()}, trial


def _json(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


@pytest.mark.parametrize(
    ("kind", "one", "two"),
    [
        ("VARCHAR", b"one", "zwei \u2713".encode()),
        ("SMALLINT", (-2).to_bytes(2, "big", signed=True), (30_000).to_bytes(2, "big")),
        ("INTEGER", (-(2**31)).to_bytes(4, "big", signed=True), (2**31 - 1).to_bytes(4, "big")),
        ("BIGINT", (-1).to_bytes(8, "big", signed=True), (2**62).to_bytes(8, "big")),
    ],
)
def test_primitive_keys_delete(spark: Any, tmp_path: Path, kind: str, one: bytes, two: bytes) -> None:
    relation = RelationShape(
        "r",
        "d.public.r",
        "changelog",
        _columns(["id"], id=kind, n="INTEGER"),
        primary_key=("id",),
        key_format="primitive",
    )

    def value(key: bytes) -> Any:
        return key.decode() if kind == "VARCHAR" else int.from_bytes(key, "big", signed=True)

    records = [
        (one, _json(id=value(one), n=1)),
        (two, _json(id=value(two), n=2)),
        (one, None),
        (two, _json(id=value(two), n=3)),
    ]
    found, rejected, trial = _view(spark, tmp_path, relation, "SELECT id, n FROM r", records)
    assert (found, rejected, trial) == ([(value(two), 3)], {}, True)


def test_json_keys_delete_and_bad_keys_are_rejected_by_reason(spark: Any, tmp_path: Path) -> None:
    columns = _columns(["a", "b"], a="BIGINT", b="DATE", n="DECIMAL(5, 2)")
    relation = RelationShape("r", "d.public.r", "changelog", columns, primary_key=("a", "b"), key_format="json")
    day = "2024-05-17"
    records: list[Record] = [
        (None, _json(a=1, b=day, n=1)),  # the value has all there is
        (None, _json(a=2, b=day, n=2)),
        (_json(b=day, a=1, more=0), None),
        (None, None),
        (b"oops", None),
        (_json(a="x", b=day), None),
        (_json(a=2), None),
        (_json(a=7, b=day), _json(b=day, n=1)),
    ]
    found, rejected, trial = _view(spark, tmp_path, relation, "SELECT a, b, n FROM r", records)
    assert found == [(2, dt.date(2024, 5, 17), pytest.approx(2))]
    assert rejected == {
        "0:3": "the key is null",
        "0:4": "the key is not one JSON object",
        "0:5": 'column "a" is not of type BIGINT: x',
        "0:6": 'column "b" is null and must not be',
        "0:7": 'column "a" is null and must not be',
    }
    assert not trial


def test_columns_that_are_in_the_key_alone(spark: Any, tmp_path: Path) -> None:
    columns = _columns(["id"], id="VARCHAR", a="INTEGER", b="VARCHAR")
    relation = RelationShape(
        "r", "d.public.r", "changelog", columns, "csv", primary_key=("id",), key_format="primitive", key_only=("id",)
    )
    records: list[Record] = [(b"x", b"1,one"), (b"y", b"2,two"), (b"x", None), (None, b"3,three"), (b"\xff", b"4,four")]
    found, rejected, _ = _view(spark, tmp_path, relation, "SELECT b, id, a FROM r WHERE id <> 'z'", records)
    assert found == [("two", "y", 2)]
    assert rejected == {"0:3": "the key is null", "0:4": "the key is not a primitive of type VARCHAR"}


def test_without_keys_nothing_is_deleted(spark: Any, tmp_path: Path) -> None:
    columns = _columns(["id"], id="BIGINT", n="INTEGER")
    relation = RelationShape("r", "d.public.r", "changelog", columns, primary_key=("id",))
    records: list[Record] = [(None, _json(id=1, n=1)), (b"1", None), (None, _json(id=1, n=2)), (None, _json(n=2))]
    found, rejected, _ = _view(spark, tmp_path, relation, "SELECT count(*) AS c, sum(n) AS s FROM r", records)
    assert found == [(1, 2)]
    assert rejected == {"0:1": "the value is null", "0:3": 'column "id" is null and must not be'}


def test_an_expression_that_fails_is_not_asked_of_a_deletion(spark: Any, tmp_path: Path) -> None:
    columns = _columns(["id"], id="VARCHAR", n="INTEGER")
    relation = RelationShape("r", "d.public.r", "changelog", columns, primary_key=("id",), key_format="primitive")
    records: list[Record] = [(b"a", _json(id="a", n=2)), (b"b", _json(id="b", n=5)), (b"a", None)]
    sql = "SELECT 10 / n AS q, count(*) AS c FROM r WHERE n > 0 GROUP BY 10 / n"
    found, _, _ = _view(spark, tmp_path, relation, sql, records)
    assert found == [(2, 1)]


def test_nested_values_are_replaced_whole(spark: Any, tmp_path: Path) -> None:
    columns = _columns(
        ["userid"], userid="VARCHAR", interests="ARRAY<VARCHAR>", contactinfo="STRUCT<city VARCHAR, zipcode VARCHAR>"
    )
    relation = RelationShape("r", "d.public.r", "changelog", columns, primary_key=("userid",), key_format="primitive")
    first = {"interests": ["News", "Movies"], "contactinfo": {"city": "San Mateo", "zipcode": "94401"}}
    records: list[Record] = [
        (b"User_4", _json(userid="User_4", **first)),
        (b"User_5", _json(userid="User_5", **first)),
        (b"User_4", _json(userid="User_4", interests=["Game"], contactinfo={"city": "Irvine", "zipcode": None})),
        (b"User_5", None),
    ]
    sql = "SELECT interests, contactinfo, contactinfo.city AS city, userid FROM r"
    found, _, _ = _view(spark, tmp_path, relation, sql, records)
    assert found == [(["Game"], {"city": "Irvine", "zipcode": None}, "Irvine", "User_4")]


def test_times_in_arrays_are_kept_to_the_microsecond(spark: Any, tmp_path: Path) -> None:
    """Spark sends TIME in nanoseconds, which DuckDB would not merge into its own microseconds."""
    columns = _columns(("id",), id="INTEGER", at="TIME", many="ARRAY<TIME>")
    texts = ["01:02:03.000004", "23:59:59.999999"]
    early, late = (dt.time.fromisoformat(text) for text in texts)
    records: list[Record] = [
        (json.dumps({"id": i}).encode(), json.dumps({"id": i, "at": text, "many": [text, None]}).encode())
        for i, text in enumerate(texts)
    ]
    sql = "SELECT array_agg(at) AS a, topk(at, 1) AS k, first_value(at) AS f, max(at) AS m FROM rows"
    stream = RelationShape("r", "db.public.rows", "stream", columns)
    changelog = RelationShape("r", "db.public.rows", "changelog", columns, primary_key=("id",), key_format="json")
    for relation in (stream, changelog):
        rows, rejected, _ = _view(spark, tmp_path / relation.kind, relation, sql, records)
        assert (rows, rejected) == ([([early, late], [late], early, late)], {})
    rows, _, _ = _view(spark, tmp_path / "rows", stream, "SELECT id, many FROM rows", records)
    assert rows == [(0, [early, None]), (1, [late, None])]
