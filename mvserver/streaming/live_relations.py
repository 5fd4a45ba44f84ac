"""The relations of ``mv_catalog``: the state of queries, pipelines and views as SQL.

Each is made when it is read; times are UTC.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping

import pyarrow as pa

from catalog.store import Catalog
from mvserver.streaming.engine import Engine
from spark_sinks.duckdb.writer import Writer

_TIME = pa.timestamp("us", "UTC")
_QUERIES = pa.schema(
    [
        ("id", pa.string()),
        ("kind", pa.string()),
        ("state", pa.string()),
        ("sink", pa.string()),
        ("source", pa.string()),
        ("error", pa.string()),
        ("note", pa.string()),
        ("rows_in", pa.int64()),
        ("rows_in_per_second", pa.float64()),
        ("rejected", pa.int64()),
        ("position", pa.string()),
        ("latest_position", pa.string()),
        ("lag_records", pa.int64()),
        ("freshness_ms", pa.float64()),
        ("caught_up", pa.bool_()),
        ("epoch", pa.int64()),
        ("filled_share", pa.float64()),
        ("last_change_at", _TIME),
        ("last_confirmed_at", _TIME),
    ]
)
_REJECTED = pa.schema(
    [
        ("relation", pa.string()),
        ("position", pa.string()),
        ("reason", pa.string()),
        ("raw", pa.binary()),
        ("raw_bytes", pa.int64()),
        ("rejected_at", _TIME),
    ]
)


def live_relations(catalog: Catalog, engine: Engine, writer: Writer) -> Mapping[str, Callable[[], pa.Table]]:
    def queries() -> pa.Table:
        statuses = {status.query_id: status for status in engine.statuses()}
        rows = []
        for query in catalog.queries.all():
            status = statuses.get(query.id)
            if status is None:
                continue  # dropped or not taken up at this very moment
            rows.append(
                {
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
                }
            )
        return pa.Table.from_pylist(rows, schema=_QUERIES)

    def rejected_rows() -> pa.Table:
        rows = [
            {
                "relation": _name(catalog, relation_id),
                "position": position,
                "reason": reason,
                "raw": raw,
                "raw_bytes": raw_bytes,
                "rejected_at": rejected_at,
            }
            for relation_id, position, reason, raw, raw_bytes, rejected_at in writer.rejected_rows()
        ]
        return pa.Table.from_pylist(rows, schema=_REJECTED)

    return {"queries": queries, "rejected_rows": rejected_rows}


def _name(catalog: Catalog, relation_id: str) -> str:
    relation = catalog.relations.by_id(relation_id)
    return relation_id if relation is None else catalog.names.full_name(relation)


def _time(seconds: float | None) -> dt.datetime | None:
    return None if seconds is None else dt.datetime.fromtimestamp(seconds, dt.UTC)
