"""The composition: every room is made here, once, and given what it needs; nothing else knows them all.

Start order: catalog, DuckDB, listen and answer pull queries; Spark, whose JVM is launched already, comes up in the
background. Stop order: no new statements, running ones end, pipelines commit what they hold, Spark ends, files are
closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from catalog.model import Query
from catalog.store import Catalog
from mvserver import config, first_password, front_ends, limits, sqlstates
from mvserver.collector import Collector
from mvserver.compiler.compile import compile_select
from mvserver.compiler.explain import explain
from mvserver.compiler.plans import ContinuousPlan
from mvserver.compiler.view_properties import kept_properties, with_view_properties
from mvserver.dialect.errors.duck_errors import translate
from mvserver.errors import SqlError
from mvserver.failpoints import Failpoints
from mvserver.java_functions.jars import JarFolder
from mvserver.observability import announce
from mvserver.pgcatalog.snapshot import CatalogSnapshot
from mvserver.pgwire.tls import Tls
from mvserver.plugins import load_extensions, load_rewriter
from mvserver.private_files import refusing_unusable
from mvserver.process_end import START_ANEW, end_at_once
from mvserver.routing import lookup, ports
from mvserver.routing.functions import KnownFunctions
from mvserver.routing.router import Router
from mvserver.schema_registries import SchemaRegistryClients
from mvserver.served_views import CatalogViews
from mvserver.serving.api import Version
from mvserver.serving.engine import data_identity
from mvserver.serving.engine.database import FILE_NAME as VIEWS_FILE
from mvserver.serving.engine.database import Database
from mvserver.serving.plan.pull import DuckPullService
from mvserver.session.activity_table import activity_table, tls_table
from mvserver.session.backend import SessionBackend
from mvserver.session.catalog_directory import CatalogDirectory
from mvserver.session.cursors.cursors import cursors_table
from mvserver.session.large_texts import LargeTexts
from mvserver.session.parsing import RememberingParser
from mvserver.session.prepared import prepared_table
from mvserver.session.services import SessionServices
from mvserver.session.settings.setting_values import duration
from mvserver.session.settings.settings_rows import settings_table
from mvserver.spark_choice import spark_options
from mvserver.sql import parse
from mvserver.sql.dialect import parse_select
from mvserver.stores import StoreRegistry
from mvserver.streaming.engine import Engine
from mvserver.streaming.live_relations import finished_relation, live_relations
from mvserver.streaming.queries.engine_services import EngineServices
from mvserver.streaming.spark.launch import Launched, LaunchedAhead, launch
from mvserver.streaming.spark.options import SparkOptions
from mvserver.streaming.spark.supervisor import Supervision
from spark_sinks.duckdb.ledger.commits import Commits
from spark_sinks.duckdb.ledger.damage import user_error
from spark_sinks.duckdb.writer import Writer
from spark_sinks.kinds import KINDS
from spark_sinks.store_kind import StoreKind, StoreSettings

_log = logging.getLogger(__name__)

_LOOK_EVERY_S = 0.05


def serve(settings: config.ServerSettings, password: str | None, tls: Tls | None, launch: LaunchedAhead) -> int:
    """Serves until SIGTERM or SIGINT; a second one ends the process at once. Returns the exit code, or START_ANEW.

    ``password`` is that of the first superuser, where it was given with the start."""
    # Statements wait for each other's turn of the interpreter; a short turn keeps look-ups fast beside long ones.
    sys.setswitchinterval(0.001)
    with _open_rooms(settings, launch) as rooms:
        first_password.provide(rooms.catalog, password, settings.password_encryption)
        rooms.collector.start()
        with asyncio.Runner(loop_factory=_new_event_loop) as runner:
            return runner.run(_serve(rooms, settings, tls))


def _open_rooms(settings: config.ServerSettings, launch: LaunchedAhead) -> Rooms:
    """Damage that shows while the rooms are made is noted, and the file set aside by the second opening."""
    try:
        return Rooms(settings, launch=launch)
    except Exception as error:
        if not Database.watch_of(settings.data_dir / VIEWS_FILE).notice(error):
            raise
    return Rooms(settings, launch=launch)


def _new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop's where it is installed: a third less work for each message."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


async def _serve(rooms: Rooms, settings: config.ServerSettings, tls: Tls | None) -> int:
    check = front_ends.password_check(rooms.catalog, settings)
    wire = await front_ends.start_wire(rooms.backend, settings, tls, check)
    http = await front_ends.start_http(
        rooms.backend, rooms.served_views, rooms.catalog, rooms.engine.problem, settings, tls, check
    )
    loop = asyncio.get_running_loop()
    damage = rooms.database.damage
    ending = Ending(lambda: damage.reason is not None)
    damage.subscribe(lambda reason: _stop_soon(loop, ending.begun))
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ending.on_signal, number)
    if http is not None:
        announce(f"HTTP on {settings.host}:{http.port}")
    announce(f"mvserver ready on {settings.host}:{wire.port}")
    threading.Thread(target=rooms.start_engine, name="engine-start", daemon=True).start()
    await ending.begun.wait()
    anew = ending.code == START_ANEW
    _log.info("shutting down, to start anew" if anew else "shutting down")
    rooms.engine.end_push_queries(
        SqlError(sqlstates.ADMIN_SHUTDOWN, "terminating connection due to administrator command")
    )
    drain_s = min(settings.shutdown_timeout, limits.START_ANEW_DRAIN_S) if anew else settings.shutdown_timeout
    fronts = [wire.shutdown(drain_s), *([] if http is None else [http.shutdown(drain_s)])]
    await asyncio.gather(*fronts)
    try:
        await asyncio.wait_for(loop.run_in_executor(None, rooms.engine.stop), limits.ENGINE_STOP_S)
    except TimeoutError:
        # Spark or a source hangs. What is committed is safe, and the rest is read again: as after any unclean stop.
        _log.warning("batches did not end within %g s; they are given up", limits.ENGINE_STOP_S)
        rooms.engine.abandon()
        end_at_once(ending.code)
    await _wait_for_left_work(rooms, ending)
    return ending.code


class Ending:
    """Why the server ends, and whether its program begins again: because of damage, where nobody has sent a signal."""

    def __init__(self, damaged: Callable[[], bool]) -> None:
        self._damaged = damaged
        self._signals: list[int] = []
        self.begun = asyncio.Event()

    def on_signal(self, number: int) -> None:
        self._signals.append(number)
        if len(self._signals) > 1:
            os._exit(128 + number)  # the second signal: at once; the next start is the recovery
        self.begun.set()

    @property
    def code(self) -> int:
        """What :func:`run` returns. It may change until the process ends: whoever wants the server to end does not want
        it to begin again."""
        return START_ANEW if self._damaged() and not self._signals else 0


def _stop_soon(loop: asyncio.AbstractEventLoop, begun: asyncio.Event) -> None:
    with contextlib.suppress(RuntimeError):  # the loop has ended already
        loop.call_soon_threadsafe(begun.set)


async def _wait_for_left_work(rooms: Rooms, ending: Ending) -> None:
    """DuckDB is not closed under statements that do not stop; nor are they waited for long."""
    ends = time.monotonic() + limits.SHUTDOWN_GRACE_S
    while rooms.pulls.left:
        if time.monotonic() > ends:
            _log.warning("%d canceled statements did not end; they are given up", rooms.pulls.left)
            end_at_once(ending.code)
        await asyncio.sleep(_LOOK_EVERY_S)


class Rooms:
    """All rooms, opened in the order of the start and closed in the reverse."""

    def __init__(
        self,
        settings: config.ServerSettings,
        kinds: Sequence[StoreKind[Any]] = KINDS,
        launch: Callable[[SparkOptions], Launched] = launch,
    ) -> None:
        self._close = contextlib.ExitStack()
        try:
            self._open(settings, kinds, launch)
        except BaseException:
            self._close.close()
            raise

    def _open(
        self,
        settings: config.ServerSettings,
        kinds: Sequence[StoreKind[Any]],
        launch: Callable[[SparkOptions], Launched],
    ) -> None:
        rewriter, extensions = load_rewriter(settings.rewriter), load_extensions(settings.extensions)
        data = settings.data_dir
        with refusing_unusable(data):
            for folder in (data / "files", settings.store_config_dir, settings.jar_dir):
                folder.mkdir(parents=True, exist_ok=True)
        self.catalog = Catalog.open(data / "catalog.db", settings.secrets_key_file)
        self._close.callback(self.catalog.close)
        self.catalog.seal_all()
        self.database = Database.open(
            data / VIEWS_FILE,
            memory_limit=f"{settings.duckdb_memory_limit}B",
            threads=settings.duckdb_threads or os.cpu_count() or 1,
        )
        self._close.callback(self.database.close)
        if self.database.set_aside is not None:
            _log.warning("the view database was damaged and is set aside as %s", self.database.set_aside)
        with self.database.cursor() as cursor:
            data_identity.agree(self.catalog, cursor, data)
        failpoints = Failpoints.from_environment()
        self.writer = Writer(self.database.cursor, translate, failpoints.reached, self.database.damage)
        self._close.callback(self.writer.close)
        self.schema_registries = SchemaRegistryClients(self.catalog, settings.store_config_dir)
        self._close.callback(self.schema_registries.close)
        self.stores = StoreRegistry(
            StoreSettings(
                values=settings.stores,
                certificate_folders=(settings.store_config_dir,),
                jar_directory=settings.jar_dir,
                record_bytes_max=settings.max_record_size,
            ),
            kinds,
            schemas=self.schema_registries,
        )
        self._close.callback(self.stores.close)
        self.engine = Engine(
            EngineServices(
                catalog=self.catalog,
                compile_query=self._compile,
                stores=self.stores,
                writer=self.writer,
                spark=spark_options(settings, kinds),
                launch=launch,
                supervision=Supervision(settings.spark_restarts, settings.spark_answer_timeout),
                data_directory=data,
                records_per_trigger=settings.records_per_trigger,
                batch_timeout_s=settings.batch_timeout,
                history_retention_s=settings.history_retention,
                reached=failpoints.reached,
                health_interval_s=settings.source_check_interval,
            )
        )
        directory = CatalogDirectory(self.catalog)
        source = _CatalogSource(self.catalog)
        pulls = DuckPullService(
            self.database,
            source,
            {
                **live_relations(self.catalog, self.engine, self.writer),
                "finished_rows": finished_relation(self.catalog, lambda: self.pulls.finished.status()),
                "pg_stat_activity": lambda: activity_table(self.backend.registry.activity(), source.snapshot()),
                "pg_stat_ssl": lambda: tls_table(self.backend.registry.activity()),
                "pg_cursors": cursors_table,  # each session gives its own
                "pg_prepared_statements": prepared_table,
                "pg_settings": settings_table,
            },
            concurrency=settings.pull_threads,
            query_memory_limit=settings.query_memory_limit,
            process_memory_limit=_process_memory_limit(settings),
            finished_rows_memory=settings.finished_rows_memory,
            why_missing=lambda view_id: _why_missing(view_id, directory, self.engine),
            version=lambda view_ids: _version(view_ids, directory, self.writer.commits),
            layouts=self.writer.layouts,
            history=lambda view_id: self.writer.histories.of_view(view_id),
        )
        self._close.callback(pulls.close)
        self.pulls = pulls
        self.writer.watch = pulls.finished
        self._services = ports.Services(
            catalog=self.catalog,
            engine=self.engine,
            stores=self.stores,
            schema_registries=self.schema_registries,
            pulls=pulls,
            compile_select=compile_select,
            explain_plan=explain,
            store_config_dir=settings.store_config_dir,
            jars=JarFolder(settings.data_dir / "function-sources"),
            spark_start_timeout_s=settings.spark_start_timeout,
            function_timeout_s=settings.function_timeout,
            function_memory_bytes=settings.function_memory_limit,
        )
        self.served_views = CatalogViews(
            self.catalog, self.engine, lambda view_ids: _version(view_ids, directory, self.writer.commits), pulls
        )
        large_texts = LargeTexts()
        self.backend = SessionBackend(
            SessionServices(
                parse=RememberingParser(parse),
                router=Router(self._services),
                pulls=pulls,
                views=self.engine,
                directory=directory,
                rewriter=rewriter,
                large_texts=large_texts,
                extensions=extensions,
                explain_failure=self._explain_failure,
                unreserved_connections=max(settings.max_connections - settings.superuser_reserved_connections, 0),
                setting_defaults=_session_defaults(settings),
            )
        )
        self._close.callback(self.backend.close)
        self.collector = Collector(lambda: large_texts.at_work)
        self._close.callback(self.collector.close)
        self.engine.reconcile()  # views can be read from the first connection on

    def start_engine(self) -> None:
        """After the server is ready: what takes time and no pull query needs."""
        self.engine.start()
        self.pulls.warm_up()

    def _explain_failure(self, error: Exception) -> SqlError | None:
        return user_error(error) if self.database.damage.notice(error) else None

    def _compile(self, query: Query) -> ContinuousPlan:
        """A definition of the catalog, compiled anew at each start."""
        resolve = lookup.known_resolver(query, self._services)
        functions = KnownFunctions(query, self._services)
        select = parse_select(query.select_text)
        written = query.kind not in _KEPT_BY_KEY
        plan = compile_select(select, resolve, default_starting="earliest", functions=functions, written=written)
        return with_view_properties(plan, kept_properties(dict(query.properties)))

    def __enter__(self) -> Rooms:
        return self

    def __exit__(self, *_: object) -> None:
        self._close.close()


_KEPT_BY_KEY = frozenset({"materialized_view", "create_changelog_as"})
"""Kinds of queries whose rows are kept, and not written and forgotten. Tables with a key group, or read changelogs."""


def _process_memory_limit(settings: config.ServerSettings) -> int:
    if settings.process_memory_limit:
        return settings.process_memory_limit
    return config.memory_of_parts(settings) + limits.PROCESS_MEMORY_BESIDE


def _session_defaults(settings: config.ServerSettings) -> dict[str, str]:
    """The server's settings that are defaults of a session's."""
    seconds = {
        "statement_timeout": settings.statement_timeout,
        "idle_in_transaction_session_timeout": settings.idle_in_transaction_timeout,
        "mv.filling_timeout": settings.read_while_filling_wait,
    }
    return {
        **{name: duration(name, f"{math.ceil(value * 1000)}ms") for name, value in seconds.items()},
        "password_encryption": settings.password_encryption,
        "max_connections": str(settings.max_connections),
        "superuser_reserved_connections": str(settings.superuser_reserved_connections),
        "ssl": "off" if settings.tls == "off" else "on",
    }


def _why_missing(view_id: str, directory: CatalogDirectory, engine: Engine) -> str | None:
    """What the engine holds against a view that has no content."""
    found = directory.query_of_view(view_id)
    if found is None:
        return None
    try:
        status = engine.status(found[1])
    except SqlError as error:
        if error.sqlstate == sqlstates.UNDEFINED_OBJECT:  # not taken up yet
            return None
        raise
    cause = f": {status.error}" if status.error else ""
    return f"Its query {status.query_id} is {status.state.value}{cause}."


def _version(view_ids: Sequence[str], directory: CatalogDirectory, commits: Commits) -> Version | None:
    """Of the rows of these views; None where one of them is kept by no query, or is just being changed."""
    found = [directory.query_of_view(view_id) for view_id in view_ids]
    queries = [query[1] for query in found if query is not None]
    return commits.version(queries) if len(queries) == len(view_ids) else None


class _CatalogSource:
    """The catalog as pull queries see it; one snapshot per generation."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._lock = threading.Lock()
        self._known: CatalogSnapshot | None = None

    def generation(self) -> int:
        return self._catalog.generation

    def snapshot(self) -> CatalogSnapshot:
        with self._lock:
            known = self._known
            if known is not None and known.generation == self._catalog.generation:
                return known
            self._known = CatalogSnapshot.of(self._catalog)
            return self._known
