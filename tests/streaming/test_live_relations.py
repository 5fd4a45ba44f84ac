"""What the relations of mv_catalog say, over a real catalog and a real views' file; the engine's word is given."""

from __future__ import annotations

import datetime as dt
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from catalog.model import Query, Relation, Store
from catalog.store import Catalog
from mvserver.resume_tokens import Token
from mvserver.serving.engine.database import Database
from mvserver.serving.fast.finished_rows import FinishedStatus
from mvserver.streaming.api import Backfill, PipelineState, PipelineStatus, QueryState, QueryStatus
from mvserver.streaming.live_relations import finished_relation, live_relations
from mvserver.streaming.queries.status import sink_pipeline_status
from mvserver.streaming.watching.watched_views import HistoryStatus
from spark_sinks.base import KeptHistory
from spark_sinks.duckdb.history.reading import Kept
from spark_sinks.duckdb.writer import Writer
from tests.streaming.states import Fed, target, writer_in

VIEW_SQL = "SELECT k, count(*) AS n FROM events GROUP BY k"


def new_id() -> str:
    return str(uuid.uuid4())


class Engine:
    def __init__(self) -> None:
        self.known: list[QueryStatus] = []
        self.reading: list[PipelineStatus] = []
        self.kept_histories: list[HistoryStatus] = []

    def statuses(self) -> list[QueryStatus]:
        return self.known

    def pipelines(self) -> list[PipelineStatus]:
        return self.reading

    def histories(self) -> list[HistoryStatus]:
        return self.kept_histories


class World:
    def __init__(self, catalog: Catalog, database: Database, writer: Writer) -> None:
        self.catalog, self.database, self.writer, self.engine = catalog, database, writer, Engine()
        with catalog.transaction():
            self.store = catalog.stores.add(Store(new_id(), 0, "broker", "KAFKA", (), "postgres", 1.5, 1.5))
            self.stream = self.relation("events", "stream")
        self._relations = live_relations(catalog, self.engine, writer)  # type: ignore[arg-type]

    def relation(self, name: str, kind: str) -> Relation:
        """Inside a transaction."""
        schema = self.catalog.schemas.get(self.catalog.databases.get("postgres").id, "public")
        at = {"store_id": self.store.id, "entity": name} if kind == "stream" else {}
        return self.catalog.relations.add(
            Relation(new_id(), 0, schema.id, name, kind, (), (), f"CREATE ... {name}", "postgres", 2.25, **at)
        )

    def query(self, sink: Relation, kind: str) -> Query:
        """Inside a transaction: it reads the stream."""
        made = Query(
            new_id(), kind, "SELECT ...", ("postgres", "public"), (self.stream.id,), sink.id, "postgres",
            float(len(self.engine.known)), "{}",
        )  # fmt: skip
        self.catalog.queries.add(made)
        return made

    def view(self, name: str, **status: Any) -> str:
        """The view's id; its query's status is given."""
        with self.catalog.transaction():
            view = self.relation(name, "materialized view")
            made = self.query(view, "materialized_view")
        self.engine.known.append(QueryStatus(made.id, status.pop("state", QueryState.RUNNING), **status))
        return view.id

    def rows(self, name: str) -> list[dict[str, Any]]:
        return self._relations[name]().to_pylist()

    def columns(self, name: str, *columns: str) -> list[tuple[Any, ...]]:
        return [tuple(row[column] for column in columns) for row in self.rows(name)]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    catalog = Catalog.open(tmp_path / "catalog.db")
    with writer_in(tmp_path) as (database, writer):
        yield World(catalog, database, writer)
    catalog.close()


def test_every_relation_has_its_columns_where_there_is_nothing_to_say(tmp_path: Path, world: World) -> None:
    relations = live_relations(world.catalog, world.engine, world.writer)  # type: ignore[arg-type]
    assert set(relations) == {
        "queries", "views", "backfills", "pipelines", "dependencies", "ledger", "rejected_rows",
        "late_rows", "schema_registries", "watched_views",
    }  # fmt: skip
    for name in set(relations) - {"dependencies"}:
        assert relations[name]().num_rows == 0
        assert relations[name]().num_columns > 5


