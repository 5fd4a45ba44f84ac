"""The open sessions as pg_stat_activity has them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

import pyarrow as pa

from mvserver.pgcatalog.snapshot import CatalogSnapshot
from mvserver.session.registry import SessionActivity

_TIME = pa.timestamp("us", "UTC")
_SCHEMA = pa.schema(
    [
        ("datid", pa.uint32()),
        ("datname", pa.string()),
        ("pid", pa.int32()),
        ("leader_pid", pa.int32()),
        ("usesysid", pa.uint32()),
        ("usename", pa.string()),
        ("application_name", pa.string()),
        ("client_addr", pa.string()),
        ("client_hostname", pa.string()),
        ("client_port", pa.int32()),
        ("backend_start", _TIME),
        ("xact_start", _TIME),
        ("query_start", _TIME),
        ("state_change", _TIME),
        ("wait_event_type", pa.string()),
        ("wait_event", pa.string()),
        ("state", pa.string()),
        ("backend_xid", pa.string()),
        ("backend_xmin", pa.string()),
        ("query_id", pa.int64()),
        ("query", pa.string()),
        ("backend_type", pa.string()),
    ]
)


_TLS_SCHEMA = pa.schema(
    [
        ("pid", pa.int32()),
        ("ssl", pa.bool_()),
        ("version", pa.string()),
        ("cipher", pa.string()),
        ("bits", pa.int32()),
        ("client_dn", pa.string()),
        ("client_serial", pa.decimal128(38, 0)),
        ("issuer_dn", pa.string()),
    ]
)


def tls_table(sessions: Iterable[SessionActivity]) -> pa.Table:
    """As pg_stat_ssl has them."""
    rows = []
    for session in sessions:
        name, version, bits = session.cipher or (None, None, None)
        used = session.cipher is not None
        rows.append({"pid": session.process, "ssl": used, "version": version, "cipher": name, "bits": bits})
    return pa.Table.from_pylist(rows, schema=_TLS_SCHEMA)


def activity_table(sessions: Iterable[SessionActivity], catalog: CatalogSnapshot) -> pa.Table:
    rows = [_row(session, catalog) for session in sessions]
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


def _row(session: SessionActivity, catalog: CatalogSnapshot) -> dict[str, object]:
    """A column that is not named is NULL."""
    database = catalog.databases_by_name.get(session.database)
    return {
        "datid": None if database is None else database.oid,
        "datname": session.database,
        "pid": session.process,
        "usesysid": catalog.role_oid(session.user),
        "usename": session.user,
        "application_name": session.application_name,
        "client_addr": session.peer or None,
        "backend_start": _time(session.backend_start),
        "xact_start": _time(session.xact_start),
        "query_start": _time(session.query_start),
        "state_change": _time(session.state_change),
        # a session that waits is one that waits for its client: what else it waits for is in its state
        "wait_event_type": None if session.state == "active" else "Client",
        "wait_event": None if session.state == "active" else "ClientRead",
        "state": session.state,
        "query": session.query,
        "backend_type": "client backend",
    }


def _time(seconds: float | None) -> dt.datetime | None:
    return None if seconds is None else dt.datetime.fromtimestamp(seconds, dt.UTC)
