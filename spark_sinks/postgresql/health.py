"""The health of a table's stream: whether its server still has all that its readers want next, and which error it is
where it has not."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mvserver import sqlstates
from mvserver.errors import SqlError, words_of
from spark_sinks.base import Position, SourceHealth
from spark_sinks.postgresql import positions
from spark_sinks.postgresql.changes import KnownTable, known_now
from spark_sinks.postgresql.positions import Origin, lsn_text
from spark_sinks.postgresql.slots import ServerState
from spark_sinks.postgresql.tables import SourceTable

_LASTING = (sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE, sqlstates.DATA_CORRUPTED)
_REMOVED = "The server has removed log that was not read yet, as its max_slot_wal_keep_size says."
_LOST = {  # by the server's word; one before PostgreSQL 17 has none
    "": _REMOVED,
    "wal_removed": _REMOVED,
    "idle_timeout": "Nobody has read it for longer than the server's idle_replication_slot_timeout.",
    "wal_level_insufficient": "The server's wal_level was not logical for a time.",
}
_REBUILD = "REFRESH MATERIALIZED VIEW builds a view anew from the present rows."


class TableHealth:
    """A :class:`spark_sinks.base.Health`.

    ``ask`` is the server's state and the table there, None where it is gone; ``known`` what a changelog's rows were
    read by. ``former`` are the timelines that one comes from, with the LSN at which each was left. ``is_published``
    says whether all changes of a table are sent, and were since the slot was made. ``wanted`` is told which LSN a
    reader has to come to; ``check_start`` refuses a position behind which not all can be read.
    """

    def __init__(
        self,
        store: str,
        entity: str,
        slot: str,
        publication: str,
        *,
        ask: Callable[[], tuple[ServerState, SourceTable | None]],
        known: Callable[[], KnownTable | None],
        former: Callable[[int], Mapping[int, int]],
        is_published: Callable[[ServerState, int], bool],
        problem: Callable[[], SqlError | None],
        wanted: Callable[[int], None],
        check_start: Callable[[Position], None],
    ) -> None:
        self._store = store
        self._entity = entity
        self._slot = slot
        self._publication = publication
        self._ask = ask
        self._known = known
        self._former = former
        self._is_published = is_published
        self._problem = problem
        self._wanted = wanted
        self._check_start = check_start

    def look(self, position: Position) -> SourceHealth:
        is_settled = positions.is_settled(position)
        try:
            state, table = self._ask()
            lacking = self.missing(position, state) if is_settled else None
        except SqlError as error:
            return SourceHealth("failed" if error.sqlstate in _LASTING else "stalled", _words(error))
        if not is_settled:
            return SourceHealth("ok" if table is not None else "failed", None if table is not None else self._gone())
        origin = Origin.of(position).on(state.timeline)
        if lacking is not None:
            return SourceHealth("failed", _words(lacking))
        if table is None or table.oid != origin.table:
            return SourceHealth("failed", self._gone())
        if not self._is_published(state, table.oid):
            return SourceHealth("failed", _words(not_published(self._store, self._publication, table)))
        known = self._known()
        broken = None if known is None else known.broken_by(known_now(known.database, table))
        if broken is not None:
            return SourceHealth("failed", broken.words.format(f'table "{self._entity}" of store "{self._store}"'))
        problem = self._problem()
        if problem is not None and problem.sqlstate != sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE:
            return SourceHealth("stalled", _words(problem))
        if problem is not None:
            return SourceHealth("failed", _words(problem))
        self._wanted(state.flushed)
        return SourceHealth("ok", latest=origin.at(state.flushed))

    def _gone(self) -> str:
        return f'table "{self._entity}" of store "{self._store}" was dropped'

    def missing(self, position: Position, state: ServerState) -> SqlError | None:
        """Why the server does not have what comes behind a settled position."""
        origin, lsn, slot = Origin.of(position), positions.lsn(position), state.slot
        if state.system != origin.system:
            return self._error(
                f'store "{self._store}" is another server than before',
                f"It was {origin.system}, and is {state.system} now.",
            )
        if state.timeline != origin.timeline:
            left = left_behind(self._store, position, state.timeline, self._former(state.timeline))
            if left is not None:
                return left
        if state.flushed < lsn:
            return self._error(
                f'the log of store "{self._store}" ends before what was read of it',
                f"It ends at {lsn_text(state.flushed)}, and was read up to {lsn_text(lsn)}: the server was restored.",
            )
        if slot is None:
            return slot_gone(self._store, self._slot)
        if slot.wal_status == "lost":
            return slot_lost(self._store, self._slot, slot.invalidated)
        if slot.confirmed > lsn:
            return behind_slot(self._store, self._slot, lsn, slot.confirmed)
        return None

    def _error(self, message: str, detail: str) -> SqlError:
        return SqlError(sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE, message, detail=detail, hint=_REBUILD)

    def explain_failure(self, error: BaseException, position: Position) -> Exception:
        if isinstance(error, SqlError):
            return error
        first = next((line for line in words_of(error).splitlines() if line.strip()), type(error).__name__)
        return SqlError(
            sqlstates.IO_ERROR, f'reading table "{self._entity}" of store "{self._store}" failed', detail=first[:500]
        )

    def check_history(self, start: Position) -> None:
        self._check_start(start)

    def remaining(self, start: Position) -> tuple[Position, str | None]:
        """The present rows are there always; changes before now are not."""
        if not positions.is_settled(start):
            return start, None
        at = lsn_text(positions.lsn(start))
        return start, f"rebuilt without the changes before {at}, which the server does not keep"


def left_behind(store: str, position: Position, timeline: int, former: Mapping[int, int]) -> SqlError | None:
    """Why a position of another timeline is none of the present one; None where it is: the present one comes from
    there, and has all that was read. ``former`` are those that it comes from, and where each was left."""
    origin, lsn = Origin.of(position), positions.lsn(position)
    left = former.get(origin.timeline)
    if origin.timeline == timeline or (left is not None and lsn <= left):
        return None
    if left is None:
        detail = f"It was read on timeline {origin.timeline}, from which the present timeline {timeline} does not come."
    else:
        detail = (
            f"Timeline {origin.timeline} was left at {lsn_text(left)}, and was read up to {lsn_text(lsn)}: the server "
            "was restored, or a standby that lacked the rest took over."
        )
    return SqlError(
        sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
        f'the log of store "{store}" does not have what was read of it',
        detail=detail,
        hint=_REBUILD,
    )


def not_published(store: str, publication: str, table: SourceTable) -> SqlError:
    return SqlError(
        sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
        f'the changes of table "{table.entity}" of store "{store}" are not all published',
        detail=f'The table was made anew since publication "{publication}" was made, or that was altered.',
        hint=_REBUILD,
    )


def slot_gone(store: str, slot: str) -> SqlError:
    return SqlError(
        sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
        f'replication slot "{slot}" of store "{store}" does not exist any more',
        detail="The changes since the last batch are lost with it.",
        hint=_REBUILD,
    )


def slot_lost(store: str, slot: str, invalidated: str | None) -> SqlError:
    return SqlError(
        sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
        f'replication slot "{slot}" of store "{store}" is lost',
        detail=_LOST.get(invalidated or "", f"The server says {invalidated} of it."),
        hint=_REBUILD,
    )


def behind_slot(store: str, slot: str, lsn: int, confirmed: int) -> SqlError:
    return SqlError(
        sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
        f'replication slot "{slot}" of store "{store}" is ahead of the query',
        detail=f"The query is at {lsn_text(lsn)}, and the slot begins at {lsn_text(confirmed)}.",
        hint=_REBUILD,
    )


def _words(error: SqlError) -> str:
    return error.message if error.detail is None else f"{error.message}: {error.detail}"
