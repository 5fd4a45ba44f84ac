"""Replication slots and publications of the server's own: made for a pipeline, and taken away with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import psycopg

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.postgresql.connections import Connection, reported
from spark_sinks.postgresql.positions import lsn_of
from spark_sinks.postgresql.slot_names import PREFIX
from spark_sinks.postgresql.tables import SourceTable, literal, quoted

_PLUGIN = "pgoutput"


@dataclass(frozen=True)
class SlotState:
    """``confirmed`` is where the server would begin to send. ``retained`` are the bytes of the log it keeps for it.
    ``unfit`` says why its changes cannot be read here, whoever has made it; ``invalidated`` why a lost one is lost, in
    the server's own word."""

    confirmed: int
    wal_status: str
    active: bool
    retained: int
    unfit: str | None = None
    invalidated: str | None = None


@dataclass(frozen=True)
class ServerState:
    """``flushed``: the end of the log, on this ``timeline``. ``slot`` is None where there is none of the name.
    ``published``: the tables whose changes the publication has, all and whole; by the table's oid the oid of its
    membership, which is another one where the table was taken out and put in again."""

    system: str
    timeline: int
    flushed: int
    slot: SlotState | None
    published: Mapping[int, int]


# Row filters and lists of columns are columns of this catalog only from PostgreSQL 15 on.
_PUBLISHED = (
    "SELECT r.prrelid::bigint, r.oid::bigint FROM pg_publication p JOIN pg_publication_rel r ON r.prpubid = p.oid "
    "WHERE p.pubname = {name} AND p.pubinsert AND p.pubupdate AND p.pubdelete AND p.pubtruncate AND p.pubviaroot "
    "AND to_jsonb(r) ->> 'prqual' IS NULL AND to_jsonb(r) ->> 'prattrs' IS NULL"
)
_STATE = (
    "SELECT (SELECT system_identifier::text FROM pg_control_system()), "
    "left(pg_walfile_name(pg_current_wal_flush_lsn()), 8), pg_current_wal_flush_lsn()::text, "
    "s.confirmed_flush_lsn::text, s.wal_status, s.active, "
    "pg_wal_lsn_diff(pg_current_wal_flush_lsn(), s.restart_lsn)::bigint, "
    "s.slot_type, s.plugin, s.database = current_database(), s.temporary, "
    "to_jsonb(s) ->> 'invalidation_reason' "  # a column from PostgreSQL 17 on
    "FROM (SELECT 1) one LEFT JOIN pg_replication_slots s ON s.slot_name = {name}"
)


def look(store: str, connection: Connection, slot: str, publication: str) -> ServerState:
    """08006 on a standby: it may be about to be promoted, or the name is about to lead to the primary again. Without
    parameters, so that a connection for replication can ask as well."""
    name = literal(slot)
    with reported(store):
        row = connection.execute("SELECT pg_is_in_recovery()").fetchone()
        if row is not None and row[0]:
            raise SqlError(
                sqlstates.CONNECTION_FAILURE,
                f'the server of store "{store}" is a standby',
                detail="Changes are read from the primary server alone.",
                hint="Name the primary server in 'uris', or promote this one.",
            )
        found = connection.execute(_STATE.format(name=name)).fetchone()
        tables = published(connection, publication)
    assert found is not None  # noqa: S101 - the query has one row
    system, timeline, flushed, confirmed, wal_status, active, retained, kind, plugin, here, temporary, why = found
    state = None
    if kind is not None:
        lost = confirmed is None
        state = SlotState(
            0 if lost else lsn_of(confirmed),
            "lost" if lost else str(wal_status),
            bool(active),
            int(retained or 0),
            _unfit(str(kind), str(plugin), bool(here), bool(temporary)),
            why,
        )
    return ServerState(str(system), int(timeline, 16), lsn_of(str(flushed)), state, tables)


