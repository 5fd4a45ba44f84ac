"""Batches of a log that DuckDB evaluates: the same views as where Spark does, over random rows of each kind of log."""

from __future__ import annotations

import datetime as dt
import math
import os
import random
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mvserver.compiler.compile import compile_select
from mvserver.compiler.in_duckdb import in_duckdb
from mvserver.compiler.plans import ScanColumn
from mvserver.compiler.shape import RelationShape
from mvserver.sql.dialect import parse_select
from mvserver.sql.types import parse_type
from mvserver.streaming.pipeline.evaluated_batch import Share
from mvserver.streaming.pipeline.evaluator import BatchEvaluator
from mvserver.streaming.pipeline.log_batches import LogBatches, log_program
from mvserver.streaming.pipeline.pipeline import Pipeline, PipelineServices
from mvserver.streaming.pipeline.subscribers import Subscriber
from mvserver.streaming.spark.session import SparkGate
from mvserver.streaming.spark.types import spark_schema
from mvserver.views.feeds import nodes
from mvserver.views.finishing import layout_of
from mvserver.views.targets import Target, build_target
from spark_sinks.duckdb.batch_plans import BatchCommit
from spark_sinks.duckdb.changes.log_reader import LogReader
from spark_sinks.duckdb.changes.logs import Log
from spark_sinks.duckdb.writer import Writer
from tests.streaming.states import COLUMNS, RELATION, writer_in

PEOPLE = RelationShape(
    "r2", "db.public.people", "changelog",
    tuple(ScanColumn(name, parse_type(kind), name == "k") for name, kind in COLUMNS.items()),
    primary_key=("k",), key_format="json",
)  # fmt: skip
PAIRS = "FROM events AS a JOIN events AS b WITHIN 5 SECONDS ON a.k = b.k"
VERSIONS = "FROM events AS a LEFT JOIN people AS p ON a.k = p.k"
CURRENT = "FROM people AS p JOIN people AS q ON p.i = q.i"
GROUPS = "FROM (SELECT k, i, count(*) AS c, sum(n) AS s FROM events GROUP BY k, i) AS g"
QUERIES = (
    f"SELECT a.k, count(*) AS n, sum(b.i) AS s, avg(b.n) AS m, max(b.x) AS g, min(b.t) AS e {PAIRS} GROUP BY a.k",
    f"SELECT a.i, b.n, count(b.l) AS c, count(DISTINCT b.k) AS d {PAIRS} GROUP BY a.i, b.n",
    f"SELECT count(*) FILTER (WHERE a.i > b.i) AS n, sum(a.n * 2) FILTER (WHERE b.k = 'b') AS s {PAIRS} "
    "WHERE a.l IS NULL OR a.l % 3 <> 1",
    f"SELECT a.k, b.i, sum(b.l) AS s {PAIRS} GROUP BY GROUPING SETS ((a.k), (b.i), ())",
    f"SELECT a.k, b.i + 1 AS i, b.n, b.w, b.x, b.r, b.t, CASE WHEN a.i > 3 THEN 'more' END AS c {PAIRS} WHERE a.i > 1",
    f"SELECT a.k, p.i, coalesce(p.n, 0) AS n, p.t {VERSIONS}",
    f"SELECT p.k, count(*) AS n, stddev_samp(a.x) AS v {VERSIONS} GROUP BY p.k HAVING count(*) > 1",
    f"SELECT p.k AS one, q.k AS other, p.n + q.n AS n {CURRENT} WHERE p.l > 2",
    f"SELECT q.k, count(*) AS n, sum(p.n) AS s, min(p.i) AS i, count(DISTINCT p.l) AS d {CURRENT} GROUP BY q.k",
    f"SELECT g.c, count(*) AS n, sum(g.s) AS s, max(g.k) AS k {GROUPS} WHERE g.i > 1 GROUP BY g.c",
    "SELECT k, count(*) AS n FROM (SELECT k, i FROM events UNION ALL SELECT k, i FROM events) AS u GROUP BY k",
)
CHAINS = (
    f"SELECT a.k, b.i + 1 AS i, p.n, p.t {PAIRS} LEFT JOIN people AS p ON b.k = p.k",
    f"SELECT a.k, a.n, p.k AS p, c.x {VERSIONS} LEFT JOIN events AS c WITHIN 5 SECONDS ON a.i = c.i AND p.l < c.l",
    "SELECT t.s, c.k FROM (SELECT a.k, a.l + b.l AS s FROM events AS a JOIN events AS b WITHIN 5 SECONDS ON a.k = b.k "
    "WHERE a.i > 1) AS t LEFT JOIN events AS c WITHIN 5 SECONDS ON t.k = c.k AND t.s = c.l",
    f"SELECT a.k FROM events AS a JOIN events AS b WITHIN 5 SECONDS ON a.k = b.k UNION ALL SELECT p.k {VERSIONS}",
)  # fmt: skip
SPARKS = (
    f"SELECT a.x, count(*) AS n {PAIRS} GROUP BY a.x",
    f"SELECT upper(a.k) AS k, count(*) AS n {PAIRS} GROUP BY upper(a.k)",
    f"SELECT first_value(b.i) AS i {PAIRS}",
    f"SELECT array_agg(b.i) AS i {PAIRS}",
    f"SELECT a.k {PAIRS} WHERE a.k LIKE 'a%'",
)


