"""Binding off the session's thread: DuckDB evaluates constants while it binds, without looking for an interrupt.

So each binding is work that can be left (``serving.engine.abandonable_work``), with a cursor of its own: sessions do
not wait for each other's.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import duckdb
from sqlglot import exp

from catalog.model import Relation
from mvserver import interrupts, limits, sqlstates
from mvserver.dialect import binding
from mvserver.dialect.binding import Bound
from mvserver.dialect.duck_text import written
from mvserver.dialect.errors.causes import explained
from mvserver.dialect.errors.duck_errors import translate
from mvserver.dialect.pull_query import PullQuery, TypedPullQuery
from mvserver.dialect.typed_passes import typed
from mvserver.dialect.typing import constants
from mvserver.dialect.typing.operand_checks import OperandChecks
from mvserver.errors import SqlError, raise_instead
from mvserver.pgcatalog.system import SystemCatalog
from mvserver.serving.api import Owner, StreamRead, never
from mvserver.serving.engine.abandonable_work import AbandonableWork, WorkAbandoned
from mvserver.serving.engine.admission import Admission
from mvserver.serving.engine.database import Database
from mvserver.serving.engine.memory_watch import MemoryWatch
from mvserver.serving.engine.snapshot import reader_settings
from mvserver.serving.fast import classify
from mvserver.serving.fast.direct import direct
from mvserver.serving.plan.histories import by_key
from mvserver.serving.plan.name_resolution import Reads
from mvserver.serving.plan.streams import register_empty
from mvserver.sql.trees import dismantle
from spark_sinks.duckdb.layout import ViewLayouts

T = TypeVar("T")


@dataclass(frozen=True)
class BoundTree:
    tree: exp.Expr
    bound: Bound
    direct: exp.Expr | None


class DuckBinder:
    """One cursor, for one thread at a time."""

    def __init__(self, database: Database, system: SystemCatalog, layouts: ViewLayouts) -> None:
        self._system = system
        self._database = database.name
        self._layouts = layouts
        self._cursor = database.cursor()
        for setting in reader_settings(system):
            self._cursor.execute(setting)
        self.left: Callable[[], bool] = never  # whether nobody waits for the present work any more

    def close(self) -> None:
        self._cursor.close()

    def interrupt(self) -> None:
        self._cursor.interrupt()

    def bind(self, query: PullQuery, reads: Reads) -> BoundTree:
        """Whoever leaves this leaves the tree, too."""
        try:
            constants.check(self._cursor, query.tree)
            self.go_on()
            self._register(reads.live, reads.streams)
            typing = TypedPullQuery(query, self._cursor, self.go_on)
            try:
                bound = typed(typing)
            except SqlError as error:
                raise_instead(self._explained(error, query), error)
            self.go_on()
            return BoundTree(typing.tree, bound, self._direct(typing.tree, bound, query, reads))
        finally:
            if self.left():
                dismantle(query.tree)

    def _explained(self, error: SqlError, query: PullQuery) -> SqlError:
        if query.reads_system:
            return error
        return explained(error, OperandChecks(self._cursor, query.tree, {}, query.text))

    def explain(self, text: str, live: Collection[str], streams: Sequence[StreamRead]) -> list[str]:
        """DuckDB's physical plan."""
        return [
            line for row in self._explained_as("EXPLAIN", text, live, streams) for line in str(row[-1]).splitlines()
        ]

    def plan_nodes(
        self, text: str, live: Collection[str], streams: Sequence[StreamRead]
    ) -> Sequence[Mapping[str, Any]]:
        """The same as DuckDB's JSON."""
        (row,) = self._explained_as("EXPLAIN (FORMAT JSON)", text, live, streams)
        found: Sequence[Mapping[str, Any]] = json.loads(row[-1])
        return found

    def _explained_as(
        self, command: str, text: str, live: Collection[str], streams: Sequence[StreamRead]
    ) -> list[tuple[Any, ...]]:
        self._register(live, streams)
        try:
            return self._cursor.execute(f"{command} {binding.without_parameters(text)}").fetchall()
        except duckdb.Error as error:
            raise translate(error) from error

    def _register(self, live: Collection[str], streams: Sequence[StreamRead]) -> None:
        for name in live:
            self._cursor.register(self._system.live_name(name), self._system.live_schema(name).empty_table())
        register_empty(self._cursor, streams)

    def go_on(self) -> None:
        """Raises WorkAbandoned where nobody waits for the work."""
        if self.left():
            raise WorkAbandoned

    def _direct(self, tree: exp.Expr, bound: Bound, query: PullQuery, reads: Reads) -> exp.Expr | None:
        """A look-up over the view's state; None where it cannot be made, or would not mean the same types."""
        if query.kind not in (classify.POINT, classify.RANGE):
            return None
        (view,) = reads.views.values()
        made = by_key(tree, view) if reads.of_the_past else self._of_the_present(tree, view, query.kind)
        if made is None:
            return None
        self.go_on()
        try:
            found = binding.bind(self._cursor, written(made))
        except SqlError as error:
            if error.sqlstate not in (sqlstates.UNDEFINED_TABLE, sqlstates.UNDEFINED_FUNCTION):
                raise
            return None  # the state is just being made anew
        return made if found.types == bound.types and found.parameters == bound.parameters else None

    def _of_the_present(self, tree: exp.Expr, view: Relation, kind: str) -> exp.Expr | None:
        layout = self._layouts.of(view.id)
        if layout is None:
            return None
        return direct(tree, layout, self._database, view.key_columns, point=kind == classify.POINT)


