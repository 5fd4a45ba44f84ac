"""The relations of ``mv_catalog``: the state of queries, views and pipelines, and what is known of them, as SQL.

Each is made when it is read; times are UTC. Beside what is shown, each row carries the oid of the relation that a role
must see to be shown it (``_o``), and where it has records of it, the oid of the one that it must be allowed to read
(``_r``): see ``pgcatalog.visibility``.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import pyarrow as pa

from catalog.dependencies import REGISTRY_OF_STORE
from catalog.model import Query
from catalog.store import Catalog
from mvserver.streaming.api import QueryStatus
from mvserver.streaming.engine import Engine
from mvserver.views.feeds import query_of
from spark_sinks.duckdb.writer import Writer

_Row = dict[str, Any]

_TEXT, _COUNT, _REAL, _FLAG = pa.string(), pa.int64(), pa.float64(), pa.bool_()
_TIME = pa.timestamp("us", "UTC")
_SEEN, _READ = ("_o", pa.uint32()), ("_r", pa.uint32())
_NOBODY = 2**32 - 1  # an oid that no relation has: superusers alone are shown the row
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_QUERIES = pa.schema(
    [
        ("id", _TEXT),
        ("kind", _TEXT),
        ("state", _TEXT),
        ("sink", _TEXT),
        ("source", _TEXT),
        ("error", _TEXT),
        ("note", _TEXT),
        ("rows_in", _COUNT),
        ("rows_in_per_second", _REAL),
        ("rejected", _COUNT),
        ("position", _TEXT),
        ("latest_position", _TEXT),
        ("lag_records", _COUNT),
        ("freshness_ms", _REAL),
        ("caught_up", _FLAG),
        ("epoch", _COUNT),
        ("filled_share", _REAL),
        ("last_change_at", _TIME),
        ("last_confirmed_at", _TIME),
        ("watermark", _TIME),
        ("late_rows", _COUNT),
    ]
)
_VIEWS = pa.schema(
    [
        ("view", _TEXT),
        ("query_id", _TEXT),
        ("rows", _COUNT),
        ("bytes", _COUNT),
        ("epoch", _COUNT),
        ("lag_records", _COUNT),
        ("lag_seconds", _REAL),
        ("caught_up", _FLAG),
        ("filled", _FLAG),
        ("last_change_at", _TIME),
        ("last_confirmed_at", _TIME),
        ("watermark", _TIME),
        ("late_rows", _COUNT),
    ]
)
_LATE = pa.schema(
    [
        ("relation", _TEXT),
        ("view", _TEXT),
        ("position", _TEXT),
        ("event_time", _TIME),
        ("window_start", pa.timestamp("us")),
        ("window_end", pa.timestamp("us")),
        ("watermark", _TIME),
        ("late_at", _TIME),
    ]
)
_BACKFILLS = pa.schema(
    [
        ("view", _TEXT),
        ("query_id", _TEXT),
        ("state", _TEXT),
        ("rows_done", _COUNT),
        ("rows_total", _COUNT),
        ("share", _REAL),
        ("seconds_left", _REAL),
    ]
)
_PIPELINES = pa.schema(
    [
        ("id", _TEXT),
        ("store", _TEXT),
        ("entity", _TEXT),
        ("state", _TEXT),
        ("error", _TEXT),
        ("queries", _COUNT),
        ("generation", _COUNT),
        ("position", _TEXT),
        ("latest_position", _TEXT),
        ("rows_in_per_second", _REAL),
        ("lane", _TEXT),
        ("lane_reason", _TEXT),
        ("held_by", _TEXT),
        ("held_bytes", _COUNT),
    ]
)
_SCHEMA_REGISTRIES = pa.schema(
    [
        ("name", _TEXT),
        ("type", _TEXT),
        ("uris", _TEXT),
        ("owner", _TEXT),
        ("created_at", _TIME),
        ("updated_at", _TIME),
    ]
)
_DEPENDENCIES = pa.schema([("object", _TEXT), ("kind", _TEXT), ("depends_on", _TEXT), ("depends_on_kind", _TEXT)])
_LEDGER = pa.schema(
    [
        ("pipeline", _TEXT),
        ("generation", _COUNT),
        ("batch_id", _COUNT),
        ("start_position", _TEXT),
        ("end_position", _TEXT),
        ("records", _COUNT),
        ("committed_at", _TIME),
    ]
)
_REJECTED = pa.schema(
    [
        ("relation", _TEXT),
        ("position", _TEXT),
        ("reason", _TEXT),
        ("raw", pa.binary()),
        ("raw_bytes", _COUNT),
        ("rejected_at", _TIME),
    ]
)
_WATCHED = pa.schema(
    [
        ("view", _TEXT),
        ("watchers", _COUNT),
        ("always", _FLAG),
        ("retention_seconds", _REAL),
        ("changes", _COUNT),
        ("bytes", _COUNT),
        ("oldest_at", _TIME),
        ("oldest_token", _TEXT),
        ("last_change_at", _TIME),
        ("latest_token", _TEXT),
    ]
)
_FINISHED = pa.schema([("view", _TEXT), ("state", _TEXT), ("rows", _COUNT), ("bytes", _COUNT), ("answered", _COUNT)])


class FinishedView(Protocol):
    """What is known of a view whose rows are kept finished in memory."""

    @property
    def view_id(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def rows(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def answered(self) -> int: ...


def finished_relation(catalog: Catalog, kept: Callable[[], Sequence[FinishedView]]) -> Callable[[], pa.Table]:
    """``mv_catalog.finished_rows``: what serving keeps, and so apart from what the engine and the writer know."""
    return partial(_table, _FINISHED, partial(_finished_rows, catalog, kept))


def _finished_rows(catalog: Catalog, kept: Callable[[], Sequence[FinishedView]]) -> Iterator[_Row]:
    for view in kept():
        yield {
            **_of(catalog, view.view_id),
            "view": _name(catalog, view.view_id),
            "state": view.state,
            "rows": view.rows,
            "bytes": view.bytes,
            "answered": view.answered,
        }


def live_relations(catalog: Catalog, engine: Engine, writer: Writer) -> Mapping[str, Callable[[], pa.Table]]:
    rows: dict[str, tuple[pa.Schema, Callable[[], Iterator[_Row]]]] = {
        "queries": (_QUERIES, partial(_queries, catalog, engine, writer)),
        "views": (_VIEWS, partial(_views, catalog, engine, writer)),
        "backfills": (_BACKFILLS, partial(_backfills, catalog, engine)),
        "pipelines": (_PIPELINES, partial(_pipelines, catalog, engine)),
        "schema_registries": (_SCHEMA_REGISTRIES, partial(_schema_registries, catalog)),
        "dependencies": (_DEPENDENCIES, partial(_dependencies, catalog)),
        "ledger": (_LEDGER, partial(_ledger, catalog, engine, writer)),
        "rejected_rows": (_REJECTED, partial(_rejected_rows, catalog, writer)),
        "late_rows": (_LATE, partial(_late_rows, catalog, writer)),
        "watched_views": (_WATCHED, partial(_watched_views, catalog, engine)),
    }
    return {name: partial(_table, schema, made) for name, (schema, made) in rows.items()}


def _table(schema: pa.Schema, rows: Callable[[], Iterator[_Row]]) -> pa.Table:
    return pa.Table.from_pylist(list(rows()), schema=pa.schema([*schema, _SEEN, _READ]))


def _queries(catalog: Catalog, engine: Engine, writer: Writer) -> Iterator[_Row]:
    windows = _of_queries(writer.window_progress())
    for query, status in _known(catalog, engine):
        watermark, late = windows.get(query.id, (None, None))
        yield {
            **_of(catalog, query.sink_id),
            "id": query.id,
            "kind": query.kind,
            "state": status.state.value,
            "sink": _name(catalog, query.sink_id),
            "source": ", ".join(_name(catalog, source) for source in query.source_ids),
            "error": status.error,
            "note": status.note,
            "rows_in": status.rows_in,
            "rows_in_per_second": status.rows_in_per_s,
            "rejected": status.rejected,
            "position": status.position,
            "latest_position": status.latest_position,
            "lag_records": status.lag_records,
            "freshness_ms": status.freshness_ms,
            "caught_up": status.caught_up,
            "epoch": status.epoch,
            "filled_share": status.filled_share,
            "last_change_at": _time(status.last_change_at),
            "last_confirmed_at": _time(status.last_confirmed_at),
            "watermark": _event_time(watermark),
            "late_rows": late,
        }


def _views(catalog: Catalog, engine: Engine, writer: Writer) -> Iterator[_Row]:
    sizes, windows = writer.view_sizes(), _of_queries(writer.window_progress())
    for query, status in _known(catalog, engine):
        if query.kind != "materialized_view":
            continue
        size = sizes.get(query.sink_id)  # None for one that could not be set up
        watermark, late = windows.get(query.id, (None, None))
        yield {
            **_of(catalog, query.sink_id),
            "view": _name(catalog, query.sink_id),
            "query_id": query.id,
            "rows": None if size is None else size.rows,
            "bytes": None if size is None else size.stored_bytes,
            "epoch": status.epoch,
            "lag_records": status.lag_records,
            "lag_seconds": _lag_seconds(status),
            "caught_up": status.caught_up,
            "filled": status.filled,
            "last_change_at": _time(status.last_change_at),
            "last_confirmed_at": _time(status.last_confirmed_at),
            "watermark": _event_time(watermark),
            "late_rows": late,
        }


def _backfills(catalog: Catalog, engine: Engine) -> Iterator[_Row]:
    for query, status in _known(catalog, engine):
        if query.kind != "materialized_view" or status.filled:
            continue
        backfill = status.backfill
        yield {
            **_of(catalog, query.sink_id),
            "view": _name(catalog, query.sink_id),
            "query_id": query.id,
            "state": status.state.value,
            "rows_done": None if backfill is None else backfill.records_done,
            "rows_total": None if backfill is None else backfill.records,
            "share": None if backfill is None else backfill.share,
            "seconds_left": None if backfill is None else backfill.seconds_left,
        }


def _pipelines(catalog: Catalog, engine: Engine) -> Iterator[_Row]:
    for status in engine.pipelines():
        source = catalog.relations.by_id(status.source_id)
        store = None if source is None else catalog.stores.by_id(source.store_id or "")
        yield {
            **_of(catalog, status.source_id),
            "id": status.id,
            "store": None if store is None else store.name,
            "entity": None if source is None else source.entity,
            "state": status.state.value,
            "error": status.error,
            "queries": status.queries,
            "generation": status.generation,
            "position": status.position,
            "latest_position": status.latest_position,
            "rows_in_per_second": status.records_per_s,
            "lane": status.lane,
            "lane_reason": status.lane_reason,
            "held_by": None if status.kept is None else status.kept.name,
            "held_bytes": None if status.kept is None else status.kept.bytes,
        }


def _schema_registries(catalog: Catalog) -> Iterator[_Row]:
    for registry in catalog.schema_registries.all():
        yield {
            "_o": registry.oid,
            "_r": 0,
            "name": registry.name,
            "type": registry.type,
            "uris": registry.property("uris"),
            "owner": registry.owner,
            "created_at": _time(registry.created_at),
            "updated_at": _time(registry.updated_at),
        }


def _dependencies(catalog: Catalog) -> Iterator[_Row]:
    """What is directly needed by what: what DROP asks about, or takes along with CASCADE."""
    with catalog.snapshot():
        relations = {relation.id: relation for relation in catalog.relations.all()}
        names = {relation.id: catalog.names.full_name(relation) for relation in relations.values()}
        all_stores = catalog.stores.all()
        stores = {store.id: store.name for store in all_stores}
        queries = catalog.queries.all()
    for store in all_stores:
        registry = store.property(REGISTRY_OF_STORE)
        if registry is not None:
            yield {"_o": store.oid, "_r": 0, **_dependency(store.name, "store", registry, "schema registry")}
    for relation in relations.values():
        if relation.store_id in stores:
            shown = _of(catalog, relation.id)
            yield {**shown, **_dependency(names[relation.id], relation.kind, stores[relation.store_id], "store")}
    for relation in relations.values():
        named = () if relation.select is None else (source.relation_id for source in relation.select.sources)
        for needed_id in dict.fromkeys(filter(None, named)):
            dependency = _dependency(names[relation.id], relation.kind, names[needed_id], relations[needed_id].kind)
            yield {**_of(catalog, relation.id), **dependency}
    for query in queries:
        is_view = query.kind == "materialized_view"
        name, kind = (names[query.sink_id], relations[query.sink_id].kind) if is_view else (query.id, "query")
        needed = query.source_ids if is_view else (*query.source_ids, query.sink_id)
        for needed_id in dict.fromkeys(needed):
            dependency = _dependency(name, kind, names[needed_id], relations[needed_id].kind)
            yield {**_of(catalog, query.sink_id), **dependency}


def _dependency(name: str, kind: str, needed: str, needed_kind: str) -> _Row:
    return {"object": name, "kind": kind, "depends_on": needed, "depends_on_kind": needed_kind}


def _ledger(catalog: Catalog, engine: Engine, writer: Writer) -> Iterator[_Row]:
    sources = {status.id: status.source_id for status in engine.pipelines()}
    for row in writer.batches():
        found = dict(zip(_LEDGER.names, row, strict=True))
        yield {**_of(catalog, sources.get(found["pipeline"])), **found}


def _rejected_rows(catalog: Catalog, writer: Writer) -> Iterator[_Row]:
    for relation_id, position, reason, raw, raw_bytes, rejected_at in writer.rejected_rows():
        yield {
            **_of(catalog, relation_id, records=True),
            "relation": _name(catalog, relation_id),
            "position": position,
            "reason": reason,
            "raw": raw,
            "raw_bytes": raw_bytes,
            "rejected_at": rejected_at,
        }


def _watched_views(catalog: Catalog, engine: Engine) -> Iterator[_Row]:
    for status in engine.histories():
        kept = status.kept
        yield {
            **_of(catalog, status.view_id),
            "view": _name(catalog, status.view_id),
            "watchers": status.watchers,
            "always": status.always,
            "retention_seconds": status.seconds,
            "changes": status.rows,
            "bytes": status.bytes,
            "oldest_at": kept.since,
            "oldest_token": str(kept.oldest),
            "last_change_at": kept.latest_at if kept.latest_epoch else None,
            "latest_token": str(kept.latest),
        }


def _of_queries(windows: Mapping[str, tuple[int | None, int]]) -> Mapping[str, tuple[int | None, int]]:
    """The watermark and the late rows of each query with those of what it reads: the windows of a sub-query, a join."""
    found: dict[str, tuple[int | None, int]] = {}
    for subscriber_id, (watermark, late) in windows.items():
        known, before = found.get(query_of(subscriber_id), (None, 0))
        marks = [mark for mark in (known, watermark) if mark is not None]
        found[query_of(subscriber_id)] = min(marks, default=None), before + late
    return found


def _late_rows(catalog: Catalog, writer: Writer) -> Iterator[_Row]:
    queries = {query.id: query for query in catalog.queries.all()}
    for query_id, position, event_us, window_start, window_end, watermark_us, late_at in writer.late_rows():
        query = queries.get(query_of(query_id))
        if query is None:
            continue  # dropped at this very moment
        yield {
            **_of(catalog, query.sink_id, records=True),
            "relation": ", ".join(_name(catalog, source) for source in query.source_ids),
            "view": _name(catalog, query.sink_id),
            "position": position,
            "event_time": _event_time(event_us),
            "window_start": window_start,
            "window_end": window_end,
            "watermark": _event_time(watermark_us),
            "late_at": late_at,
        }


def _known(catalog: Catalog, engine: Engine) -> Iterator[tuple[Query, QueryStatus]]:
    statuses = {status.query_id: status for status in engine.statuses()}
    for query in catalog.queries.all():
        status = statuses.get(query.id)
        if status is not None:  # else it is dropped, or not taken up, at this very moment
            yield query, status


def _lag_seconds(status: QueryStatus) -> float | None:
    """How long ago the view last had all that its source had; nothing where it has all that was seen of it."""
    if status.lag_records == 0:
        return 0.0
    return None if status.last_confirmed_at is None else max(0.0, time.time() - status.last_confirmed_at)


def _of(catalog: Catalog, relation_id: str | None, *, records: bool = False) -> _Row:
    """What a role must see to be shown the row, and with ``records`` of it must be allowed to read."""
    relation = None if relation_id is None else catalog.relations.by_id(relation_id)
    oid = _NOBODY if relation is None else relation.oid
    return {"_o": oid, "_r": oid if records else 0}


def _name(catalog: Catalog, relation_id: str) -> str:
    relation = catalog.relations.by_id(relation_id)
    return relation_id if relation is None else catalog.names.full_name(relation)


def _event_time(us: int | None) -> dt.datetime | None:
    """None also for what Python's calendar does not have: a delay may lie before the year 1."""
    try:
        return None if us is None else _EPOCH + dt.timedelta(microseconds=us)
    except OverflowError:
        return None


def _time(seconds: float | None) -> dt.datetime | None:
    return None if seconds is None else dt.datetime.fromtimestamp(seconds, dt.UTC)
