"""Binding off the session's thread: DuckDB evaluates constants while it binds, without looking for an interrupt.

So each binding is work that can be left (``serving.leaving``), with a cursor of its own: sessions do not wait for each
other's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import duckdb
from sqlglot import exp

from mvserver import interrupts, limits, sqlstates
from mvserver.errors import SqlError, raise_instead
from mvserver.pgcatalog.system import SystemCatalog
from mvserver.serving import aggregates, binding, classify, constants, division, enum_operands, set_columns
from mvserver.serving.api import Owner, StreamRead, never
from mvserver.serving.binding import Bound
from mvserver.serving.culprits import explained
from mvserver.serving.database import Database
from mvserver.serving.direct import StateReader
from mvserver.serving.duck_errors import translate
from mvserver.serving.duck_text import last_written, written
from mvserver.serving.leaving import LeavableWork, WorkLeft
from mvserver.serving.memory_watch import MemoryWatch
from mvserver.serving.names import Reads
from mvserver.serving.operand_checks import OperandChecks
from mvserver.serving.snapshot import reader_settings
from mvserver.serving.streams import register_empty
from mvserver.serving.turns import Turns
from mvserver.serving.typed import TypedRewriting, concerns, concerns_always
from mvserver.sql.trees import dismantle

T = TypeVar("T")


@dataclass(frozen=True)
class Binding:
    """What is to be bound."""

    tree: exp.Expr  # changed while it is bound
    oids: Sequence[int]
    own_types: Mapping[int, str]  # DuckDB's names of those of the parameters' types that users have made
    reads: Reads
    time_zone: str
    kind: str
    text: str | None = None  # its statement's, where that is known


@dataclass(frozen=True)
class BoundTree:
    tree: exp.Expr
    bound: Bound
    direct: exp.Expr | None


class Binder:
    """One cursor, for one thread at a time."""

    def __init__(self, database: Database, system: SystemCatalog) -> None:
        self._system = system
        self._cursor = database.cursor()
        for setting in reader_settings(system):
            self._cursor.execute(setting)
        self._state = StateReader(self._cursor, database.name)
        self.left: Callable[[], bool] = never  # whether nobody waits for the present work any more

    def close(self) -> None:
        self._cursor.close()

    def interrupt(self) -> None:
        self._cursor.interrupt()

    def bind(self, wanted: Binding) -> BoundTree:
        """Whoever leaves this leaves the tree, too."""
        try:
            constants.check(self._cursor, wanted.tree)
            self.go_on()
            try:
                tree, bound = self._typed(wanted)
            except SqlError as error:
                raise_instead(self._explained(error, wanted), error)
            self.go_on()
            return BoundTree(tree, bound, self._direct(tree, bound, wanted.reads, wanted.kind))
        finally:
            if self.left():
                dismantle(wanted.tree)

    def _explained(self, error: SqlError, wanted: Binding) -> SqlError:
        if wanted.reads.system:
            return error
        return explained(error, OperandChecks(self._cursor, wanted.tree, {}, wanted.text))

    def explain(self, text: str, live: Collection[str], streams: Sequence[StreamRead]) -> list[str]:
        """DuckDB's physical plan."""
        self._register(live, streams)
        try:
            rows = self._cursor.execute(f"EXPLAIN {binding.without_parameters(text)}").fetchall()
        except duckdb.Error as error:
            raise translate(error) from error
        return [line for row in rows for line in str(row[-1]).splitlines()]

    def _register(self, live: Collection[str], streams: Sequence[StreamRead]) -> None:
        for name in live:
            self._cursor.register(self._system.live_name(name), self._system.live_schema(name).empty_table())
        register_empty(self._cursor, streams)

    def go_on(self) -> None:
        """Raises WorkLeft where nobody waits for the work."""
        if self.left():
            raise WorkLeft

    def _bound(self, tree: exp.Expr) -> Bound:
        self.go_on()
        return binding.bind(self._cursor, written(tree))

    # --- types ------------------------------------------------------------------------------------------------------
    def _typed(self, wanted: Binding) -> tuple[exp.Expr, Bound]:
        tree, reads = wanted.tree, wanted.reads
        self._register(reads.live, reads.streams)
        numbers = binding.parameter_numbers(tree)
        with_enums = bool(wanted.own_types) or enum_operands.present(tree)
        if with_enums:
            TypedRewriting(self._cursor, tree, {}, wanted.time_zone).unify_rows()
        with_sets = not reads.system and tree.find(exp.SetOperation) is not None
        if with_sets:
            set_columns.unify(self._cursor, tree, inner=True)
        bound = self._completed(tree, {}, wanted)
        if not reads.system:
            OperandChecks(self._cursor, tree, bound.parameters, wanted.text).check()
        if numbers:
            casts = binding.client_casts(numbers, wanted.oids, bound.parameters, wanted.own_types)
            unknown = [n for n in numbers if bound.parameters.get(n) == binding.UNKNOWN and n not in casts]
            if unknown:
                arrays = binding.array_types(self._cursor, tree)
                casts = {**{n: arrays[n] for n in unknown if n in arrays}, **casts}
                unknown = self._not_inferred(tree, casts, [n for n in unknown if n not in arrays])
            if casts or unknown:
                tree, bound = self._bind_cast(tree, casts, unknown)
        self.go_on()
        aggregating = tree.find(exp.Sum, exp.Avg) is not None
        if aggregating:
            aggregates.type_aggregates(self._cursor, tree)
            bound = self._bound(tree)
        if tree.find(exp.Div) is not None and division.type_divisions(self._cursor, tree):
            if aggregating:
                aggregates.type_aggregates(self._cursor, tree)  # those of quotients
            bound = self._bound(tree)
        if with_enums or _needs_types(tree, reads):
            rewriting = TypedRewriting(self._cursor, tree, bound.parameters, wanted.time_zone)
            if rewriting.apply(with_enums=with_enums):
                bound = self._completed(tree, bound.parameters, wanted)
        if with_sets and set_columns.unify(self._cursor, tree):
            bound = self._bound(tree)
        if binding.UNKNOWN in bound.parameters.values() or not bound.types:
            bound = self._bind_open(tree, bound)
        return tree, bound

    def _completed(self, tree: exp.Expr, parameters: Mapping[int, str], wanted: Binding) -> Bound:
        """With what DuckDB does not bind put in other words."""
        try:
            return self._bound(tree)
        except SqlError as error:
            if error.sqlstate not in (sqlstates.UNDEFINED_FUNCTION, sqlstates.DATATYPE_MISMATCH):
                raise
            if not TypedRewriting(self._cursor, tree, parameters, wanted.time_zone).add_missing():
                raise
        return self._bound(tree)

    def _not_inferred(self, tree: exp.Expr, casts: Mapping[int, str], unknown: list[int]) -> list[int]:
        """Those of the unknown parameters whose type DuckDB does not find either when it knows the others: one that it
        cannot find keeps it from finding any."""
        if not 1 < len(unknown) <= limits.PARAMETERS_INFERRED_SINGLY_MAX:
            return unknown
        (guess, *_) = binding.guessed_types(tree, unknown)
        left = []
        for number in unknown:
            root = exp.Paren(this=tree.copy())
            binding.cast_parameters(root, {**{n: guess[n] for n in unknown if n != number}, **casts})
            self.go_on()
            try:
                found = binding.bind(self._cursor, last_written(root.this)).parameters
            except SqlError:  # for lack of it, or because a guess is wrong: all of them are guessed
                return unknown
            if found.get(number, binding.UNKNOWN) == binding.UNKNOWN:
                left.append(number)
        return left

    def _bind_cast(self, tree: exp.Expr, casts: dict[int, str], unknown: Sequence[int]) -> tuple[exp.Expr, Bound]:
        """With the casts, and for parameters of unknown type the first guess that binds."""
        failure: SqlError | None = None
        for guess in binding.guessed_types(tree, unknown) if unknown else ({},):
            candidate = tree.copy()
            root = exp.Paren(this=candidate)
            binding.cast_parameters(root, {**guess, **casts})
            candidate = root.this.pop()
            self.go_on()
            try:
                return candidate, binding.bind(self._cursor, written(candidate))
            except SqlError as error:
                failure = failure or error
                dismantle(candidate)
        assert failure is not None  # noqa: S101 - there is at least one guess
        try:
            raise failure
        finally:
            del failure  # which knows this frame: a cycle, with all that the frames around it hold

    def _bind_open(self, tree: exp.Expr, bound: Bound) -> Bound:
        casts = binding.cast_types(tree)
        types = dict(bound.parameters)
        for number, kind in types.items():
            if kind == binding.UNKNOWN and number in casts:
                types[number] = binding.bind(self._cursor, f"SELECT CAST(NULL AS {casts[number]})").types[0]
        return binding.bind_with_nulls(self._cursor, written(tree), types)

    def _direct(self, tree: exp.Expr, bound: Bound, reads: Reads, kind: str) -> exp.Expr | None:
        """A look-up over the view's state; None where it cannot be made, or would not mean the same types."""
        if kind not in (classify.POINT, classify.RANGE):
            return None
        (view,) = reads.views.values()
        made = self._state.direct(tree, view.id, view.key_columns, point=kind == classify.POINT)
        if made is None:
            return None
        found = self._bound(made)
        return made if found.types == bound.types and found.parameters == bound.parameters else None


