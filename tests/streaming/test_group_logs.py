"""What becomes of the groups of a sub-query, batch by batch: the log's changes make the groups that there are."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from mvserver.compiler.compile import compile_select
from mvserver.sql.dialect import parse_select
from mvserver.streaming.queries.outputs import with_outbox
from mvserver.views.feeds import Node, nodes
from mvserver.views.finishing import layout_of
from mvserver.views.targets import Target, build_target
from spark_sinks.duckdb.changes import outbox
from spark_sinks.duckdb.changes.group_logs import GroupTables
from tests.streaming.states import RELATION, Fed, writer_in

SEED = int(os.environ.get("MVSERVER_TEST_SEED", "20261121"))
VIEW_ID = "00000000-0000-0000-0000-000000000001"

INNER = (  # each column is read by the outer query, so that none is left out
    "SELECT k, i, count(*) AS n, sum(l) AS s FROM events GROUP BY k, i",
    "SELECT k, avg(n) AS a, count(DISTINCT i) AS d FROM events GROUP BY k HAVING count(*) > 2",
    "SELECT count(*) AS n, max(x) AS x FROM events",
    "SELECT DISTINCT k, i FROM events",
    "SELECT k, count(*) AS n FROM events GROUP BY ROLLUP (k, i)",
    "SELECT i, percentile_disc(0.5) WITHIN GROUP (ORDER BY l) AS p FROM events GROUP BY i",
)


def node_of(inner: str) -> Node:
    columns = [output.name for output in compile_select(parse_select(inner), _resolve, default_starting="x").outputs]
    outer = f"SELECT {', '.join(columns)}, count(*) AS rows FROM ({inner}) AS t GROUP BY {', '.join(columns)}"
    plan = compile_select(parse_select(outer), _resolve, default_starting="earliest")
    (node,) = nodes(build_target("q", VIEW_ID, 1, plan), f"{VIEW_ID}_1", "reader")
    return node


def _resolve(parts: Any, position: int | None) -> Any:
    return RELATION


class Logged(Fed):
    """One sub-query, and what its log has said so far."""

    def __init__(self, database: Any, writer: Any, node: Node) -> None:
        super().__init__(database, writer)
        assert isinstance(node.tables, GroupTables)
        spoken = replace(node.tables.group_log, along=None)  # what goes along is not in the log
        target = replace(node.side_target("q", VIEW_ID, 0), group_log=spoken)
        self.log, self.rows_text, self._targets = node.tables.log, spoken.rows, (target,)
        with writer.transaction():
            for statement in node.tables.create_statements():
                writer.execute(statement)
        self.known: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        self.changes = 0

    def select(self, sql: str) -> list[tuple[Any, ...]]:
        with self._database.cursor() as cursor:
            return cursor.execute(sql).fetchall()

    def follow(self) -> None:
        """Takes in what the log says and has not been read yet."""
        rows = self.select(f"SELECT deleted, {', '.join(self.log.columns)} FROM {self.log.qualified} ORDER BY seq")
        for deleted, *row in rows[self.changes :]:
            key = tuple(row[: self.log.key_columns])
            if deleted:
                del self.known[key]
            else:
                assert self.known.get(key) != tuple(row), "what did not change is not in the log"
                self.known[key] = tuple(row)
        self.changes = len(rows)

    def groups(self) -> list[tuple[Any, ...]]:
        return self.select(self.rows_text)


def random_rows(chance: random.Random, count: int) -> list[dict[str, Any]]:
    return [
        {
            "k": chance.choice(("a", "", "😀", None)),
            "i": chance.choice((1, 2, 3, None)),
            "l": chance.choice((chance.randint(-9, 9), None)),
            "n": chance.choice((chance.randint(0, 9), None)),
            "x": chance.choice((chance.uniform(-1, 1), None)),
        }
        for _ in range(count)
    ]


@pytest.mark.parametrize("inner", INNER)
def test_changes_make_the_groups(tmp_path: Path, inner: str) -> None:
    print("seed", SEED)
    chance = random.Random(SEED)
    node = node_of(inner)
    with writer_in(tmp_path) as (database, writer):
        logged = Logged(database, writer, node)
        logged.follow()
        assert logged.known == {tuple(row[: logged.log.key_columns]): row for row in logged.groups()}
        for _ in range(12):
            logged.feed(random_rows(chance, chance.choice((1, 2, 8))), partial=chance.random() < 0.5)
            logged.follow()
            assert sorted(map(str, logged.known.values())) == sorted(map(str, logged.groups()))
        assert logged.changes > 4


def test_the_one_row_of_an_aggregate_without_keys_is_there_from_the_start(tmp_path: Path) -> None:
    with writer_in(tmp_path) as (database, writer):
        logged = Logged(database, writer, node_of("SELECT count(*) AS n, max(i) AS i FROM events"))
        logged.follow()
        assert [row[:2] for row in logged.known.values()] == [(0, None)]
        logged.feed([{"i": 7}, {"i": None}])
        logged.follow()
        assert [row[:2] for row in logged.known.values()] == [(2, 7)]


def test_having_takes_groups_in_and_out(tmp_path: Path) -> None:
    with writer_in(tmp_path) as (database, writer):
        logged = Logged(database, writer, node_of("SELECT k, count(*) AS n FROM events GROUP BY k HAVING sum(i) > 5"))
        for rows, expected in (
            ([{"k": "a", "i": 4}, {"k": None, "i": 9}], [(None, 1)]),
            ([{"k": "a", "i": 3}, {"k": None, "i": -8}], [("a", 2)]),
            ([{"k": "a", "i": -3}], []),
        ):
            logged.feed(rows)
            logged.follow()
            assert [row[1:3] for row in logged.known.values()] == expected


def test_only_what_the_outer_query_reads_is_kept(tmp_path: Path) -> None:
    """A change of a column that nobody reads is none."""
    inner = "SELECT k, max(i) AS m, count(*) AS n, avg(x) AS a FROM events GROUP BY k"
    plan = compile_select(
        parse_select(f"SELECT sum(m) AS s FROM ({inner}) AS t"), _resolve, default_starting="earliest"
    )
    (node,) = nodes(build_target("q", VIEW_ID, 1, plan), f"{VIEW_ID}_1", "reader")
    assert [column.name for column in node.scan.columns] == ["key 0", "1.m", "rowtime"]
    with writer_in(tmp_path) as (database, writer):
        logged = Logged(database, writer, node)
        logged.feed([{"k": "a", "i": 4}])
        logged.feed([{"k": "a", "i": 3}])
        logged.follow()
        assert logged.changes == 1


ALONG = (
    """SELECT n, count(*) AS c, sum(s) AS s
       FROM (SELECT k, i, count(*) AS n, sum(l) AS s FROM events GROUP BY k, i) AS t GROUP BY n""",
    """SELECT k, max(s) AS m, avg(n) AS a, count(DISTINCT n) AS d, count(*) FILTER (WHERE n > 2) AS f
       FROM (SELECT k, i, count(*) AS n, sum(l) AS s FROM events GROUP BY k, i HAVING count(*) > 1) AS t
       WHERE s > -5 GROUP BY k""",
    "SELECT count(*) AS c, min(x) AS x, bool_or(x > 0) AS b FROM (SELECT k, max(x) AS x FROM events GROUP BY k) AS t",
    """SELECT CASE WHEN x < 0 THEN NULL ELSE n + 1 END AS b, count(*) AS c
       FROM (SELECT i, count(*) AS n, min(x) AS x FROM events GROUP BY i) AS t GROUP BY 1""",
    """SELECT max(c) AS m, count(*) AS levels FROM (
         SELECT n, count(*) AS c FROM (SELECT k, i, count(*) AS n FROM events GROUP BY k, i) AS a GROUP BY n) AS b""",
)


@pytest.mark.parametrize("sql", ALONG)
def test_what_duckdb_evaluates_changes_in_the_same_transaction(tmp_path: Path, sql: str) -> None:
    """After each batch the outer query has what DuckDB computes of all rows at once; the logs stay empty."""
    print("seed", SEED)
    chance = random.Random(SEED)
    outer = build_target("q", VIEW_ID, 1, compile_select(parse_select(sql), _resolve, default_starting="earliest"))
    made = list(nodes(outer, f"{VIEW_ID}_1", "reader"))
    with writer_in(tmp_path) as (database, writer):
        fed = fed_along(database, writer, outer, made)
        rows: list[dict[str, Any]] = []
        for _ in range(10):
            more = random_rows(chance, chance.choice((1, 3, 10)))
            fed.feed(more, partial=chance.random() < 0.5)
            rows += more
            assert plain(fed.rows()) == plain(expected(database, sql, rows))
        with database.cursor() as cursor:
            for node in made:
                assert cursor.execute(f"SELECT count(*) FROM {node.tables.log.qualified}").fetchall() == [(0,)]


def fed_along(database: Any, writer: Any, outer: Target, made: list[Node]) -> Fed:
    fed = Fed(database, writer, made[-1].side_target("q", VIEW_ID, 0))
    with writer.transaction():
        writer.create_state(outer.state, layout_of(outer), outer.outbox)
        for node in made:
            for table in node.tables.tables:
                writer.execute(f'DROP TABLE IF EXISTS "_state"."{table}"')
            for statement in node.tables.create_statements():
                writer.execute(statement)
    return fed


def test_what_goes_along_is_sent_on_in_the_same_transaction(tmp_path: Path) -> None:
    """The outbox's upserts and deletions of the outer query make the rows that it has."""
    print("seed", SEED)
    chance = random.Random(SEED)
    plan = compile_select(parse_select(ALONG[0]), _resolve, default_starting="earliest")
    outer = with_outbox(build_target("q", VIEW_ID, 1, plan))
    assert outer.outbox is not None
    made = list(nodes(outer, f"{VIEW_ID}_1", "reader"))
    known: dict[Any, tuple[Any, ...]] = {}
    sent, deletions = 0, 0
    with writer_in(tmp_path) as (database, writer):
        fed = fed_along(database, writer, outer, made)
        for _ in range(10):
            fed.feed(random_rows(chance, chance.choice((1, 3, 10))))
            with database.cursor() as cursor:
                pending = outbox.pending(cursor, outer.outbox, sent, 1000)
            for deleted, row in [] if pending is None else zip(pending.deleted, pending.rows.to_pylist(), strict=True):
                deletions += deleted
                known.pop(row["n"], None)
                if not deleted:
                    known[row["n"]] = tuple(row.values())
            sent = sent if pending is None else pending.last
            assert plain(list(known.values())) == plain(fed.rows())
    assert deletions > 0


