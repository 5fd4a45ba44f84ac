"""Commits a micro-batch: rows, rejected rows, progress and ledger in one DuckDB transaction.

DuckDB has one writer at a time here (``commit_lock``). A statement that fails ends its whole transaction, so a view
whose merge fails is named to the caller, who commits the batch again without it.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import duckdb
import pyarrow as pa

from mvserver import limits
from mvserver.errors import SqlError
from spark_sinks.base import Position
from spark_sinks.duckdb.batch_plans import Advance, BatchCommit, TableMerge, ViewMerge
from spark_sinks.duckdb.batch_table import BATCH, BatchTable
from spark_sinks.duckdb.changes import logs
from spark_sinks.duckdb.changes.capture import Keeper, as_g, capture, shows_closed, take_changes, turned_keys
from spark_sinks.duckdb.changes.changelog import KeyedRows, RetractedState
from spark_sinks.duckdb.changes.changes import ChangeNotes, RowsNow, StateWatch, Unwatched
from spark_sinks.duckdb.changes.group_logs import GroupLog
from spark_sinks.duckdb.changes.outbox import Outbox, forget_statement
from spark_sinks.duckdb.disk_errors import disk_error
from spark_sinks.duckdb.history.histories import Histories
from spark_sinks.duckdb.history.history import History
from spark_sinks.duckdb.history.telling_merge import ShownGroups
from spark_sinks.duckdb.joins import silence
from spark_sinks.duckdb.layout import ViewLayout, ViewLayouts
from spark_sinks.duckdb.ledger import inspection
from spark_sinks.duckdb.ledger.commits import Commits
from spark_sinks.duckdb.ledger.damage import DamageWatch, user_error
from spark_sinks.duckdb.ledger.ledger import HistoryRow, Ledger, SubscriberRow, create_tables
from spark_sinks.duckdb.ledger.write_ahead_log import WriteAheadLog
from spark_sinks.duckdb.names import qualified, qualified_view, rows_of
from spark_sinks.duckdb.state import sessions, windows
from spark_sinks.duckdb.state.shared_states import Arrangement, SharedMerge, SharedStates
from spark_sinks.duckdb.state.state import State, UpsertState, create_statements, source_text, watermark_rule
from spark_sinks.duckdb.state.value_tables import new_values_relation
from spark_sinks.duckdb.state.window_batches import take_in
from spark_sinks.duckdb.statements import Statements

_log = logging.getLogger(__name__)

_NOBODYS = (duckdb.IOException, duckdb.InterruptException)  # a full disk, a server that ends: no view is to blame
ROWS_TOLD_MAX = 3_000  # of more records, whoever keeps rows reads them by their keys: the commit does not wait for that
REJECTED_ROWS_SHOWN_MAX = 100_000  # the newest; a flood of them must not fill the memory of a reader


class MergeError(Exception):
    """A view's own merge failed, or what its watermark shows; everything is rolled back."""

    def __init__(self, query_id: str, error: SqlError) -> None:
        super().__init__(str(error))
        self.query_id = query_id
        self.error = error


class _SharedMergeError(Exception):
    """A statement of several views failed."""


