"""What becomes of the groups of a sub-query, batch by batch: the log's changes make the groups that there are."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest
from streaming_states import RELATION, Fed, writer_in

from mvserver.compiler.compile import compile_select
from mvserver.sql.dialect import parse_select
from mvserver.streaming.feeds import Node, nodes
from spark_sinks.duckdb.group_logs import GroupTables

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
    (node,) = nodes(plan.scan, f"{VIEW_ID}_1", "reader")
    return node


def _resolve(parts: Any, position: int | None) -> Any:
    return RELATION


class Logged(Fed):
    """One sub-query, and what its log has said so far."""

    def __init__(self, database: Any, writer: Any, node: Node) -> None:
        super().__init__(database, writer)
        target = node.side_target("q", VIEW_ID, 0)
        assert isinstance(node.tables, GroupTables)
        self.log, self.rows_text, self._targets = node.tables.log, node.tables.group_log.rows, (target,)
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
            "k": chance.choice(("a", "b", "c", None)),
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
    (node,) = nodes(plan.scan, f"{VIEW_ID}_1", "reader")
    assert [column.name for column in node.scan.columns] == ["key 0", "1.m", "rowtime"]
    with writer_in(tmp_path) as (database, writer):
        logged = Logged(database, writer, node)
        logged.feed([{"k": "a", "i": 4}])
        logged.feed([{"k": "a", "i": 3}])
        logged.follow()
        assert logged.changes == 1
