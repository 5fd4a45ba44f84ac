"""The slot of one pipeline and its publication: whether they have all changes of a table, made and dropped together.

The publication is always the server's own. A slot that a statement names may have been there before: it is taken up,
and stays when the pipeline goes.
"""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.postgresql import slots
from spark_sinks.postgresql.connections import Connection, reported, stopping
from spark_sinks.postgresql.health import not_published, slot_gone, slot_lost
from spark_sinks.postgresql.limits import SLOT_PAUSE_S
from spark_sinks.postgresql.replication import ReplicationStream
from spark_sinks.postgresql.slot_names import PREFIX, SlotNote, SlotNotes
from spark_sinks.postgresql.slots import ServerState, SlotState
from spark_sinks.postgresql.tables import SourceTable

_log = logging.getLogger(__name__)


class HeldSlot:
    """``folder`` is the pipeline's. It has the oid of the table's membership in the publication, which is another one
    where the table was taken out and put in again: changes of the time between were never sent."""

    def __init__(
        self, store: str, named: str | None, folder: Path, *, timeout_s: float, given_up: threading.Event
    ) -> None:
        """``named`` is the slot that a statement names. Without it the slot is as it was noted, or the server's own."""
        self._store = store
        self._notes = SlotNotes(folder)
        noted = self._notes.read()
        self.publication = PREFIX + folder.name.replace("-", "_").lower()[:46]
        self.name = named or (self.publication if noted is None else noted.slot)
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
            return slot_gone(self._store, self.name)
        if state.slot.unfit is not None:
            return unfit(self._store, self.name, state.slot.unfit)
        if state.slot.wal_status == "lost":
            return slot_lost(self._store, self.name, state.slot.invalidated)
        if not self.is_published(state, table.oid):
            return not_published(self._store, self.publication, table)
        note = self._notes.read()
        if note is not None and note.begin is None:
            return not_published(self._store, self.publication, table)
        return state.slot.confirmed if note is None else max(state.slot.confirmed, note.begin or 0)

    def make(
        self,
        connection: Connection,
        stream: ReplicationStream,
        table: SourceTable,
        within_s: float,
    ) -> int:
        """In the place of what is there under the server's own name; returns where the changes begin. Waits for the
        transactions that are running."""
        if not self._is_named:
            self.drop(connection)
            self._publish(connection, table)  # before the slot, without which nobody asks for it
            return self._created(stream, within_s)
        state, note = slots.look(self._store, connection, self.name, self.publication), self._notes.read()
        self._notes.check_free(self._store, self.name, state.system)
        if state.slot is not None and (note is None or not note.made):
            return self._taken_up(connection, state, state.slot, table, within_s)
        self._notes.write(self._store, SlotNote(self.name, state.system, made=True, begin=0))
        try:
            self.drop(connection, forgotten=False)
            self._publish(connection, table)
            return self._created(stream, within_s)
        except BaseException:
            self._notes.restore(note)
            raise

    @property
    def _is_named(self) -> bool:
        return self.name != self.publication

    def _publish(self, connection: Connection, table: SourceTable) -> None:
        slot = self.name if self._is_named else None
        self._keep(slots.make_publication(self._store, connection, self.publication, table, slot))

    def _created(self, stream: ReplicationStream, within_s: float) -> int:
        with stream.connection.answering_within(within_s):
            return slots.create_slot(self._store, stream.connection, self.name, temporary=False, export=False)[0]

    def _taken_up(
        self, connection: Connection, state: ServerState, slot: SlotState, table: SourceTable, within_s: float
    ) -> int:
        """A slot that somebody else has made. It may be older than the publication: what commits from here on is read,
        once no transaction runs any more that was there before the publication was."""
        problem = check_usable(self._store, self.name, slot)
        if problem is not None:
            raise problem
        self._notes.write(self._store, SlotNote(self.name, state.system, made=False, begin=None))
        slots.drop_publication(self._store, connection, self.publication)
        self._publish(connection, table)
        deadline = time.monotonic() + within_s
        with reported(self._store):
            number = slots.begun_after(connection)
            while not slots.have_ended(connection, number):
                if time.monotonic() > deadline:
                    raise SqlError(
                        sqlstates.OBJECT_IN_USE,
                        f'store "{self._store}" is still busy',
                        detail=f'To begin with replication slot "{self.name}" waits for transactions that run there.',
                        hint="Try again.",
                    )
                if self._given_up.wait(SLOT_PAUSE_S):
                    raise stopping()
            begin = slots.marked(connection)
        self._notes.write(self._store, SlotNote(self.name, state.system, made=False, begin=begin))
        return begin

    def _keep(self, membership: int) -> None:
        self._membership.parent.mkdir(parents=True, exist_ok=True)
        aside = self._membership.with_suffix(".new")
        aside.write_text(str(membership), "ascii")
        aside.replace(self._membership)

    def drop(self, connection: Connection, *, forgotten: bool = True) -> None:
        """The publication, and the slot where the server has made it. ``forgotten``: nobody has the slot any more."""
        note = self._notes.read()
        if not self._is_named or (note is not None and note.made):
            self._drop_slot(connection)
        elif note is not None and forgotten:
            _log.info("replication slot %s of store %s stays: it was there before", self.name, self._store)
        slots.drop_publication(self._store, connection, self.publication)
        if forgotten:
            self._notes.remove()

    def _drop_slot(self, connection: Connection) -> None:
        """As soon as nobody reads it any more, which the server may notice late."""
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                slots.drop(self._store, connection, self.name)
                return
            except SqlError as error:
                if error.sqlstate != sqlstates.OBJECT_IN_USE or time.monotonic() > deadline:
                    raise
            if self._given_up.wait(SLOT_PAUSE_S):
                raise stopping()


def check_usable(store: str, name: str, slot: SlotState) -> SqlError | None:
    """Why a slot that somebody else has made cannot be taken up."""
    if slot.unfit is not None:
        return unfit(store, name, slot.unfit)
    if slot.wal_status == "lost":
        lost = slot_lost(store, name, slot.invalidated)
        return SqlError(
            lost.sqlstate, lost.message, detail=lost.detail,
            hint=f"SELECT pg_drop_replication_slot('{name}') drops it; then one of that name is made.",
        )  # fmt: skip
    if slot.active:
        return SqlError(
            sqlstates.OBJECT_IN_USE,
            f'replication slot "{name}" of store "{store}" is active',
            detail="Another process reads it.",
            hint="End that process, or name another slot.",
        )
    return None


def unfit(store: str, name: str, why: str) -> SqlError:
    return SqlError(
        sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
        f'replication slot "{name}" of store "{store}" cannot be read',
        detail=why,
        hint="SELECT pg_create_logical_replication_slot('name', 'pgoutput') makes one in the store's database; one "
        "that is not there is made.",
    )