class Binders:
    """As many as have been needed at the same time, up to a limit."""

    def __init__(self, database: Database, system: SystemCatalog, leavable: LeavableWork, memory: MemoryWatch) -> None:
        self._database = database
        self._system = system
        self._leavable = leavable
        self._memory = memory
        self._turns = Turns(limits.BINDINGS_MAX)  # whoever leaves gives his back: a binding left behind has none
        self._lock = threading.Lock()
        self._free: list[Binder] = [Binder(database, system)]
        self._closed = False

    def run(self, work: Callable[[Binder], T], owner: Owner, stopped: Callable[[], bool]) -> T:
        """The answer of ``work``; 57014 as soon as ``stopped``, although the work may then go on for a while."""
        at_work: list[Binder] = []  # one, from the moment that it is at work until it is given back

        def interrupt() -> None:
            with self._lock:
                for binder in at_work:
                    binder.interrupt()

        with self._turns.taken(stopped):
            watched = self._memory.begin(interrupt, owner)
            try:
                return self._leavable.run(
                    lambda left: self._with_binder(work, left, at_work), owner,
                    lambda: watched.over or stopped(), watched.ended, watched.leave,
                )  # fmt: skip
            except WorkLeft:
                watched.check_left()
                raise
            except SqlError:
                watched.check()
                raise
            finally:
                watched.end()

    def _with_binder(self, work: Callable[[Binder], T], left: Callable[[], bool], at_work: list[Binder]) -> T:
        with self._lock:
            binder = self._free.pop() if self._free else None
        binder = binder or Binder(self._database, self._system)
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


def _needs_types(tree: exp.Expr, reads: Reads) -> bool:
    """Clients' own queries of the catalog are many and long, and cast what DuckDB writes as PostgreSQL does."""
    wanted = concerns if reads.views or not reads.system else concerns_always
    return any(wanted(node) for node in interrupts.asking(tree.walk()))