def target(sql: str) -> Target:
    relations = {"events": RELATION, "people": PEOPLE}
    plan = compile_select(parse_select(sql), lambda parts, _: relations[parts[-1]], default_starting="earliest")
    return build_target("q", "00000000-0000-0000-0000-000000000001", 1, plan)


class Side:
    """A query and the log that it reads, in a file of its own; or the left side of its join, which reads a log, too."""

    def __init__(self, writer: Writer, sql: str, *, inner: bool = False) -> None:
        self.writer, self.target = writer, target(sql)
        node, *below = nodes(self.target, "v_1", "reader")
        with writer.transaction():
            writer.create_state(self.target.state, layout_of(self.target))
            for each in (node, *below):
                for statement in each.tables.create_statements():
                    writer.execute(statement)
        self._log_above: Log = node.tables.log
        if inner:
            self.target, node = node.side_target("q", self.target.view_id, 0), below[0]
        self.log: Log = node.tables.log
        self.reader = LogReader(self.log, spark_schema(self.target.plan.scan.columns), writer.read_cursor)
        self.share = Share(SimpleNamespace(target=self.target), {"seq": 0}, {"seq": 0}, 0)  # type: ignore[arg-type]

    def append(self, rows: list[tuple[Any, ...]]) -> None:
        start = self.share.end
        end = {"seq": start["seq"] + len(rows)}
        self.share = Share(self.share.subscriber, start, end, len(rows))
        with self.writer.read_cursor() as cursor:
            cursor.execute("SET TimeZone = 'UTC'")
            places = ", ".join("?" for _ in rows[0])
            cursor.executemany(
                f"INSERT INTO {self.log.qualified} VALUES (?, {places})",
                [(start["seq"] + i, *row) for i, row in enumerate(rows)],
            )
            cursor.execute('UPDATE "_ledger".logs SET next_seq = ?', [end["seq"]])

    def commit(self, evaluated: Any) -> None:
        assert self.writer.commit(BatchCommit(None, evaluated.merges))

    @property
    def taken(self) -> list[tuple[Any, ...]]:
        """What a side has made of the rows: what waits for the other side, and what does not wait."""
        found = [f"SELECT * EXCLUDE (seq) FROM {self._log_above.qualified}"]
        if self.target.state.table in self.writer.state_tables():  # a side of a union keeps nothing
            found.append(f'SELECT * FROM "_state"."{self.target.state.table}"')
        with self.writer.read_cursor() as cursor:
            rows = [row for query in found for row in cursor.execute(query).fetchall()]
        return sorted((tuple(_comparable(value) for value in row) for row in rows), key=repr)

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        with self.writer.read_cursor() as cursor:
            found = cursor.execute(f'SELECT * FROM "_views"."{self.target.view_id}"').fetchall()
        return sorted((tuple(_comparable(value) for value in row) for row in found), key=repr)


