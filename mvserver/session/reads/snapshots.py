"""The DuckDB cursors of a session: those that are free, the pinned one, and the results that are still open.

READ COMMITTED takes a snapshot for each statement. REPEATABLE READ and SERIALIZABLE pin one at the first query.
An open portal keeps its cursor, and the next query gets another one. A pinned snapshot is the only one: the rest of the
open result is read aside first.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.front import Result
from mvserver.serving.api import Snapshot, owner_of
from mvserver.session.clock import StatementClock
from mvserver.session.cursors.cursors import cursors_table
from mvserver.session.prepared import prepared_table
from mvserver.session.results import DiscardOnClose, WatchedBatches
from mvserver.session.settings.settings_rows import settings_table
from mvserver.session.state import SessionState

_FREE_MAX = 2  # kept for the next query


class Snapshots:
    def __init__(self, state: SessionState, failed: Callable[[Exception], Exception]) -> None:
        """``failed`` makes the client's error of one that a result raises while it is read."""
        self._state = state
        self._failed = failed
        self._own: dict[str, Callable[[], Any]] = {
            "pg_cursors": lambda: cursors_table((*state.cursors.all(), *state.portals.all())),
            "pg_settings": lambda: settings_table(state.settings),
            "pg_prepared_statements": lambda: prepared_table(state.prepared.named()),
        }
        self.free: list[Snapshot] = []
        self._open: list[WatchedBatches] = []
        self._pinned: Snapshot | None = None
        self._pinned_at = 0.0
        self._pin_broken = False

    @property
    def pinned(self) -> bool:
        """Whether the transaction reads one state already."""
        return self._pinned is not None

    def new(self) -> Snapshot:
        """One that nothing is read from."""
        if self.free:
            return self.free.pop()
        return self._state.services.pulls.snapshot(self._own, owner_of(self._state.scope()))

    def of_statement(self) -> Snapshot:
        """The pinned one, where the transaction pins; 40001 where it was lost, 72000 where it is too old."""
        if not self._state.transaction.pins:
            return self.new()
        if self._pin_broken:
            raise SqlError(
                sqlstates.SERIALIZATION_FAILURE,
                "the snapshot of this transaction was lost by an error",
                hint="Roll back and begin again.",
            )
        if self._pinned is None:
            self._pinned = self.new()
            self._pinned.begin()
            self._pinned_at = time.monotonic()
        elif time.monotonic() - self._pinned_at > limits.PINNED_SNAPSHOT_AGE_MAX_S:
            raise SqlError(
                sqlstates.SNAPSHOT_TOO_OLD,
                "snapshot too old",
                detail=f"A transaction may read one snapshot for {limits.PINNED_SNAPSHOT_AGE_MAX_S:g} seconds.",
            )
        for watched in list(self._open):
            watched.spool()
        return self._pinned

    def release(self, snapshot: Snapshot, *, broken: bool = False) -> None:
        if snapshot is self._pinned:
            self._pin_broken = self._pin_broken or broken
        elif not snapshot.lost and len(self.free) < _FREE_MAX:
            self.free.append(snapshot)
        else:
            snapshot.close()

    def read_from(self, snapshot: Snapshot, result: Result, clock: StatementClock) -> Result:
        """The result of a statement on this snapshot, which is given back after the last row."""
        if result.fields is None or result.whole:
            self.release(snapshot)
            return result
        pinned = snapshot is self._pinned

        def failed(error: Exception) -> Exception:
            self._pin_broken = self._pin_broken or pinned
            return self._failed(error)

        def finished() -> None:
            self._open = [other for other in self._open if other is not watched]
            self.release(snapshot)

        watched = WatchedBatches(
            result, clock, interrupt=snapshot.interrupt, failed=failed, finished=finished, share=self._state.spooled
        )
        self._open.append(watched)
        return dataclasses.replace(result, batches=DiscardOnClose(watched))

    def end_transaction(self) -> None:
        """Portals end with their transaction, and the pinned snapshot is let go."""
        for watched in list(self._open):
            watched.revoke()
        pinned, self._pinned, self._pin_broken = self._pinned, None, False
        if pinned is not None:
            try:
                pinned.end()
            except BaseException:
                pinned.close()  # a cursor whose transaction cannot be ended must not serve another
                raise
            self.release(pinned)

    def close(self) -> None:
        try:
            self.end_transaction()
        finally:
            free, self.free = self.free, []
            for snapshot in free:
                snapshot.close()
