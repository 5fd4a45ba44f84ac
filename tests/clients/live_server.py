"""A server for client tests: the real catalog, DuckDB, router, session and wire; views made by hand instead of Spark.

It runs in a thread of the test process, on a free port of the loopback.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

from catalog.model import Column, Index, IndexColumn, Query, Relation, Store
from catalog.store import Catalog
from mvserver.compiler.compile import compile_select
from mvserver.compiler.plans import ContinuousPlan
from mvserver.java_functions.jars import JarFolder
from mvserver.pgcatalog.snapshot import CatalogSnapshot
from mvserver.pgwire.server import PgWireServer
from mvserver.routing.ports import Services
from mvserver.routing.router import Router
from mvserver.schema_registries import SchemaRegistryClients
from mvserver.serving.engine.database import Database
from mvserver.serving.plan.pull import DuckPullService
from mvserver.session.activity_table import activity_table, tls_table
from mvserver.session.backend import SessionBackend
from mvserver.session.catalog_directory import CatalogDirectory
from mvserver.session.cursors.cursors import cursors_table
from mvserver.session.prepared import prepared_table
from mvserver.session.services import SessionServices
from mvserver.session.settings.settings_rows import settings_table
from mvserver.sql import parse
from mvserver.stores import StoreRegistry
from mvserver.streaming.api import QueryState, QueryStatus
from mvserver.streaming.push.push_rows import PushRows
from spark_sinks.store_kind import StoreSettings


class HandMadeEngine:
    """Every query runs, except those a test gave another state."""

    def __init__(self) -> None:
        self.states: dict[str, QueryState] = {}
        self.reconciled = 0
        self.pushes: list[PushRows] = []

    def reconcile(self) -> None:
        self.reconciled += 1

    def status(self, query_id: str) -> QueryStatus:
        return QueryStatus(query_id, self.states.get(query_id, QueryState.RUNNING))

    def statuses(self) -> Sequence[QueryStatus]:
        return [self.status(query_id) for query_id in self.states]

    def restart(self, query_id: str, *, skip_rejected: bool = False) -> None:
        self.states[query_id] = QueryState.RUNNING

    def refresh(self, query_id: str) -> None:
        self.states[query_id] = QueryState.RUNNING

    def resolve_position(self, store: Store, entity: str, starting: str) -> str:
        return json.dumps({})

    def wait_until_ready(self, timeout_s: float) -> None:
        return

    def refuse_empty(self, view_ids: Sequence[str]) -> None:
        pass

    def failures(self) -> int:
        return 0

    def wait_while_filling(self, view_ids: Sequence[str], timeout_s: float) -> None:
        return

    def check_plan(self, plan: object) -> None:
        return

    def check_reading(self, store: object, relation: object, scan: object) -> None:
        return

    def subscribe(self, plan: ContinuousPlan, start_position: str) -> PushRows:
        """A push query whose rows a test puts."""
        rows = PushRows(on_close=lambda: self.pushes.remove(rows))
        self.pushes.append(rows)
        return rows


class LiveCatalogSource:
    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def generation(self) -> int:
        return self._catalog.generation

    def snapshot(self) -> CatalogSnapshot:
        return CatalogSnapshot.of(self._catalog)


class LiveServer:
    def __init__(self, folder: Path, **session_services: object) -> None:
        self.folder = folder
        self.catalog = Catalog.open(folder / "catalog.sqlite")
        self.database = Database.open(folder / "views.duckdb")
        self.engine = HandMadeEngine()
        self.files = folder / "files"
        self.files.mkdir(exist_ok=True)
        values = {"file_roots": (self.files,), "file_poll_interval": 0.05, "kafka_request_timeout": 1.0}
        self.stores = StoreRegistry(
            StoreSettings(values, certificate_folders=(), jar_directory=None, record_bytes_max=16 * 2**20)
        )
        source = LiveCatalogSource(self.catalog)
        self.pulls = DuckPullService(
            self.database,
            source,
            {
                "pg_stat_activity": lambda: activity_table(self.backend.registry.activity(), source.snapshot()),
                "pg_stat_ssl": lambda: tls_table(self.backend.registry.activity()),
                "pg_cursors": cursors_table,
                "pg_prepared_statements": prepared_table,
                "pg_settings": settings_table,
            },
        )
        self.router = Router(
            Services(
                catalog=self.catalog,
                engine=self.engine,
                stores=self.stores,
                schema_registries=SchemaRegistryClients(self.catalog, folder),
                compile_select=compile_select,
                explain_plan=lambda plan: [repr(plan)],
                pulls=self.pulls,
                store_config_dir=folder,
                jars=JarFolder(folder / "function-sources"),
            )
        )
        services = SessionServices(
            parse,
            self.router,
            self.pulls,
            self.engine,
            CatalogDirectory(self.catalog),
            **session_services,  # type: ignore[arg-type]
        )
        self.backend = SessionBackend(services)
        self.port = 0
        self.queries: dict[str, str] = {}  # of views, by name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: PgWireServer | None = None
        self._listening = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    # --- running ----------------------------------------------------------------------------------------------------
    def start(self) -> None:
        self._thread.start()
        assert self._listening.wait(30), "the server did not listen"

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopped = asyncio.Event()
        self._server = PgWireServer(self.backend, "127.0.0.1", 0)
        await self._server.start()
        self.port = self._server.port
        self._listening.set()
        await self._stopped.wait()
        await self._server.shutdown(0.0)

    def stop(self) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stopped.set)
            self._thread.join(20)
            assert not self._thread.is_alive(), "the server did not stop"
        self.backend.close()
        self.stores.close()
        self.pulls.close()
        self.database.close()
        self.catalog.close()

    # --- ways in ----------------------------------------------------------------------------------------------------
    @property
    def conninfo(self) -> str:
        return f"host=127.0.0.1 port={self.port} user=postgres dbname=postgres"

    @property
    def jdbc_url(self) -> str:
        return f"jdbc:postgresql://127.0.0.1:{self.port}/postgres?user=postgres"

    # --- views ------------------------------------------------------------------------------------------------------
    def add_view(self, name: str, columns: Sequence[Column], key: Sequence[str], rows_sql: str) -> None:
        """A materialized view whose rows are those of a DuckDB query."""
        postgres = self.catalog.databases.get("postgres")
        public = self.catalog.schemas.get(postgres.id, "public")
        view_id, query_id = str(uuid.uuid4()), str(uuid.uuid4())
        select = f"SELECT * FROM {name}_source"
        with self.database.cursor() as cursor:
            cursor.execute(f'CREATE TABLE _state."{view_id}" AS {rows_sql}')
            cursor.execute(f'CREATE VIEW _views."{view_id}" AS SELECT * FROM _state."{view_id}"')
        with self.catalog.transaction():
            view = self.catalog.relations.add(
                Relation(
                    id=view_id, oid=0, schema_id=public.id, name=name, kind="materialized view",
                    columns=tuple(columns), properties=(), owner="postgres", created_at=0.0, key_columns=tuple(key),
                    definition=f"CREATE MATERIALIZED VIEW {name} AS {select}",
                )
            )  # fmt: skip
            if key:  # as the views of client_world's PostgreSQL have one
                indexed = tuple(map(IndexColumn, key))
                self.catalog.relations.add_index(
                    view, Index(0, f"{name}_key", indexed, unique=True, nulls_distinct=False)
                )
            self.catalog.queries.add(
                Query(
                    id=query_id, kind="materialized_view", select_text=select, search_path=("postgres", "public"),
                    source_ids=(), sink_id=view_id, owner="postgres", created_at=0.0, start_position="{}",
                )
            )  # fmt: skip
        self.queries[name] = query_id

    def change(self, name: str, sql: str) -> None:
        """A committed change of a view's rows; ``{}`` in the text stands for its table."""
        postgres = self.catalog.databases.get("postgres")
        relation = self.catalog.relations.find(self.catalog.schemas.get(postgres.id, "public").id, name)
        assert relation is not None
        with self.database.cursor() as cursor:
            cursor.execute(sql.format(f'_state."{relation.id}"'))