class Writer:
    """The one writer of view rows. ``reached`` is called with the name of each step (failpoints in tests)."""

    def __init__(
        self,
        cursor: Callable[[], duckdb.DuckDBPyConnection],
        translate: Callable[[Exception], SqlError],
        reached: Callable[[str], None] = lambda step: None,
        damage: DamageWatch | None = None,
        layouts: ViewLayouts | None = None,
    ) -> None:
        self.damage = damage or DamageWatch()
        self.layouts = layouts or ViewLayouts()
        self._new_layouts: dict[str, ViewLayout | None] = {}  # of the transaction that is under way
        self.commits = Commits()
        self._out_of_memory: Counter[str] = Counter()  # merges of a query that failed so, one after the other
        self._cursor = cursor()
        self._statements = Statements(self._cursor)
        self._translate = translate
        self._reached = reached
        self._registered: set[str] = set()
        self._batch = BatchTable(self._cursor)
        self._notes = ChangeNotes()
        self.watch: StateWatch = Unwatched()
        self.commit_lock = threading.RLock()
        with self.commit_lock:
            create_tables(self._cursor)
        self.ledger = Ledger(self._cursor, self._statements)
        self.histories = Histories(self._statements)
        self._shared = SharedStates(self._cursor)
        self._log = WriteAheadLog(self._cursor, self.damage)

    @contextmanager
    def transaction(self) -> Iterator[Ledger]:
        """One transaction under the commit lock; the ledger's statements run in it."""
        with self.commit_lock:
            self._begin()
            try:
                yield self.ledger
                self._close(together=False)
                self._commit(None)
            except BaseException as error:
                self._roll_back()
                told = self._told(error)
                if told is error:
                    raise
                raise told from error

    def _told(self, error: BaseException) -> BaseException:
        """The error, as a user's where it is a sign of a damaged file."""
        if not self.damage.notice(error) or not isinstance(error, duckdb.Error):
            return error
        return user_error(error) or error

    def _translated(self, error: Exception) -> SqlError:
        self.damage.notice(error)
        return self._translate(error)

    def _begin(self) -> None:
        self._notes.begin()
        self._new_layouts.clear()
        self.histories.begin()
        self._batch.begin()
        try:
            self._cursor.execute("BEGIN TRANSACTION")
        except duckdb.Error as error:
            if self.damage.notice(error):  # the statement, or the batch, is the first to meet it
                raise self._translate(error) from error
            raise

    def _close(self, *, together: bool) -> None:
        """What is written at the end of a transaction, as one statement. Not ``together``, each history is written by
        itself: so it is found out whose fails."""
        closing, histories = self.ledger.closing, self.histories.unfinished
        if not together:
            closing.execute()
        for history in histories:
            with self._on_behalf_of(history.view.query_id):
                history.finish(self._cursor, closing)
                if not together:
                    closing.execute()
        try:
            closing.execute()
        except _NOBODYS:
            raise
        except duckdb.Error as error:
            if not histories or self.damage.notice(error):
                raise
            raise _SharedMergeError from error

    def _commit(self, query_ids: Collection[str] | None) -> None:
        """``query_ids``: whose rows it may change; None where it may be those of any."""
        self._note_shown()
        self.watch.changing(self._notes.taken)
        done = False
        try:
            with self.commits.making(query_ids):
                self._cursor.execute("COMMIT")
            done = True
            self.histories.committed()
            if self._new_layouts:
                self.layouts.change(self._new_layouts)  # before the watch is told: who it wakes asks for them
        finally:
            self.watch.changed(done=done)

    def _note_shown(self) -> None:
        """A history has what became of the rows, so nobody need read them again. What is replaced is in it twice."""
        for history in self.histories.unfinished:
            changes = history.changes
            if changes is not None and sum(each.num_rows for each in changes) <= 2 * ROWS_TOLD_MAX:
                names = [name for name, _ in history.view.columns]
                self._notes.shown(history.view.state_table, names, changes)

    def execute(self, statement: str) -> None:
        """Inside ``transaction``: DDL of states and views."""
        self._notes.anything()
        self._cursor.execute(statement)

    def execute_for(self, query_id: str, statements: Sequence[str]) -> None:
        """A transaction of one query alone. Raises MergeError for its own error."""
        with self.transaction(), self._on_behalf_of(query_id):
            for statement in statements:
                self.execute(statement)

    def forget_sent(self, outbox: Outbox, until: int) -> None:
        """A transaction of its own: rows of an outbox that are where they were to go."""
        with self.transaction():
            self._cursor.execute(forget_statement(outbox, until))

    def create_state(self, state: State, layout: ViewLayout, kept: Outbox | None = None) -> None:
        """An empty state, and the view over it."""
        self._notes.rows(state.table)
        more = [] if kept is None else kept.create_statements()
        self._drop_tables(state.tables)
        for statement in (*create_statements(state), layout.statement, *more):
            self._cursor.execute(statement)
        self._new_layouts[layout.view_id] = layout

    def replace_view(self, layout: ViewLayout) -> None:
        """The view anew over the state that is there: its text may differ with the version of the server."""
        self.execute(layout.statement)
        self._new_layouts[layout.view_id] = layout

    def drop_state(self, tables: Sequence[str], view_id: str | None) -> None:
        if view_id is not None:
            self._notes.rows(view_id)
            self._cursor.execute(f"DROP VIEW IF EXISTS {qualified_view(view_id)}")
            self._new_layouts[view_id] = None
        for table in tables:
            self._notes.rows(table)
        self._drop_tables(tables)
        self._cursor.execute(logs.forget_statement())

    def _drop_tables(self, tables: Sequence[str]) -> None:
        self.histories.drop_of(tables)
        for table in filter(self._shared.is_shared, tables):
            self._shared.drop(table)
        for table in tables:
            self._cursor.execute(f"DROP TABLE IF EXISTS {qualified(table)}")

    def ledger_subscribers(self) -> list[SubscriberRow]:
        with self.commit_lock:
            return self.ledger.subscribers()

    def ledger_sinks(self) -> list[str]:
        with self.read_cursor() as cursor:
            return Ledger(cursor).sinks()

    def ledger_histories(self) -> list[HistoryRow]:
        with self.read_cursor() as cursor:
            return Ledger(cursor).histories()

    def is_subscribed(self, pipeline_id: str) -> bool:
        """Whether any query has a place in the ledger by that pipeline, also one that could not be set up."""
        return any(row.pipeline_id == pipeline_id for row in self.ledger_subscribers())

    def rejected_rows(self) -> list[tuple[Any, ...]]:
        """(relation id, position, reason, raw, raw bytes, rejected at), the newest first; reads by a cursor of its own,
        so that no commit waits for it."""
        with self._cursor.cursor() as cursor:
            return cursor.execute(
                'SELECT relation_id, position, reason, raw, raw_bytes, rejected_at FROM "_ledger".rejected_rows '
                "ORDER BY rejected_at DESC LIMIT $1",
                [REJECTED_ROWS_SHOWN_MAX],
            ).fetchall()

    def view_sizes(self) -> Mapping[str, inspection.ViewSize]:
        """By view id; read by a cursor of its own, as all that is only shown."""
        with self._cursor.cursor() as cursor:
            return inspection.view_sizes(cursor)

    def batches(self) -> list[tuple[Any, ...]]:
        """The last rows of the ledger, the newest first."""
        with self._cursor.cursor() as cursor:
            return inspection.batches(cursor)

    def pipeline_position(self, pipeline_id: str) -> Position | None:
        with self.commit_lock:
            row = self.ledger.pipeline(pipeline_id)
        return None if row is None else row.position

    def read_cursor(self) -> duckdb.DuckDBPyConnection:
        """For a reader of its own, which no commit waits for."""
        return self._cursor.cursor()

    def answers(self, question: str) -> bool:
        """A query that gives true or false."""
        with self._cursor.cursor() as cursor:
            return bool(cursor.execute(question).fetchall()[0][0])

    def count_rows(self, tables: Sequence[str]) -> int | None:
        """Of tables of states, together; None where one of them is gone. Read by a cursor of its own."""
        with self._cursor.cursor() as cursor:
            try:
                ((rows,),) = cursor.execute(rows_of(tables)).fetchall()
            except duckdb.CatalogException:
                return None
        return int(rows)

    def has_tables(self, tables: Sequence[str]) -> bool:
        return set(tables) <= set(self.state_tables())

    def state_tables(self) -> list[str]:
        with self.commit_lock:
            return inspection.state_tables(self._cursor)

    def view_ids(self) -> list[str]:
        with self.commit_lock:
            rows = self._cursor.execute(
                "SELECT view_name FROM duckdb_views() WHERE schema_name = '_views' "
                "AND database_name = current_database()"
            ).fetchall()
        return [row[0] for row in rows]

    def commit(self, batch: BatchCommit) -> bool:
        """False when the ledger has this batch already. Raises MergeError for a view's own error, SqlError else."""
        with self.commit_lock:
            self._share(batch)
            try:
                return self._commit_batch(batch, together=True)
            except _SharedMergeError:
                return self._commit_batch(batch, together=False)  # whose merge it is that fails is found out

    def _share(self, batch: BatchCommit) -> None:
        """Before the batch, in a transaction of its own: states that are merged together from then on."""
        for merge in batch.merges:
            unshared = self._shared.unshared(merge.views)
            if not unshared:
                continue
            try:
                with self.transaction():
                    self._shared.share(unshared)
            except _NOBODYS as error:
                raise self._translate(error) from error
            except duckdb.Error as error:
                if self.damage.notice(error) or disk_error(str(error)):  # a COMMIT fails with an error of its own kind
                    raise self._translate(error) from error
                _log.exception("states of equal keys keep tables of their own")
                self._shared.keep_apart(unshared)

    def _commit_batch(self, batch: BatchCommit, *, together: bool) -> bool:
        self._reached("before begin")
        self._begin()
        try:
            if batch.entry is not None and self.ledger.already_committed(batch.entry):
                self._cursor.execute("ROLLBACK")
                return False
            for each in batch.presences:
                for text in silence.present_statements(each.join, each.index):
                    self._cursor.execute(text, [list(each.partitions)])
            for merge in batch.merges:
                self._merge(merge, together=together)
            for each in batch.presences:
                self._cursor.execute(silence.gone_statement(each.join, each.index), [list(each.partitions)])
            for advance in batch.advances:
                self._advance(advance)
            self._reached("after rows")
            self.ledger.reject(batch.rejected)
            for query_id, failure in batch.failures:
                self.ledger.set_failure(query_id, failure)
            for move in batch.moves[1:]:
                self.ledger.move_subscribers(move.query_ids, move.position)
            for move in batch.moves[:1]:
                self.ledger.move_at_close(move.query_ids, move.position)
            if batch.entry is not None:
                self.ledger.advance(batch.entry)
            self._close(together=together)
            self._reached("after ledger")
            self._commit(batch.changed)
            self._reached("after commit")
        except (MergeError, SqlError, _SharedMergeError):
            self._roll_back()
            raise
        except duckdb.Error as error:
            self._roll_back()
            raise self._translated(error) from error
        except BaseException:
            self._roll_back()
            raise
        self._log.bound()
        return True

    def _merge(self, merge: TableMerge, *, together: bool) -> None:
        if merge.table.num_rows == 0:
            return
        self._batch.show(merge.table, len(merge.views))
        watched = tuple(view for view in merge.views if self.histories.of(view.query_id) is not None)
        others = merge.views
        if watched:
            others = tuple(view for view in merge.views if self.histories.of(view.query_id) is None)
        arrangement = self._shared.arranged(others) if together else Arrangement((), others)
        for shared in arrangement.shared:
            self._merge_together(shared)
        for view in (*arrangement.apart, *watched):
            with self._on_behalf_of(view.query_id):
                self._merge_and_keep(view, merge)
        self._unregister()
        self._batch.hide()

    def _merge_together(self, shared: SharedMerge) -> None:
        try:
            for view in shared.views:
                self._note(view, view.keys)
            for text in shared.statements:
                self._statements.execute(text)
        except _NOBODYS:
            raise
        except duckdb.Error as error:
            if self.damage.notice(error):
                raise
            raise _SharedMergeError from error

    def _merge_and_keep(self, view: ViewMerge, merge: TableMerge) -> None:
        state, changed, newest = view.state, view.keys, merge.newest
        keeper = self.histories.keeper(view.query_id, view.keeper)
        if view.changes is not None:
            assert isinstance(state, (KeyedRows, RetractedState))  # noqa: S101 - a changelog's
            note = partial(self._note, view)
            take_changes(self._cursor, self._register, state, view.changes, keeper, newest, note)
            return
        if view.judging is not None and isinstance(state, UpsertState) and state.windowing is not None:
            grown = take_in(
                self._cursor, self._register, view.query_id, state, state.windowing, view.judging, BATCH, view.roll_ups
            )
            changed = grown or changed
        if keeper is None and view.takes_rows_alone and merge.table.num_rows <= ROWS_TOLD_MAX:
            wanted = self.watch.wants_rows(view.state.table)
            if wanted is not None and not self._shared.is_shared(view.state.table):
                self._merge_and_tell(view, wanted)
                return
        groups = keeper.view.groups if isinstance(keeper, History) else None
        if isinstance(keeper, History) and groups is not None and not self._shared.is_shared(view.state.table):
            self._merge_view(view, partial(self._merge_and_keep_it, view, keeper, groups))
            return
        self._note(view, view.keys)
        if view.added is not None and isinstance(keeper, History):
            self._merge_view(view)
            keeper.keep_rows(self._cursor, self._register, view.added, gone=False)
        elif keeper is None or (view.judging is not None and shows_closed(view.state)):
            self._merge_view(view)
        else:
            capture(self._cursor, self._register, keeper, changed, partial(self._merge_view, view), newest)

    def _merge_and_tell(self, view: ViewMerge, wanted: str) -> None:
        """The merge gives the rows itself, where reading them behind it costs as much again."""
        rows: list[tuple[Any, ...]] = []
        for text in view.statements_for(self._batch.telling):
            rows += self._statements.execute(f"{text} RETURNING {wanted}").fetchall()
        self._notes.keys(view.state.table, RowsNow(wanted, rows))

    def _note(self, view: ViewMerge, *keys: pa.Table | str | None) -> None:
        """Before the merge: what it will change. ``keys``: those (g0 ...) of the rows, or queries of them."""
        table, known = view.state.table, [each for each in keys if each is not None]
        if len(known) == len(keys) and view.judging is None and self.watch.wants_keys(table):
            for each in known:
                self._notes.keys(table, self._statements.table(each) if isinstance(each, str) else each)
        else:
            self._notes.rows(table)
        self._note_others(view.keeper)

    def _note_others(self, keeper: Keeper | None) -> None:
        for state in () if keeper is None else keeper.others:
            self._notes.rows(state.table)

    def _merge_and_keep_it(self, view: ViewMerge, history: History, groups: ShownGroups) -> None:
        """The merge tells the history itself what it does."""
        changed = [history.merge(roll_up, groups) for roll_up in view.roll_ups]
        self._note(view, *((None,) if view.keys is None else changed))

    def _merge_view(self, view: ViewMerge, merge: Callable[[], None] | None = None) -> None:
        """``merge`` is another way to merge its roll-ups."""
        if view.statements:
            for text in view.statements:
                self._statements.execute(text)
            return
        assert isinstance(view.state, UpsertState)  # noqa: S101 - others have statements
        windowing = view.state.windowing
        if windowing is not None and windowing.gap_us is not None:
            sessions.put_values(self._cursor, self._register, view.state, windowing, view.values)
            sessions.put(self._cursor, view.state, windowing)
            return
        for index, (taking, values) in enumerate(zip(view.values, view.state.values, strict=True)):
            if values.counted:
                self._statements.execute(taking)
            else:
                self._register(new_values_relation(index), self._cursor.sql(taking).to_arrow_table())
        if merge is not None:
            merge()
            return
        shared = self._shared.is_shared(view.state.table)
        for text in self._shared.statements((view,)) if shared else view.statements_for(self._batch.telling):
            self._statements.execute(text)

    def _advance(self, advance: Advance) -> bool:
        with self._on_behalf_of(advance.standing.query_id):
            return self._move_watermark(advance)

    @contextmanager
    def _on_behalf_of(self, query_id: str) -> Iterator[None]:
        try:
            yield
        except _NOBODYS:
            raise
        except duckdb.OutOfMemoryException as error:
            # it may be a reader's doing that all is taken; only a view that never gets through is too large itself
            self._out_of_memory[query_id] += 1
            if self._out_of_memory[query_id] < limits.MERGES_OUT_OF_MEMORY_MAX:
                raise
            del self._out_of_memory[query_id]
            raise MergeError(query_id, self._translate(error)) from error
        except duckdb.Error as error:
            if self.damage.notice(error):  # no view is to blame
                raise
            raise MergeError(query_id, self._translate(error)) from error
        self._out_of_memory.pop(query_id, None)

    def _move_watermark(self, advance: Advance) -> bool:
        query_id, rule = advance.standing.query_id, watermark_rule(advance.state)
        passage = None if rule is None else windows.passage(self._cursor, advance.standing, rule)
        if rule is None or passage is None:
            return False
        self._notes.rows(advance.state.table)  # some are shown, hidden or removed
        self._note_others(advance.keeper)
        if passage.moves:
            keeper = self.histories.keeper(query_id, advance.keeper)
            move = partial(windows.move, self._cursor, query_id, passage.after)
            shown = turned_keys(advance.state, passage)
            if keeper is None or shown is None:
                move()
            else:
                capture(self._cursor, self._register, keeper, shown, move)
                self._unregister()
        for statement in rule.moved if passage.moves else ():
            self._cursor.execute(statement)
        if rule.removal is not None:
            self._remove(advance, rule.removal, passage.after)
            if isinstance(advance.keeper, GroupLog):
                advance.keeper.settle(self._cursor, passage.after - rule.removal.retention_us)
        return passage.moves

    def _remove(self, advance: Advance, removal: windows.Removal, mark: int) -> None:
        """What is too old. A history is told; it stays where the query wrote it, since it was right."""
        remove = partial(windows.remove, self._cursor, removal, mark)
        history = self.histories.of(advance.standing.query_id)
        if history is None:
            remove()
            return
        leaving = removal.condition(mark)
        if isinstance(advance.state, UpsertState):
            keys = f"SELECT DISTINCT {as_g(advance.state.identity)} FROM {source_text(advance.state)} WHERE {leaving}"
            if self._cursor.execute(f"SELECT 1 FROM ({keys}) LIMIT 1").fetchall():
                capture(self._cursor, self._register, history, keys, remove)
        else:
            rows = f"SELECT * FROM {qualified(advance.state.table)} WHERE {leaving}"
            history.keep_rows(self._cursor, self._register, rows, gone=True)
            remove()
        self._unregister()

    def advance(self, advance: Advance) -> bool:
        """Partitions became idle, and no batch will say so; whether that moved the view's watermark. Raises MergeError
        for the view's own error."""
        with self.transaction():
            return self._advance(advance)

    def window_progress(self) -> Mapping[str, tuple[int | None, int]]:
        """(watermark, late rows) of windowed views by query id."""
        with self._cursor.cursor() as cursor:
            return windows.progress(cursor)

    def late_rows(self) -> list[tuple[Any, ...]]:
        """(query id, position, event time, window start, window end, watermark, late at), the newest first."""
        with self._cursor.cursor() as cursor:
            return windows.late_rows(cursor, REJECTED_ROWS_SHOWN_MAX)

    def _roll_back(self) -> None:
        self.ledger.rolled_back()
        self.watch.changed(done=False)
        try:
            self._cursor.execute("ROLLBACK")
        except duckdb.TransactionException:
            pass  # the failed statement may have ended the transaction already
        except duckdb.Error as error:
            if not self.damage.notice(error):
                raise
        self._shared.forget()
        self.histories.rolled_back()
        self._statements.forget_names()
        self._unregister()  # not before: an aborted transaction takes no statement but ROLLBACK
        self._batch.rolled_back()

    def _register(self, name: str, table: pa.Table) -> None:
        self._registered.add(name)
        self._cursor.register(name, table)

    def _unregister(self) -> None:
        while self._registered:
            self._cursor.unregister(self._registered.pop())

    def close(self) -> None:
        with self.commit_lock:
            self._cursor.close()