def expected(database: Any, sql: str, rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    kinds = {"k": pa.string(), "i": pa.int32(), "l": pa.int64(), "x": pa.float64()}
    table = pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in kinds.items()})
    with database.cursor() as cursor:
        cursor.register("events", table)
        return cursor.execute(sql).fetchall()


def plain(rows: list[tuple[Any, ...]]) -> list[str]:
    """Averages have six digits here, and are doubles there."""
    return sorted(str([v if v is None or isinstance(v, str) else round(float(v), 5) for v in row]) for row in rows)


def test_what_needs_spark_goes_through_the_log() -> None:
    counted = "(SELECT k, count(*) AS n FROM events GROUP BY k) AS t"
    for sql in (
        f"SELECT upper(k) AS k, sum(n) AS n FROM {counted} GROUP BY 1",
        f"SELECT string_agg(k, ',') AS ks FROM {counted}",
        "SELECT max(n) AS m FROM (SELECT count(*) AS n FROM events) AS t",
        "SELECT count(*) AS m FROM (SELECT k FROM events GROUP BY CUBE (k)) AS t",
    ):
        (node,) = nodes(
            build_target("q", VIEW_ID, 1, compile_select(parse_select(sql), _resolve, default_starting="x")), "t", "r"
        )
        assert isinstance(node.tables, GroupTables)
        assert node.tables.group_log.along is None