def _comparable(value: Any) -> Any:
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def _random_rows(chance: random.Random, log: Log, count: int) -> list[tuple[Any, ...]]:
    rows = []
    for number in range(count):
        values = [_value(chance, kind, key=i < (log.key_columns or 0)) for i, kind in enumerate(log.types)]
        deleted = log.changes and chance.random() < 0.2
        if deleted:
            values = [v if i < (log.key_columns or 0) else None for i, v in enumerate(values)]
        rows.append((_moment(number), *([deleted] if log.changes else []), *values))
    return rows


def _moment(second: int) -> dt.datetime:
    return dt.datetime(2024, 5, 17, 12, tzinfo=dt.UTC) + dt.timedelta(seconds=second)


def _value(chance: random.Random, kind: str, *, key: bool) -> Any:
    if chance.random() < 0.1:
        return None
    number = chance.randrange(4 if key else 7)
    if kind == "VARCHAR":
        return "abc,'\"x"[number % 4]
    if kind.startswith("DECIMAL"):
        return Decimal(number) / 4
    if kind in ("DOUBLE", "REAL"):
        return chance.choice((0.0, -0.0, 0.5, number * 1.0, float("nan"), float("inf")))
    if kind.startswith("TIMESTAMP"):
        return _moment(number) if kind == "TIMESTAMPTZ" else _moment(number).replace(tzinfo=None)
    return number


@pytest.fixture(scope="module")
def seed() -> int:
    found = int(os.environ.get("LOG_SEED", random.randrange(10**6)))
    print(f"LOG_SEED={found}")
    return found


@pytest.fixture
def two_writers(tmp_path: Path) -> Iterator[list[Writer]]:
    (tmp_path / "1").mkdir()
    (tmp_path / "2").mkdir()
    with writer_in(tmp_path / "1") as (_, one), writer_in(tmp_path / "2") as (_, other):
        yield [one, other]


@pytest.mark.spark
@pytest.mark.parametrize("sql", QUERIES)
def test_the_view_is_what_spark_would_have_made_of_it(
    sql: str, seed: int, two_writers: list[Writer], spark: Any
) -> None:
    own, other = (Side(writer, sql) for writer in two_writers)
    chance = random.Random(f"{seed} {sql}")
    batches = LogBatches(own.reader, own.reader)
    evaluator = BatchEvaluator(other.reader, lambda subscriber, error: pytest.fail(str(error)))
    for _ in range(3):
        rows = _random_rows(chance, own.log, 40)
        own.append(rows)
        other.append(rows)
        parts = batches.evaluate([own.share])
        assert parts is not None
        own.commit(parts[0][0])
        frame = other.reader.batch(spark, other.share.start, other.share.end)
        evaluated, _ = evaluator.evaluate(frame, [other.share], other.share.records)
        other.commit(evaluated)
        assert own.rows == other.rows
        assert own.rows, "a comparison of nothing"
        assert parts[0][0].newest_s == evaluated.newest_s


