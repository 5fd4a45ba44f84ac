"""UNNEST: views fed by Spark in random batches are what PostgreSQL computes over all records at once; a record counts
once where it is rejected or late, and all of its rows go with it where it is replaced."""

from __future__ import annotations

import datetime as dt
import json
import random
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mvserver.compiler.compile import compile_select
from mvserver.compiler.plans import ScanColumn
from mvserver.compiler.shape import RelationShape
from mvserver.dialect.errors.duck_errors import translate
from mvserver.serving.engine.database import Database
from mvserver.sql.dialect import parse_select
from mvserver.sql.types import parse_type
from mvserver.streaming.batch.evaluate import Evaluated, WholeProgramNeeded, evaluate_partials, evaluate_rows
from mvserver.streaming.batch.program import build_program, program_groups
from mvserver.streaming.pipeline.evaluated_batch import Share
from mvserver.streaming.pipeline.evaluator import BatchEvaluator
from mvserver.streaming.pipeline.subscribers import Subscriber
from mvserver.views.finishing import layout_of
from mvserver.views.targets import Target, build_target
from spark_sinks.base import RecordOrder
from spark_sinks.duckdb.batch_plans import BatchCommit
from spark_sinks.duckdb.ledger.ledger import LedgerEntry
from spark_sinks.duckdb.writer import Writer

pytestmark = [pytest.mark.spark, pytest.mark.postgres]

NOON = dt.datetime(2024, 5, 17, 12)
COLUMNS = {
    "id": "INTEGER",
    "k": "VARCHAR",
    "tags": "ARRAY<VARCHAR>",
    "ns": "ARRAY<INTEGER>",
    "items": "ARRAY<STRUCT<sku VARCHAR, price DECIMAL(8, 2)>>",
    "at": "TIMESTAMP",
}


def _relation(kind: str) -> RelationShape:
    columns = tuple(ScanColumn(name, parse_type(text)) for name, text in COLUMNS.items())
    if kind == "stream":
        return RelationShape("r1", "db.public.s", "stream", columns, timestamp="at")
    return RelationShape(
        "r1", "db.public.s", "changelog", columns, timestamp="at", primary_key=("id",), key_format="json"
    )


def _target(sql: str, number: int = 0, kind: str = "stream") -> Target:
    plan = compile_select(parse_select(sql), lambda parts, position: _relation(kind), default_starting="earliest")
    return build_target(f"q{number}", f"00000000-0000-0000-0000-{number:012}", 1, plan)


class _Reader:
    record_order = RecordOrder("'0'", "cast(position as bigint)")

    @property
    def positions(self) -> Any:
        return self

    def divisible(self, start: Any, end: Any, least: int) -> bool:
        return False

    def segment_ranks(self, segments: Sequence[str]) -> Sequence[int]:
        return [0 for _ in segments]

    def rejected_positions(self, records: Sequence[tuple[str, bytes | None]]) -> Sequence[str]:
        return [position for position, _ in records]