def test_views_have_rows_and_lag(world: World) -> None:
    behind = world.view(
        "behind", epoch=4, lag_records=7, last_confirmed_at=time.time() - 60, filled=True, last_change_at=1.5
    )
    world.view("here", lag_records=0, last_confirmed_at=time.time() - 60, caught_up=True)
    world.view("new", state=QueryState.STARTING)
    fed = Fed(world.database, world.writer, target(VIEW_SQL))
    fed.feed([{"k": "a"}, {"k": "b"}, {"k": "a"}, {"k": None}])
    made = target(VIEW_SQL)
    with world.writer.transaction():
        world.writer.execute(f'CREATE VIEW "_views"."{behind}" AS SELECT * FROM "_views"."{made.view_id}"')
    assert world.columns("views", "view", "rows", "bytes", "epoch", "lag_records", "caught_up", "filled") == [
        ("postgres.public.behind", 3, 0, 4, 7, False, True),
        ("postgres.public.here", None, None, 0, 0, True, False),
        ("postgres.public.new", None, None, 0, None, False, False),
    ]
    seconds = [row["lag_seconds"] for row in world.rows("views")]
    assert 60 <= seconds[0] < 70
    assert seconds[1:] == [0.0, None]
    assert world.rows("views")[0]["last_change_at"] == dt.datetime(1970, 1, 1, 0, 0, 1, 500_000, dt.UTC)


def test_late_rows_of_the_windows_of_a_sub_query_are_those_of_its_view(world: World) -> None:
    world.view("nested")
    query_id = world.engine.known[-1].query_id
    with world.writer.transaction():
        for subscriber_id, mark, late in ((f"{query_id}/l", 90000000, 2), (f"{query_id}/r", 60000000, 1)):
            world.writer.execute(f"INSERT INTO \"_ledger\".windows VALUES ('{subscriber_id}', {mark}, {late})")
        world.writer.execute(
            f"INSERT INTO \"_ledger\".late_rows VALUES ('{query_id}/l', 1, '0:7', 1500000, TIMESTAMP 'epoch', "
            "TIMESTAMP 'epoch', 90000000, now())"
        )
    for relation, name in (("views", "view"), ("queries", "sink")):
        assert world.columns(relation, name, "watermark", "late_rows") == [
            ("postgres.public.nested", dt.datetime(1970, 1, 1, 0, 1, tzinfo=dt.UTC), 3)
        ]
    assert world.columns("late_rows", "view", "position") == [("postgres.public.nested", "0:7")]


def test_late_rows_and_watermarks_of_windowed_views(world: World) -> None:
    world.view("minutes", filled=True)
    world.view("plain", filled=True)
    query_id = next(q.id for q in world.catalog.queries.all())
    with world.writer.transaction():
        for statement in (
            f"INSERT INTO \"_ledger\".windows VALUES ('{query_id}', 90000000, 2)",
            f"INSERT INTO \"_ledger\".late_rows VALUES ('{query_id}', 1, '0:7', 1500000, TIMESTAMP 'epoch', "
            "TIMESTAMP '1970-01-01 00:01:00', 90000000, TIMESTAMPTZ '2024-01-01 00:00:00+00')",
            f"INSERT INTO \"_ledger\".late_rows VALUES ('{query_id}', 2, '0:8', NULL, NULL, NULL, NULL, "
            "TIMESTAMPTZ '2024-01-01 00:00:01+00')",
            "INSERT INTO \"_ledger\".late_rows VALUES ('dropped', 1, '0:9', NULL, NULL, NULL, NULL, now())",
        ):
            world.writer.execute(statement)
    mark = dt.datetime(1970, 1, 1, 0, 1, 30, tzinfo=dt.UTC)
    assert world.columns("views", "view", "watermark", "late_rows") == [
        ("postgres.public.minutes", mark, 2),
        ("postgres.public.plain", None, None),
    ]
    columns = ("relation", "view", "position", "event_time", "window_end", "watermark")
    names = ("postgres.public.events", "postgres.public.minutes")
    assert world.columns("late_rows", *columns) == [
        (*names, "0:8", None, None, None),
        (*names, "0:7", mark.replace(minute=0, second=1, microsecond=500_000), dt.datetime(1970, 1, 1, 0, 1), mark),
    ]


def test_the_size_of_a_view_is_that_of_its_blocks(world: World) -> None:
    made = target(VIEW_SQL)
    fed = Fed(world.database, world.writer, made)
    fed.feed([{"k": f"key {n} of many, each its own"} for n in range(30_000)])
    with world.database.cursor() as cursor:
        cursor.execute("CHECKPOINT")
        ((block,),) = cursor.execute(
            "SELECT block_size FROM pragma_database_size() WHERE database_name = current_database()"
        ).fetchall()
    size = world.writer.view_sizes()[made.view_id]
    assert size.rows == 30_000
    assert size.stored_bytes % block == 0
    assert block <= size.stored_bytes <= 20 * block


def test_backfills_are_of_views_that_have_not_all_their_history(world: World) -> None:
    world.view("filled", filled=True)
    world.view("filling", state=QueryState.FILLING, backfill=Backfill(200, 50, 7.5))
    world.view("starting", state=QueryState.STARTING)
    assert world.columns("backfills", "view", "state", "rows_done", "rows_total", "share", "seconds_left") == [
        ("postgres.public.filling", "FILLING", 50, 200, 0.25, 7.5),
        ("postgres.public.starting", "STARTING", None, None, None, None),
    ]
    assert (Backfill(0, 0).share, Backfill(3, 5).share, Backfill(3, 0).share) == (1.0, 1.0, 0.0)


