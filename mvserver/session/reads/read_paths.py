"""The ways to answer a planned SELECT. ``read_paths`` has their order, and ``pulls`` tries them in turn.

A path says whether it may answer a read, and answers it or leaves it to the next one. On the event loop no path may
wait: there the last two are not asked. ``session.reads.look_ups`` reads what the first path does, for whole messages
of the wire.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.front import Result
from mvserver.serving.api import UNPROVED_S, Asked, PullPlan, Snapshot, owner_of
from mvserver.session import signals
from mvserver.session.clock import StatementClock
from mvserver.session.reads.snapshots import Snapshots
from mvserver.session.state import SessionState
from mvserver.sql.dialect import parse_select
from mvserver.sql.statements.queries import BoundedRead

_WORTH_WAITING_S = 2 * limits.EVENT_LOOP_HELD_S_MAX  # with less time left a look-up runs by itself, under its own clock


class Gathered(NamedTuple):
    """A look-up that waits to be answered together with others. The same read is tried again after that."""

    asked: Asked
    clock: StatementClock


@dataclass(slots=True)
class Read:
    """One run of a plan. Nothing changes it; a frozen one takes four times as long to make."""

    plan: PullPlan
    parameters: Sequence[Any]
    clock: StatementClock
    at_once: bool  # on the event loop
    gathered: Gathered | None = None  # by the try before, which waited for others


class ReadPath(Protocol):
    def ready(self, plan: PullPlan) -> bool:
        """Whether it is likely to answer on the event loop. A hint: ``may`` decides."""

    def may(self, read: Read) -> bool:
        """Whether it can answer such a read. It is quick, and without effect."""

    def answer(self, read: Read) -> Result | Gathered | None:
        """None leaves the read to the next path."""


def read_paths(state: SessionState, snapshots: Snapshots) -> tuple[ReadPath, ...]:
    """In the order in which they are tried."""
    return (
        FinishedRowsPath(state),
        KeptResultPath(state),
        GatheredPath(state, snapshots),
        FewRowsPath(state, snapshots),
        SharedEvaluationPath(state, snapshots),
        OwnSnapshotPath(state, snapshots),
    )


class FinishedRowsPath:
    """Rows that are kept finished beside DuckDB, found by their keys."""

    def __init__(self, state: SessionState) -> None:
        self._state = state
        self._finished = state.services.pulls.finished
        self.ready = self._finished.knows

    def may(self, read: Read) -> bool:
        return read.plan.key_read is not None and not self._state.transaction.pins

    def answer(self, read: Read) -> Result | None:
        read.clock.check()
        return self._finished.find(read.plan, read.parameters)


class KeptResultPath:
    """The result of an equal query, kept until a view that it reads is changed."""

    def __init__(self, state: SessionState) -> None:
        self._state = state
        self._pulls = state.services.pulls

    def ready(self, plan: PullPlan) -> bool:
        return plan.runs.kept

    def may(self, read: Read) -> bool:
        return read.plan.steady and not self._state.transaction.pins

    def answer(self, read: Read) -> Result | None:
        read.clock.check()
        kept = self._pulls.sharing.kept(read.plan, read.parameters)
        if kept is None:
            read.plan.runs.kept = False
        return kept


class GatheredPath:
    """One statement of DuckDB's for the look-ups of several sessions that wait for the event loop together."""

    def __init__(self, state: SessionState, snapshots: Snapshots) -> None:
        self._pulls = state.services.pulls
        self._snapshots = snapshots

    def ready(self, plan: PullPlan) -> bool:
        return False  # what it answers, FewRowsPath may answer

    def may(self, read: Read) -> bool:
        return read.at_once and read.plan.together is not None and read.plan.runs.short and bool(self._snapshots.free)

    def answer(self, read: Read) -> Result | Gathered | None:
        waited, remaining_s = read.gathered, read.clock.remaining_s
        if waited is not None and waited.asked.is_of(read.plan, read.parameters):
            return self._pulls.gathering.result(waited.asked)
        if remaining_s is not None and remaining_s <= _WORTH_WAITING_S:
            return None
        asked = self._pulls.gathering.ask(read.plan, read.parameters)
        return None if asked is None else Gathered(asked, read.clock)