class World:
    """``records`` are values, bytes that are none, or (key, None) for a deletion."""

    def __init__(self, spark: Any, folder: Path, *targets: Target) -> None:
        self._spark, self._targets = spark, targets
        self.database = Database.open(folder / "views.duckdb")
        self.writer = Writer(self.database.cursor, translate)
        self._batch = self._place = 0
        self.trial = False
        with self.writer.transaction() as ledger:
            ledger.begin_generation("p", {"at": 0})
            for each in targets:
                self.writer.create_state(each.state, layout_of(each))

    def close(self) -> None:
        self.writer.close()
        self.database.close()

    def feed(self, records: Sequence[Any], *, partial: bool = False) -> list[Evaluated]:
        rows = []
        for record in records:
            key, value = record if isinstance(record, tuple) else (None, record)
            if isinstance(value, dict):
                key, value = json.dumps({"id": value["id"]}).encode(), json.dumps(value, default=str).encode()
            raw = [None if each is None else bytearray(each) for each in (key, value)]
            rows.append((*raw, str(self._place), NOON.replace(tzinfo=dt.UTC)))
            self._place += 1
        frame = self._spark.createDataFrame(
            rows, "key binary, value binary, position string, record_time timestamp"
        ).coalesce(1)
        found = [self._evaluated(frame, each, partial) for each in program_groups(self._targets)]
        merges = tuple(merge for each in found for merge in each.merges)
        number, self._batch = self._batch, self._batch + 1
        entry = LedgerEntry("p", 1, number, {"at": number}, {"at": number + 1}, len(records))
        commit = BatchCommit(entry, merges, found[0].rejected)
        assert self.writer.commit(commit)
        assert not self.writer.commit(commit), "the same batch again changes nothing"
        return found

    def _evaluated(self, frame: Any, targets: Sequence[Target], partial: bool) -> Evaluated:
        evaluate = evaluate_partials if partial else evaluate_rows
        if self.trial:
            try:
                return evaluate(frame, build_program(targets, trial=True), _Reader())  # type: ignore[arg-type]
            except WholeProgramNeeded:
                pass
        return evaluate(frame, build_program(targets), _Reader())  # type: ignore[arg-type]

    def rows(self, number: int = 0) -> list[tuple[Any, ...]]:
        return self.select(f'SELECT * FROM "_views"."{self._targets[number].view_id}"')

    def select(self, sql: str) -> list[tuple[Any, ...]]:
        with self.database.cursor() as cursor:
            return cursor.execute(sql).fetchall()


@pytest.fixture
def worlds(spark: Any, tmp_path: Path) -> Iterator[Any]:
    made: list[World] = []

    def make(*targets: Target) -> World:
        made.append(World(spark, tmp_path, *targets))
        return made[-1]

    yield make
    for world in made:
        world.close()


def random_value(rng: random.Random, number: int) -> dict[str, Any]:
    def array(element: Any) -> list[Any] | None:
        size = rng.choice((0, 1, 2, 3, None))
        return None if size is None else [None if rng.random() < 0.2 else element() for _ in range(size)]

    return {
        "id": number,
        "k": rng.choice(("a", "b", None)),
        "tags": array(lambda: rng.choice("xyz")),
        "ns": array(lambda: rng.randint(-3, 9)),
        "items": array(lambda: {"sku": rng.choice("pq"), "price": rng.randint(0, 900) / 4}),
        "at": NOON + dt.timedelta(seconds=rng.randint(0, 300)),
    }