def test_pipelines_name_what_they_read(world: World) -> None:
    world.engine.reading = [
        PipelineStatus("p1", world.stream.id, PipelineState.STALLED, 3, 2, '{"at": 1}', None, 1.5, "it is away"),
        PipelineStatus("p2", "dropped", PipelineState.RUNNING, 1, 1, None, None, 0.0),
    ]
    assert world.columns("pipelines", "id", "store", "entity", "state", "error", "queries", "generation", "position",
                         "latest_position", "rows_in_per_second") == [
        ("p1", "broker", "events", "STALLED", "it is away", 2, 3, '{"at": 1}', None, 1.5),
        ("p2", None, None, "RUNNING", None, 1, 1, None, None, 0.0),
    ]  # fmt: skip


def test_dependencies_are_the_direct_ones(world: World) -> None:
    world.view("v")
    with world.catalog.transaction():
        writing = world.query(world.relation("copies", "stream"), "insert_into")
    stream, copies = "postgres.public.events", "postgres.public.copies"
    assert set(world.columns("dependencies", "object", "kind", "depends_on", "depends_on_kind")) == {
        (stream, "stream", "broker", "store"),
        (copies, "stream", "broker", "store"),
        ("postgres.public.v", "materialized view", stream, "stream"),
        (writing.id, "query", stream, "stream"),
        (writing.id, "query", copies, "stream"),
    }


def test_the_ledger_shows_the_last_batches_first(world: World) -> None:
    fed = Fed(world.database, world.writer, target(VIEW_SQL))
    fed.feed([{"k": "a"}])
    fed.feed([{"k": "b"}, {"k": "c"}])
    shown = world.columns("ledger", "pipeline", "generation", "batch_id", "start_position", "end_position", "records")
    assert shown == [("p", 1, 1, '{"at":1}', '{"at":2}', 2), ("p", 1, 0, '{"at":0}', '{"at":1}', 1)]
    committed = [row["committed_at"] for row in world.rows("ledger")]
    assert committed[0] >= committed[1]
    assert committed[0].tzinfo is not None


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        (QueryState.STARTING, PipelineState.STARTING),
        (QueryState.RUNNING, PipelineState.RUNNING),
        (QueryState.STALLED, PipelineState.STALLED),
        (QueryState.FAILED, PipelineState.FAILED),
        (QueryState.TERMINATED, PipelineState.IDLE),
    ],
)
def test_a_query_that_writes_is_a_pipeline_of_its_own(state: QueryState, shown: PipelineState) -> None:
    status = QueryStatus("q1", state, error="why", position='{"at": 1}', rows_in_per_s=2.5)
    kept = KeptHistory("slot", 7)
    assert sink_pipeline_status(status, "r1", 4, kept) == PipelineStatus(
        "q1", "r1", shown, 4, 1, '{"at": 1}', None, 2.5, "why", "batch", "a query that writes is read in batches", kept
    )


def test_views_that_are_kept_finished_have_their_names_and_are_for_those_who_see_them(world: World) -> None:
    view_id = world.view("sales")
    found = [FinishedStatus(view_id, "ready", 7, 2_048, 3)]
    relation = finished_relation(world.catalog, lambda: found)
    view = world.catalog.relations.by_id(view_id)
    assert view is not None
    assert relation().to_pylist() == [
        {
            "view": "postgres.public.sales", "state": "ready", "rows": 7, "bytes": 2_048, "answered": 3,
            "_o": view.oid, "_r": 0,
        }
    ]  # fmt: skip
    found.clear()
    assert relation().num_rows == 0
    assert relation().schema.names[:5] == ["view", "state", "rows", "bytes", "answered"]


def test_watched_views_tell_how_far_back_they_go(world: World) -> None:
    view = world.view("watched", filled=True)
    since, last = (dt.datetime(2026, 1, 1, hour, tzinfo=dt.UTC) for hour in (1, 2))
    kept = Kept(Token("0" * 16, 3), since, Token("0" * 16, 9), 4, last)
    world.engine.kept_histories = [HistoryStatus(view, True, 2, 6, 700, 60.0, kept)]
    (row,) = world.rows("watched_views")
    assert {name: value for name, value in row.items() if not name.startswith("_")} == {
        "view": "postgres.public.watched", "watchers": 2, "always": True, "retention_seconds": 60.0, "changes": 6,
        "bytes": 700, "oldest_at": since, "oldest_token": f"{'0' * 16}-3", "last_change_at": last,
        "latest_token": f"{'0' * 16}-9",
    }  # fmt: skip