@pytest.mark.spark
@pytest.mark.parametrize("sql", CHAINS)
def test_a_side_takes_what_spark_would_have_made_of_its_log(
    sql: str, seed: int, two_writers: list[Writer], spark: Any
) -> None:
    """Joined rows that are joined again, or are one side of a union."""
    own, other = (Side(writer, sql, inner=True) for writer in two_writers)
    rows = _random_rows(random.Random(f"{seed} {sql}"), own.log, 40)
    own.append(rows)
    other.append(rows)
    parts = LogBatches(own.reader, own.reader).evaluate([own.share])
    assert parts is not None
    own.commit(parts[0][0])
    evaluator = BatchEvaluator(other.reader, lambda subscriber, error: pytest.fail(str(error)))
    evaluated, _ = evaluator.evaluate(other.reader.batch(spark, {"seq": 0}, other.share.end), [other.share], 40)
    other.commit(evaluated)
    assert own.taken == other.taken
    assert own.taken, "a comparison of nothing"


@pytest.mark.parametrize("sql", SPARKS)
def test_what_duckdb_is_not_trusted_with_is_sparks(sql: str) -> None:
    assert not in_duckdb(target(sql).plan)
    assert log_program(target(sql)) is None


def test_rows_are_counted_once_in_whatever_batches(two_writers: list[Writer]) -> None:
    side = Side(two_writers[0], f"SELECT a.k, count(*) AS n, sum(b.i) AS s {PAIRS} WHERE b.i > 1 GROUP BY a.k")
    names = [column.name for column in side.target.plan.scan.columns]
    batches = LogBatches(side.reader, side.reader)

    def row(k: str | None, i: int) -> tuple[Any, ...]:
        given = {"a.k": k, "b.i": i, "rowtime": _moment(i)}
        return (_moment(i), *(given[name] for name in names))

    for rows in ([row("a", 1), row("a", 2), row(None, 5)], [row("a", 3)], [row("b", 1)], [row(None, 7), row("c", 2)]):
        side.append(rows)
        (part,) = batches.evaluate([side.share]) or []
        evaluated, shares = part
        assert shares == [side.share]
        side.commit(evaluated)
    assert sorted(side.rows, key=str) == [("a", 2, 5), ("c", 1, 2), (None, 2, 12)]


def test_a_value_that_fails_is_left_to_spark_which_says_whose_it_is(two_writers: list[Writer]) -> None:
    side = Side(two_writers[0], f"SELECT a.k, 10 / b.i AS q {PAIRS} WHERE a.k <> 'z'")
    names = [column.name for column in side.target.plan.scan.columns]

    def row(k: str, i: int) -> tuple[Any, ...]:
        return (_moment(1), *({"a.k": k, "b.i": i, "rowtime": _moment(1)}[name] for name in names))

    batches = LogBatches(side.reader, side.reader)
    side.append([row("a", 4), row("z", 0)])
    (part,) = batches.evaluate([side.share]) or []
    side.commit(part[0])
    assert side.rows == [("a", 2)], "a row that the query does not want does not fail it"
    side.append([row("a", 0)])
    assert batches.evaluate([side.share]) is None


def test_a_pipeline_over_a_log_asks_nothing_of_spark(two_writers: list[Writer], tmp_path: Path) -> None:
    side = Side(two_writers[0], f"SELECT a.k, count(*) AS n {PAIRS} GROUP BY a.k")
    changed = threading.Event()
    services = PipelineServices(
        side.writer, SparkGate(), cast(Any, lambda given_up: None), tmp_path, 3, lambda query_ids: changed.set()
    )
    pipeline = Pipeline("reader", side.reader, services)
    pipeline.add(Subscriber(side.target, 1, {"seq": 0}, side.target.plan.scan.error_handling, filled=True))
    with side.writer.transaction() as ledger:
        ledger.add_subscriber("q", 1, "reader", {"seq": 0})
    pipeline.start({"seq": 0})
    try:
        for letters in ("aab", "abcabca", "c"):
            side.append([(_moment(1), letter, _moment(1)) for letter in letters])
            side.reader.notify()
            assert pipeline.wait(lambda: pipeline.position == side.share.end, 20)
    finally:
        pipeline.stop()
    assert side.rows == [("a", 5), ("b", 3), ("c", 3)]
    assert changed.is_set()