def _unfit(kind: str, plugin: str, here: bool, temporary: bool) -> str | None:
    if kind != "logical":
        return "It is a physical one."
    if plugin != _PLUGIN:
        return f"Its plug-in is {plugin}."
    if not here:
        return "It is one of another database."
    return "It is a temporary one." if temporary else None


def published(connection: Connection, name: str) -> Mapping[int, int]:
    """As :attr:`ServerState.published`."""
    rows = connection.execute(_PUBLISHED.format(name=literal(name))).fetchall()
    return {int(table): int(membership) for table, membership in rows}


def of_table(connection: Connection, oid: int) -> Sequence[tuple[str, str]]:
    """The slots that servers like this one use for a table, and how each is: also those that nobody reads."""
    rows = connection.execute(
        "SELECT coalesce(s.slot_name, p.pubname), s.slot_name IS NOT NULL, s.active, s.wal_status, "
        "pg_wal_lsn_diff(pg_current_wal_flush_lsn(), s.restart_lsn)::bigint "
        "FROM pg_publication p JOIN pg_publication_rel r ON r.prpubid = p.oid "
        "LEFT JOIN pg_replication_slots s "
        "ON s.slot_name = coalesce(obj_description(p.oid, 'pg_publication'), p.pubname) "
        "WHERE r.prrelid = %s AND starts_with(p.pubname::text, %s) ORDER BY 1",
        (oid, PREFIX),
    ).fetchall()
    return [
        (str(name), f"{'read' if active else 'not read'}, holds back {held or 0} bytes of the log, {status}")
        if there
        else (str(name), "a publication without a slot")
        for name, there, active, status, held in rows
    ]


def make_publication(store: str, connection: Connection, name: str, table: SourceTable, slot: str | None = None) -> int:
    """Before the slot: at each place of the log that is read the publication must have been there already. Inserts,
    updates, deletions and truncations of the table; those of partitions as the table's own. What was there under the
    name goes. A ``slot`` of another name stands in its comment. Returns the oid of the table's membership."""
    with reported(store):
        connection.execute(f"DROP PUBLICATION IF EXISTS {quoted(name)}")
        whole = "WITH (publish_via_partition_root = true)"
        connection.execute(f"CREATE PUBLICATION {quoted(name)} FOR TABLE {table.rows_of} {whole}")
        if slot is not None:
            connection.execute(f"COMMENT ON PUBLICATION {quoted(name)} IS {literal(slot)}")
        membership = published(connection, name).get(table.oid)
    if membership is None:
        raise SqlError(
            sqlstates.SERIALIZATION_FAILURE,
            f'table "{table.entity}" of store "{store}" became another one in the meantime',
            hint="Try again.",
        )
    return membership


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


def drop(store: str, connection: Connection, slot: str) -> None:
    """What is not there is no mistake, here and below."""
    with reported(store), suppress(psycopg.errors.UndefinedObject):
        connection.execute(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s", (slot,)
        )


def drop_publication(store: str, connection: Connection, name: str) -> None:
    with reported(store):
        connection.execute(f"DROP PUBLICATION IF EXISTS {quoted(name)}")


def begun_after(connection: Connection) -> int:
    """The transactions that have this number or a later one had not begun to write when it was asked for."""
    row = connection.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text").fetchone()
    assert row is not None  # noqa: S101 - one row
    return int(row[0])


def have_ended(connection: Connection, number: int) -> bool:
    """Whether all transactions before that number have."""
    row = connection.execute("SELECT pg_snapshot_xmin(pg_current_snapshot())::text").fetchone()
    assert row is not None  # noqa: S101 - one row
    return int(row[0]) >= number


def marked(connection: Connection) -> int:
    """An LSN in front of which all that has been read before lies: a mark is written for it."""
    connection.execute("SET synchronous_commit = on")  # it is in the log when this returns
    row = connection.execute("SELECT pg_logical_emit_message(true, 'mvserver', 'begin')::text").fetchone()
    assert row is not None  # noqa: S101 - one row
    return lsn_of(str(row[0]))