class FewRowsPath:
    """A short query in DuckDB on the event loop, which the watchdog interrupts when it is not short."""

    def __init__(self, state: SessionState, snapshots: Snapshots) -> None:
        self._state = state
        self._pulls = state.services.pulls
        self._snapshots = snapshots

    def ready(self, plan: PullPlan) -> bool:
        return plan.runs.short and bool(self._snapshots.free)

    def may(self, read: Read) -> bool:
        return read.at_once and self.ready(read.plan)

    def answer(self, read: Read) -> Result | None:
        plan = read.plan
        version = self._pulls.sharing.version(plan) if plan.steady else None
        self._state.transaction.queried = True
        result = self._run(read)
        if result is None:
            plan.runs.slowest_s = UNPROVED_S
        elif plan.steady:
            self._pulls.sharing.keep(plan, read.parameters, version, result)
        return result

    def _run(self, read: Read) -> Result | None:
        """None where it was interrupted by the watchdog, or has more than a few rows."""
        clock, free = read.clock, self._snapshots.free
        snapshot = free.pop()
        try:
            with clock.working(snapshot.interrupt), self._state.services.watchdog.watching(snapshot.interrupt) as held:
                try:
                    return snapshot.run_at_once(read.plan, read.parameters)
                except SqlError as error:
                    if error.sqlstate != sqlstates.QUERY_CANCELED or not held.expired or clock.cancelled:
                        raise
                    return None
        finally:
            free.append(snapshot)


class SharedEvaluationPath:
    """One evaluation for all sessions that ask the same while it is under way."""

    def __init__(self, state: SessionState, snapshots: Snapshots) -> None:
        self._state = state
        self._pulls = state.services.pulls
        self._snapshots = snapshots

    def ready(self, plan: PullPlan) -> bool:
        return False

    def may(self, read: Read) -> bool:
        return not read.at_once and read.plan.steady and not self._state.transaction.pins

    def answer(self, read: Read) -> Result | None:
        self._state.transaction.queried = True
        owner = owner_of(self._state.scope())
        seat = self._pulls.sharing.seat(read.plan, read.parameters, self._snapshots.new, owner)
        if seat is None:
            return None
        result: Result | None = None
        try:
            with read.clock.working(seat.interrupt):
                result = seat.wait()
        except Exception:
            seat.give_up()
            _close(result)
            if seat.snapshot is not None:
                self._snapshots.release(seat.snapshot)
            raise
        if result is None or seat.snapshot is None:
            return result
        return self._snapshots.read_from(seat.snapshot, result, read.clock)


class OwnSnapshotPath:
    """The session's own cursor: a few rows at one go, more of them as they are asked for."""

    def __init__(self, state: SessionState, snapshots: Snapshots) -> None:
        self._state = state
        self._snapshots = snapshots

    def ready(self, plan: PullPlan) -> bool:
        return False

    def may(self, read: Read) -> bool:
        return not read.at_once

    def answer(self, read: Read) -> Result:
        plan = read.plan
        tables = self._stream_tables(read)
        self._state.transaction.queried = True
        snapshot = self._snapshots.of_statement()
        result = self._run(read, snapshot, tables)
        self._apply_settings(plan)
        if plan.signals:
            result = self._signalled(plan, result, snapshot)
        return self._snapshots.read_from(snapshot, result, read.clock)

    def _run(self, read: Read, snapshot: Snapshot, tables: dict[str, pa.Table]) -> Result:
        result: Result | None = None
        try:
            with read.clock.working(snapshot.interrupt):
                result = snapshot.run(read.plan, read.parameters, tables=tables, now=self._state.transaction.started)
        except Exception:
            _close(result)
            self._snapshots.release(snapshot, broken=True)
            raise
        return result

    def _stream_tables(self, read: Read) -> dict[str, pa.Table]:
        """The rows of the streams that the query reads, to their present ends."""
        tables: dict[str, pa.Table] = {}
        for stream in read.plan.streams:
            statement = BoundedRead(parse_select(stream.select), stream.limit, text=stream.select)
            with read.clock.working():
                result = self._state.services.router.execute(statement, self._state.context)
                tables[stream.name] = pa.Table.from_batches(result.batches)
        return tables

    def _apply_settings(self, plan: PullPlan) -> None:
        """What the query's set_config calls asked for."""
        for name, value, local in plan.sets:
            local = local and self._state.transaction.in_block
            if name.lower() == "role":
                self._state.set_role(value, local=local)
                continue
            key = self._state.settings.set(name, value, local=local)
            if key == "search_path":
                self._state.follow_search_path()
        if plan.sets:
            self._state.publish()

    def _signalled(self, plan: PullPlan, result: Result, snapshot: Snapshot) -> Result:
        """All of them are sent before the first row goes to the client."""
        try:
            sent = list(signals.send(self._state, result, plan.signals))
        except Exception:
            _close(result)
            self._snapshots.release(snapshot)
            raise
        return dataclasses.replace(result, batches=iter(sent))


def _close(result: Result | None) -> None:
    """Of one that a cancel has come too late for: the next query would read its rest aside."""
    if result is not None:
        result.close()