def postgresql(server: Any, values: Sequence[dict[str, Any]], sql: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(server.dsn) as connection:
        connection.execute("CREATE TYPE pg_temp.item AS (sku text, price numeric(8, 2))")
        connection.execute(
            "CREATE TEMP TABLE s (id integer, k text, tags text[], ns integer[], items pg_temp.item[], at timestamp)"
        )
        for value in values:
            items = None
            if value["items"] is not None:
                each = [None if i is None else f"({i['sku']},{i['price']})" for i in value["items"]]
                items = each
            connection.execute(
                "INSERT INTO s VALUES (%s, %s, %s, %s, %s::text[]::pg_temp.item[], %s)",
                [value["id"], value["k"], value["tags"], value["ns"], items, value["at"]],
            )
        found = connection.execute(sql.encode()).fetchall()
        connection.rollback()
    return found


def _sorted(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    plain = [tuple(round(v, 4).normalize() if isinstance(v, Decimal) else v for v in row) for row in rows]
    return sorted(plain, key=lambda row: [(value is None, str(value)) for value in row])


QUERIES = [
    "SELECT id, tag, n FROM s CROSS JOIN UNNEST(tags) WITH ORDINALITY AS t(tag, n) WHERE tag <> 'y' OR n > 1",
    "SELECT id, i.* FROM s JOIN UNNEST(items) AS i (name, price) ON i.price > 20 AND s.id % 2 = 0",
    "SELECT id, a, b, o FROM s CROSS JOIN UNNEST(tags, ns) WITH ORDINALITY AS t(a, b, o)",
    "SELECT id, tag, m FROM s, UNNEST(tags) AS tag LEFT JOIN UNNEST(array_append(ns, length(tag))) AS m ON true",
    "SELECT id, part FROM (SELECT id, k || '-' || id AS text FROM s WHERE k IS NOT NULL) AS q, "
    "UNNEST(string_to_array(q.text, '-')) AS part",
]
GROUPED = [
    "SELECT tag, count(*) AS n, count(DISTINCT id) AS ids, min(id) AS least FROM s, UNNEST(tags) AS tag GROUP BY tag",
    "SELECT k, sum(price) AS total, avg(price) AS mean, string_agg(DISTINCT sku, ',') AS skus "
    "FROM s LEFT JOIN UNNEST(items) AS i ON true GROUP BY k",
    "SELECT k, tag || '!' AS t, count(*) AS n, sum(id) AS total FROM s, LATERAL UNNEST(tags) AS tag "
    "GROUP BY k, tag || '!' HAVING sum(id) > 20",
    "SELECT count(*) AS n, sum(id) AS total FROM s, UNNEST(s.tags) AS tag",
    "SELECT DISTINCT tag FROM s, UNNEST(tags) AS tag",
]


@pytest.mark.parametrize(
    "queries", [QUERIES[:3], pytest.param([*QUERIES[3:], *GROUPED], marks=pytest.mark.night)], ids=["some", "others"]
)
def test_rows_are_those_of_postgresql(worlds: Any, postgres_server: Any, queries: list[str]) -> None:
    seed = 41
    print(f"seed {seed}")
    rng = random.Random(seed)
    values = [random_value(rng, number) for number in range(60)]
    world = worlds(*(_target(sql, number) for number, sql in enumerate(queries)))
    world.feed(values)
    for number, sql in enumerate(queries):
        assert _sorted(world.rows(number)) == _sorted(postgresql(postgres_server, values, sql)), sql


@pytest.mark.parametrize(
    "queries", [GROUPED[:2], pytest.param(GROUPED[2:], marks=pytest.mark.night)], ids=["some", "others"]
)
def test_partial_aggregates_are_of_elements(worlds: Any, postgres_server: Any, queries: list[str]) -> None:
    rng = random.Random(42)
    values = [random_value(rng, number) for number in range(60)]
    world = worlds(*(_target(sql, number) for number, sql in enumerate(queries)))
    world.feed(values[:25], partial=True)
    world.feed(values[25:], partial=True)
    for number, sql in enumerate(queries):
        assert _sorted(world.rows(number)) == _sorted(postgresql(postgres_server, values, sql)), sql


def test_a_rejected_record_counts_once(worlds: Any) -> None:
    world = worlds(_target("SELECT id, a, b FROM s LEFT JOIN UNNEST(tags, ns) AS t(a, b) ON true"))
    good = {"id": 1, "k": "a", "tags": ["x", "y"], "ns": [7], "items": None, "at": NOON}
    world.trial = True
    (found,) = world.feed([b'{"id": "no"}', good, {**good, "id": 2, "tags": [], "ns": None}, b"rubbish"])
    assert [row.position for row in found.rejected] == ["0", "3"]
    assert found.rejected_counts == {"r1": 2}
    assert sorted(world.rows(), key=str) == [(1, "x", 7), (1, "y", None), (2, None, None)]


def test_windows_count_elements_and_late_records_once(worlds: Any) -> None:
    sql = (
        "SELECT window_start, tag, count(*) AS n FROM TUMBLE(s, SIZE 10 SECONDS), UNNEST(tags) AS tag "
        "GROUP BY window_start, window_end, tag"
    )
    world = worlds(_target(sql), _target(sql.replace("TUMBLE(s, SIZE 10", "HOP(s, SIZE 10 SECONDS, ADVANCE BY 5"), 1))

    def value(number: int, second: int, tags: list[str]) -> dict[str, Any]:
        at = NOON + dt.timedelta(seconds=second)
        return {"id": number, "k": "a", "tags": tags, "ns": None, "items": None, "at": at}

    world.feed([value(1, 1, ["x", "x", "y"]), value(2, 25, [])])  # the watermark is that of all records
    world.feed([value(3, 2, ["x", "y", "z"]), value(4, 26, ["x", "y"])])
    late = world.select('SELECT query_id, position, window_start FROM "_ledger".late_rows ORDER BY ALL')
    first, second = NOON, NOON + dt.timedelta(seconds=20)
    assert [(query, start) for query, _, start in late] == [
        ("q0", first),
        ("q1", NOON - dt.timedelta(seconds=5)),
        ("q1", first),
    ]
    assert world.select('SELECT query_id, late FROM "_ledger".windows ORDER BY 1') == [("q0", 1), ("q1", 2)]
    assert sorted(world.rows()) == [(first, "x", 2), (first, "y", 1), (second, "x", 1), (second, "y", 1)]


CHANGED = [
    "SELECT id, tag, n FROM s, UNNEST(tags) WITH ORDINALITY AS t(tag, n)",
    "SELECT id, sku FROM s LEFT JOIN UNNEST(items) AS i ON true WHERE k IS NOT NULL",
    "SELECT tag, count(*) AS n, sum(id) AS total FROM s, UNNEST(tags) AS tag GROUP BY tag",
    "SELECT k, max(sku) AS most, min(price) AS least, count(DISTINCT price) AS d FROM s "
    "LEFT JOIN UNNEST(items) AS i ON true GROUP BY k",
]


@pytest.mark.parametrize(
    "queries", [CHANGED[::3], pytest.param(CHANGED[1:3], marks=pytest.mark.night)], ids=["some", "others"]
)
def test_a_changelogs_row_takes_all_its_elements_back(worlds: Any, postgres_server: Any, queries: list[str]) -> None:
    seed = 43
    print(f"seed {seed}")
    rng = random.Random(seed)
    world = worlds(*(_target(sql, number, "changelog") for number, sql in enumerate(queries)))
    current: dict[int, dict[str, Any]] = {}
    for size in (12, 1, 20):
        batch: list[Any] = []
        for _ in range(size):
            number = rng.randint(0, 9)
            if rng.random() < 0.25:
                batch.append((json.dumps({"id": number}).encode(), None))
                current.pop(number, None)
            else:
                current[number] = random_value(rng, number)
                batch.append(current[number])
        world.feed(batch)
        for number, sql in enumerate(queries):
            expected = postgresql(postgres_server, list(current.values()), sql)
            assert _sorted(world.rows(number)) == _sorted(expected), sql


def test_a_failing_array_fails_its_view_alone(spark: Any) -> None:
    frame = spark.createDataFrame(
        [(None, bytearray(b'{"id": 0, "tags": ["x"]}'), "0", NOON)],
        "key binary, value binary, position string, record_time timestamp",
    )
    failed: list[str] = []
    evaluator = BatchEvaluator(_Reader(), lambda subscriber, error: failed.append(f"{subscriber.query_id} {error}"))  # type: ignore[arg-type]
    targets = [
        _target("SELECT n FROM s, UNNEST(ARRAY[1 / id]) AS n", 0),
        _target("SELECT tag, count(*) AS c FROM s, UNNEST(tags) AS tag GROUP BY tag", 1),
    ]
    shares = [
        Share(Subscriber(each, 1, {"at": 0}, each.plan.scan.error_handling), {"at": 0}, {"at": 1}, 1)
        for each in targets
    ]
    _, good = evaluator.evaluate(frame, shares, 1)
    assert failed == ["q0 22012: division by zero"]
    assert [share.subscriber.query_id for share in good] == ["q1"]