TYPED_COLUMNS = (
    Column("id", "INTEGER", not_null=True),
    Column("flag", "BOOLEAN"),
    Column("small", "SMALLINT"),
    Column("big", "BIGINT"),
    Column("real4", "FLOAT"),
    Column("real8", "DOUBLE"),
    Column("amount", "DECIMAL(12, 2)"),
    Column("name", "VARCHAR"),
    Column("bytes", "VARBINARY"),
    Column("day", "DATE"),
    Column("clock", "TIME"),
    Column("moment", "TIMESTAMP"),
    Column("instant", "TIMESTAMP_LTZ"),
)

TYPED_ROWS = """
SELECT 1::INTEGER AS id, true AS flag, 2::SMALLINT AS small, 9007199254740993::BIGINT AS big, 1.5::FLOAT AS real4,
       0.1::DOUBLE AS real8, 12.30::DECIMAL(12, 2) AS amount, 'näme ''x''' AS name, '\\x00\\xFF'::BLOB AS bytes,
       DATE '2024-02-29' AS day, TIME '23:59:59.123456' AS clock, TIMESTAMP '2024-01-02 03:04:05.678901' AS moment,
       TIMESTAMPTZ '2024-01-02 03:04:05+00' AS instant
UNION ALL
SELECT 2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
"""


def with_views(server: LiveServer) -> LiveServer:
    server.add_view(
        "visits",
        (Column("url", "VARCHAR"), Column("visits", "BIGINT")),
        ("url",),
        "SELECT * FROM (VALUES ('./home', 30::BIGINT), ('./shop', 20::BIGINT), ('./cart', 10::BIGINT)) t(url, visits)",
    )
    server.add_view("typed", TYPED_COLUMNS, ("id",), TYPED_ROWS)
    server.add_view("numbers", (Column("n", "BIGINT"),), ("n",), "SELECT range::BIGINT AS n FROM range(100000)")
    return server


@contextlib.contextmanager
def started_again(server: LiveServer) -> Iterator[LiveServer]:
    """Another server in the folder of one that runs, and is stopped first."""
    server.stop()
    again = LiveServer(server.folder)
    again.start()
    try:
        yield again
    finally:
        again.stop()
