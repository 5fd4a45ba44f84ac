"""Pull queries of a session: planned by serving, run on a snapshot, watched until their last row.

READ COMMITTED takes a snapshot per statement; REPEATABLE READ and SERIALIZABLE pin one at the first query.
A portal that is still open keeps its cursor: the next query gets another one, or, where the snapshot is pinned, the
rest of the open result is read aside first.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import pyarrow as pa

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.front import Field, Gathered, Postponed, Result
from mvserver.serving.api import UNPROVED_S, Asked, PullPlan, Snapshot, owner_of, refuse_continuous
from mvserver.session import signals
from mvserver.session.clock import StatementClock
from mvserver.session.cursors import cursors_table
from mvserver.session.filling import ViewWatch
from mvserver.session.freshness import FreshnessGate
from mvserver.session.kinds import created_name
from mvserver.session.prepared import PreparedStatement, prepared_table
from mvserver.session.results import DiscardOnClose, WatchedBatches
from mvserver.session.settings_rows import settings_table
from mvserver.session.state import SessionState
from mvserver.sql.dialect import parse_select
from mvserver.sql.statements.queries import BoundedRead, Pull

_FREE_SNAPSHOTS_MAX = 2  # cursors kept for the next query
_WORTH_WAITING_S = 2 * limits.EVENT_LOOP_HELD_S_MAX  # with less time left a look-up runs by itself, under its own clock


class _Waited(NamedTuple):
    asked: Asked
    clock: StatementClock


class PullRunner:
    def __init__(self, state: SessionState, failed: Callable[[Exception], Exception]) -> None:
        self._state = state
        self._failed = failed
        self._watch = ViewWatch(state)
        self._freshness = FreshnessGate(state)
        self._own = {
            "pg_cursors": lambda: cursors_table((*state.cursors.all(), *state.portals.all())),
            "pg_settings": lambda: settings_table(state.settings),
            "pg_prepared_statements": lambda: prepared_table(state.prepared.named()),
        }
        self._free: list[Snapshot] = []
        self._open: list[WatchedBatches] = []
        self._pinned: Snapshot | None = None
        self._pinned_at = 0.0
        self._pin_broken = False
        self._waited: _Waited | None = None  # to be answered together with others; the next call fetches the answer

    # --- planning ---------------------------------------------------------------------------------------------------
    def cached(self, text: str, parameter_oids: Sequence[int] = ()) -> PullPlan | None:
        """The plan of a text that was planned before, found without parsing it. A rewriter must see each text."""
        if self._state.services.rewriter is not None:
            return None
        return self._state.services.pulls.cached(text, self._state.scope(), parameter_oids)

    def known(self, text: str) -> tuple[PullPlan, Sequence[Any]] | None:
        """The same of a text without parameters, with the values to run the plan with."""
        if self._state.services.rewriter is not None:
            return None
        return self._state.services.pulls.known(text, self._state.scope())

    def plan(self, statement: Pull, parameter_oids: Sequence[int] = ()) -> PullPlan:
        refuse_continuous(statement, self._state.scope())
        statement, rewritten = self._rewrite(statement)
        services = self._state.services
        try:
            scope = self._state.scope()
            known = None if statement.has_tree else services.pulls.cached(statement.text, scope, parameter_oids)
            if known is not None:
                return known
            with services.large_texts.working(statement.text), self._with_tree(statement) as parsed:
                return services.pulls.plan(
                    parsed.select, scope, parameter_oids, text=statement.text,
                    start=statement.start, stopped=self._state.context.cancelled,
                )  # fmt: skip
        except SqlError as error:
            self._refuse_reading_queued(error)
            if rewritten:
                error.position = None  # it would point into a text that the user has not written
            raise

    @contextmanager
    def _with_tree(self, statement: Pull) -> Iterator[Pull]:
        if statement.has_tree:
            yield statement
            return
        services = self._state.services
        text = " " * statement.start + statement.text  # its errors' positions are those in what the client sent
        with services.large_texts.parsing(text, self._state.context.cancelled):
            parsed = services.parse(text)
        (query,) = [each for each in parsed if isinstance(each, Pull)]
        try:
            yield query
        finally:
            services.large_texts.free(query)

    def plan_prepared(self, prepared: PreparedStatement, statement: Pull) -> PullPlan:
        """What a prepared statement means now; 0A000 where the client was told of other columns."""
        plan = self.plan(statement, prepared.declared_oids)
        refuse_changed(prepared, plan.fields)
        return plan

    def _rewrite(self, statement: Pull) -> tuple[Pull, bool]:
        """A buenavista Rewriter sees the text of each pull; what it leaves unchanged is not parsed twice."""
        rewriter = self._state.services.rewriter
        if rewriter is None:
            return statement, False
        text = rewriter.rewrite(statement.text)
        if text == statement.text:
            return statement, False
        rewritten = self._state.services.parse(text)
        if len(rewritten) != 1 or not isinstance(rewritten[0], Pull):
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                "the rewriter did not return one SELECT for this SELECT",
                detail=f"It returned: {text[:500]}",
            )
        return rewritten[0], True

    def _refuse_reading_queued(self, error: SqlError) -> None:
        if error.sqlstate != sqlstates.UNDEFINED_TABLE:
            return
        for statement in self._state.transaction.queue:
            name = created_name(statement)
            if name is not None and f'"{name}"' in error.message.replace(".", '"."'):
                raise SqlError(
                    sqlstates.ACTIVE_SQL_TRANSACTION,
                    f'relation "{name}" is created by this transaction and cannot be read before COMMIT',
                    hint="Commit first, or use autocommit.",
                    position=error.position,
                ) from error

    # --- running ----------------------------------------------------------------------------------------------------
    def may_run_at_once(self, plan: PullPlan | None) -> bool:
        """Whether nothing is known for which it would have to wait."""
        return (
            plan is not None
            and (self._runs_short(plan) or plan.runs.kept or self._state.services.pulls.finished.knows(plan))
            and not plan.sets
            and not plan.signals
            and not plan.streams
            and not (plan.reads_now and self._state.transaction.started)
            and not self._state.transaction.pins
            and self._freshness.asks_nothing
            and self._watch.is_settled(plan)
        )

    def _runs_short(self, plan: PullPlan) -> bool:
        """In DuckDB."""
        return plan.runs.short and bool(self._free)

    def _run_at_once(self, plan: PullPlan, parameters: Sequence[Any], clock: StatementClock) -> Result:
        waited, self._waited = self._waited, None
        if waited is not None:
            waited.clock.check()  # a cancel came meanwhile
        if not self.may_run_at_once(plan):
            raise Postponed
        finished = self._finished(plan, parameters, clock)
        if finished is not None:
            return finished
        sharing = self._state.services.pulls.sharing if plan.steady else None
        if sharing is not None:
            kept = sharing.kept(plan, parameters)
            if kept is not None:
                self._state.transaction.queried = True
                return kept
            plan.runs.kept = False
        if not self._runs_short(plan):
            raise Postponed
        version = None if sharing is None else sharing.version(plan)
        gathering = self._state.services.pulls.gathering if plan.together is not None else None
        if gathering is not None and waited is not None and waited.asked.is_of(plan, parameters):
            result = gathering.result(waited.asked)
            if result is not None:
                self._state.transaction.queried = True
                return result
        elif gathering is not None and (clock.remaining_s is None or clock.remaining_s > _WORTH_WAITING_S):
            asked = gathering.ask(plan, parameters)
            if asked is not None:
                self._waited = _Waited(asked, clock)
                raise Gathered(self._answer_gathered)
        self._state.transaction.queried = True
        snapshot = self._free.pop()
        try:
            with clock.working(snapshot.interrupt), self._state.services.watchdog.watching(snapshot.interrupt) as held:
                try:
                    result = snapshot.run_at_once(plan, parameters)
                except SqlError as error:
                    if error.sqlstate != sqlstates.QUERY_CANCELED or not held.expired or clock.cancelled:
                        raise
                    result = None  # the watchdog's interrupt: again, on a worker
        finally:
            self._free.append(snapshot)
        if result is None:
            plan.runs.slowest_s = UNPROVED_S
            raise Postponed
        if sharing is not None:
            sharing.keep(plan, parameters, version, result)
        return result

    def _signalled(self, plan: PullPlan, result: Result, snapshot: Snapshot) -> Result:
        """All of them are sent before the first row goes to the client."""
        try:
            sent = list(signals.send(self._state, result, plan.signals))
        except Exception:
            _close(result)
            self._release(snapshot)
            raise
        return dataclasses.replace(result, batches=iter(sent))

    def _finished(self, plan: PullPlan, parameters: Sequence[Any], clock: StatementClock) -> Result | None:
        """Without DuckDB, where the rows are kept finished; where no snapshot is pinned, that is."""
        if plan.key_read is None:
            return None
        clock.check()
        found = self._state.services.pulls.finished.find(plan, parameters)
        if found is not None:
            self._state.transaction.queried = True
        return found

    def _answer_gathered(self) -> None:
        gathering = self._state.services.pulls.gathering
        if gathering.waiting:
            with self._state.services.watchdog.watching(gathering.interrupt):
                gathering.answer()

    def run(self, plan: PullPlan, parameters: Sequence[Any], clock: StatementClock) -> Result:
        if self._state.at_once:
            return self._run_at_once(plan, parameters, clock)
        if not plan.catalog_only and plan.view_ids:
            self._watch.before_read(plan, clock)
            if self._pinned is None:  # what is pinned already does not become fresher
                self._freshness.before_read(plan.view_ids, clock)
        kept = None if self._state.transaction.pins else self._finished(plan, parameters, clock)
        if kept is not None:
            return kept
        tables = self._stream_tables(plan, clock)
        self._state.transaction.queried = True
        result, snapshot = self._shared(plan, parameters, clock) or self._alone(plan, parameters, tables, clock)
        pinned = snapshot is self._pinned and snapshot is not None
        self._apply_settings(plan)
        if snapshot is None:
            return result
        if plan.signals:
            result = self._signalled(plan, result, snapshot)
        if result.fields is None or result.whole:
            self._release(snapshot)
            return result

        def failed(error: Exception) -> Exception:
            self._pin_broken = self._pin_broken or pinned
            return self._failed(error)

        def finished() -> None:
            self._open = [other for other in self._open if other is not watched]
            self._release(snapshot)

        watched = WatchedBatches(
            result, clock, interrupt=snapshot.interrupt, failed=failed, finished=finished, share=self._state.spooled
        )
        self._open.append(watched)
        return dataclasses.replace(result, batches=DiscardOnClose(watched))

    def _shared(
        self, plan: PullPlan, parameters: Sequence[Any], clock: StatementClock
    ) -> tuple[Result, Snapshot | None] | None:
        """An answer that others have, too, and the snapshot that it is still read from; None where there is none."""
        if not plan.steady or self._state.transaction.pins:
            return None
        clock.check()
        sharing = self._state.services.pulls.sharing
        kept = sharing.kept(plan, parameters)
        if kept is not None:
            return kept, None
        seat = sharing.seat(plan, parameters, self._new_snapshot, owner_of(self._state.scope()))
        if seat is None:
            return None
        result: Result | None = None
        try:
            with clock.working(seat.interrupt):
                result = seat.wait()
        except Exception:
            seat.give_up()
            _close(result)
            if seat.snapshot is not None:
                self._release(seat.snapshot)
            raise
        return None if result is None else (result, seat.snapshot)

    def _alone(
        self, plan: PullPlan, parameters: Sequence[Any], tables: dict[str, pa.Table], clock: StatementClock
    ) -> tuple[Result, Snapshot]:
        snapshot, result = self._snapshot(), None
        try:
            with clock.working(snapshot.interrupt):
                result = snapshot.run(plan, parameters, tables=tables, now=self._state.transaction.started)
        except Exception:
            _close(result)
            self._release(snapshot, broken=True)
            raise
        return result, snapshot

    def _stream_tables(self, plan: PullPlan, clock: StatementClock) -> dict[str, pa.Table]:
        """The rows of the streams that the query reads, to their present ends."""
        tables: dict[str, pa.Table] = {}
        for read in plan.streams:
            statement = BoundedRead(parse_select(read.select), read.limit, text=read.select)
            with clock.working():
                result = self._state.services.router.execute(statement, self._state.context)
                tables[read.name] = pa.Table.from_batches(result.batches)
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

    def _snapshot(self) -> Snapshot:
        if not self._state.transaction.pins:
            return self._new_snapshot()
        if self._pin_broken:
            raise SqlError(
                sqlstates.SERIALIZATION_FAILURE,
                "the snapshot of this transaction was lost by an error",
                hint="Roll back and begin again.",
            )
        if self._pinned is None:
            self._pinned = self._new_snapshot()
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

    def _new_snapshot(self) -> Snapshot:
        return (
            self._free.pop()
            if self._free
            else self._state.services.pulls.snapshot(self._own, owner_of(self._state.scope()))
        )

    def _release(self, snapshot: Snapshot, *, broken: bool = False) -> None:
        if snapshot is self._pinned:
            self._pin_broken = self._pin_broken or broken
        elif not snapshot.lost and len(self._free) < _FREE_SNAPSHOTS_MAX:
            self._free.append(snapshot)
        else:
            snapshot.close()

    # --- ending -----------------------------------------------------------------------------------------------------
    def end_transaction(self) -> None:
        """Portals end with their transaction, and what was pinned is let go."""
        for watched in list(self._open):
            watched.revoke()
        pinned, self._pinned, self._pin_broken = self._pinned, None, False
        if pinned is not None:
            try:
                pinned.end()
            except BaseException:
                pinned.close()  # a cursor whose transaction cannot be ended must not serve another
                raise
            self._release(pinned)

    def close(self) -> None:
        try:
            self.end_transaction()
        finally:
            free, self._free = self._free, []
            for snapshot in free:
                snapshot.close()


def _close(result: Result | None) -> None:
    """Of one that a cancel has come too late for: the next query would read its rest aside."""
    if result is not None:
        result.close()


def bare(text: str) -> str:
    """As a statement's text is kept by the parser."""
    return text.strip().rstrip(";").rstrip()


def refuse_changed(prepared: PreparedStatement, fields: tuple[Field, ...]) -> None:
    """0A000 where the client was told of other columns."""
    if not same_columns(prepared, fields):
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "cached plan must not change result type",
            hint="Prepare the statement again.",
        )


def same_columns(prepared: PreparedStatement, fields: tuple[Field, ...]) -> bool:
    """Whether these are what the client was told of, if it was."""
    told = prepared.fields
    return told is None or told is fields or _shape(fields) == _shape(told)


def _shape(fields: Sequence[Field]) -> tuple[tuple[str, int], ...]:
    return tuple((field.name, field.type_oid) for field in fields)
