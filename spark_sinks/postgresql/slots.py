"""Replication slots and publications of the server's own: made for a pipeline, and taken away with it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import psycopg

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.postgresql.connections import Connection, reported
from spark_sinks.postgresql.positions import lsn_of
from spark_sinks.postgresql.tables import SourceTable, literal, quoted

PREFIX = "mvserver_"


@dataclass(frozen=True)
class SlotState:
    """``confirmed`` is where the server would begin to send. ``retained`` are the bytes of the log it keeps for it."""

    confirmed: int
    wal_status: str
    active: bool
    retained: int


@dataclass(frozen=True)
class ServerState:
    """``flushed``: the end of the log. ``slot`` is None where there is none of the name."""

    system: str
    flushed: int
    slot: SlotState | None


_STATE = (
    "SELECT (SELECT system_identifier::text FROM pg_control_system()), pg_current_wal_flush_lsn()::text, "
    "s.confirmed_flush_lsn::text, s.wal_status, s.active, "
    "pg_wal_lsn_diff(pg_current_wal_flush_lsn(), s.restart_lsn)::bigint "
    "FROM (SELECT 1) one LEFT JOIN pg_replication_slots s ON s.slot_name = %s"
)


def look(connection: Connection, slot: str) -> ServerState:
    """55000 on a standby, whose log ends elsewhere than its rows."""
    row = connection.execute("SELECT pg_is_in_recovery()").fetchone()
    if row is not None and row[0]:
        raise SqlError(
            sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
            "the server is a standby",
            hint="Name the primary server in 'uris'.",
        )
    found = connection.execute(_STATE, (slot,)).fetchone()
    assert found is not None  # noqa: S101 - the query has one row
    system, flushed, confirmed, wal_status, active, retained = found
    state = None
    if wal_status is not None or confirmed is not None:
        lost = confirmed is None
        state = SlotState(
            0 if lost else lsn_of(confirmed), "lost" if lost else str(wal_status), bool(active), int(retained or 0)
        )
    return ServerState(str(system), lsn_of(str(flushed)), state)


def of_table(connection: Connection, oid: int) -> Sequence[tuple[str, str]]:
    """The slots that servers like this one have made for a table, and how each is: also those that nobody reads."""
    rows = connection.execute(
        "SELECT p.pubname, s.slot_name IS NOT NULL, s.active, s.wal_status, "
        "pg_wal_lsn_diff(pg_current_wal_flush_lsn(), s.restart_lsn)::bigint "
        "FROM pg_publication p JOIN pg_publication_rel r ON r.prpubid = p.oid "
        "LEFT JOIN pg_replication_slots s ON s.slot_name = p.pubname "
        "WHERE r.prrelid = %s AND starts_with(p.pubname::text, %s) ORDER BY 1",
        (oid, PREFIX),
    ).fetchall()
    return [
        (str(name), f"{'read' if active else 'not read'}, holds back {held or 0} bytes of the log, {status}")
        if there
        else (str(name), "a publication without a slot")
        for name, there, active, status, held in rows
    ]


def ensure_publication(store: str, connection: Connection, name: str, table: SourceTable) -> None:
    """Before the slot: at each place of the log that is read the publication must have been there already. Inserts,
    updates, deletions and truncations of the table; those of partitions as the table's own."""
    with reported(store):
        there = connection.execute(
            "SELECT 1 FROM pg_publication p JOIN pg_publication_rel r ON r.prpubid = p.oid "
            "WHERE p.pubname = %s AND r.prrelid = %s",
            (name, table.oid),
        ).fetchone()
        if there is None:
            connection.execute(f"DROP PUBLICATION IF EXISTS {quoted(name)}")
            whole = "WITH (publish_via_partition_root = true)"
            connection.execute(f"CREATE PUBLICATION {quoted(name)} FOR TABLE {table.rows_of} {whole}")


def create_slot(store: str, connection: Connection, name: str, *, temporary: bool, export: bool) -> tuple[int, str]:
    """Where its changes begin, and the name of the snapshot of all that committed before. The connection is one for
    replication; the snapshot is there until its next command."""
    kind = "TEMPORARY LOGICAL" if temporary else "LOGICAL"
    snapshot = "export" if export else "nothing"
    with reported(store):
        row = connection.execute(
            f"CREATE_REPLICATION_SLOT {quoted(name)} {kind} pgoutput (SNAPSHOT {literal(snapshot)})"
        ).fetchone()
    assert row is not None  # noqa: S101 - the command answers with one row
    return lsn_of(str(row[1])), str(row[2] or "")


def drop(store: str, connection: Connection, name: str) -> None:
    """The slot and the publication of a pipeline; what is not there is no mistake."""
    with reported(store):
        with suppress(psycopg.errors.UndefinedObject):
            connection.execute(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s", (name,)
            )
        connection.execute(f"DROP PUBLICATION IF EXISTS {quoted(name)}")
