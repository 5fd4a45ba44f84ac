"""The slot of one pipeline and its publication: whether they have all changes of a table, made and dropped together."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.postgresql import slots
from spark_sinks.postgresql.connections import Connection, stopping
from spark_sinks.postgresql.health import not_published, slot_gone, slot_lost
from spark_sinks.postgresql.replication import ReplicationStream
from spark_sinks.postgresql.slots import ServerState
from spark_sinks.postgresql.tables import SourceTable

_DROP_PAUSE_S = 0.1


class HeldSlot:
    """``folder`` is the pipeline's. It has the oid of the table's membership in the publication, which is another one
    where the table was taken out and put in again: changes of the time between were never sent."""

    def __init__(self, store: str, name: str, folder: Path, *, timeout_s: float, given_up: threading.Event) -> None:
        self._store = store
        self._name = name
        self._membership = folder / "membership"
        self._timeout_s = timeout_s
        self._given_up = given_up

    def is_published(self, state: ServerState, table_oid: int) -> bool:
        """Whether all changes of the table are sent, and were since the slot was made."""
        membership = state.published.get(table_oid)
        if membership is None:
            return False
        try:
            return int(self._membership.read_text("ascii")) == membership
        except FileNotFoundError:  # the server's data directory was lost
            return True

    def start(self, state: ServerState, table: SourceTable) -> int | SqlError:
        """Where the slot begins that is there; or why there is none that has all changes of the table (55000)."""
        if state.slot is None:
            return slot_gone(self._store, self._name)
        if state.slot.wal_status == "lost":
            return slot_lost(self._store, self._name)
        if not self.is_published(state, table.oid):
            return not_published(self._store, self._name, table)
        return state.slot.confirmed

    def make(
        self,
        connection: Connection,
        stream: ReplicationStream,
        table: SourceTable,
        within_s: float,
    ) -> int:
        """In the place of what is there under the name; returns where the changes begin. Waits for the transactions
        that are running."""
        self.drop(connection)
        membership = slots.make_publication(self._store, connection, self._name, table)
        self._keep(membership)  # before the slot, without which nobody asks for it
        with stream.connection.answering_within(within_s):
            lsn, _ = slots.create_slot(self._store, stream.connection, self._name, temporary=False, export=False)
        return lsn

    def _keep(self, membership: int) -> None:
        self._membership.parent.mkdir(parents=True, exist_ok=True)
        aside = self._membership.with_suffix(".new")
        aside.write_text(str(membership), "ascii")
        aside.replace(self._membership)

    def drop(self, connection: Connection) -> None:
        """As soon as nobody reads it any more, which the server may notice late."""
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                slots.drop(self._store, connection, self._name)
                return
            except SqlError as error:
                if error.sqlstate != sqlstates.OBJECT_IN_USE or time.monotonic() > deadline:
                    raise
            if self._given_up.wait(_DROP_PAUSE_S):
                raise stopping()