class DuckBinders:
    """As many as have been needed at the same time, up to a limit."""

    def __init__(
        self,
        database: Database,
        system: SystemCatalog,
        layouts: ViewLayouts,
        abandonable: AbandonableWork,
        memory: MemoryWatch,
    ) -> None:
        self._make = partial(DuckBinder, database, system, layouts)
        self._abandonable = abandonable
        self._memory = memory
        self._admission = Admission(
            limits.BINDINGS_MAX
        )  # whoever leaves gives his back: a binding left behind has none
        self._lock = threading.Lock()
        self._free: list[DuckBinder] = [self._make()]
        self._closed = False

    def run(self, work: Callable[[DuckBinder], T], owner: Owner, stopped: Callable[[], bool]) -> T:
        """The answer of ``work``; 57014 as soon as ``stopped``, although the work may then go on for a while."""
        at_work: list[DuckBinder] = []  # one, from the moment that it is at work until it is given back

        def interrupt() -> None:
            with self._lock:
                for binder in at_work:
                    binder.interrupt()

        with self._admission.taken(stopped):
            watched = self._memory.begin(interrupt, owner)
            try:
                return self._abandonable.run(
                    lambda left: self._with_binder(work, left, at_work), owner,
                    lambda: watched.over or stopped(), watched.ended, watched.leave,
                )  # fmt: skip
            except WorkAbandoned:
                watched.check_left()
                raise
            except SqlError:
                watched.check()
                raise
            finally:
                watched.end()

    def _with_binder(self, work: Callable[[DuckBinder], T], left: Callable[[], bool], at_work: list[DuckBinder]) -> T:
        with self._lock:
            binder = self._free.pop() if self._free else None
        binder = binder or self._make()
        binder.left = left
        at_work.append(binder)
        try:
            with interrupts.interruptible(binder.go_on):
                return work(binder)
        finally:
            with self._lock:
                at_work.clear()
                kept = not self._closed and len(self._free) < limits.BINDINGS_MAX
                if kept:
                    self._free.append(binder)
            if not kept:
                binder.close()

    def close(self) -> None:
        """One that is at work closes its cursor when it has ended."""
        with self._lock:
            self._closed = True
            free, self._free = self._free, []
        for binder in free:
            binder.close()
