"""Pull queries of a session: planned by serving, answered by the first of the read paths that can."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from mvserver import sqlstates
from mvserver.errors import SqlError, raise_instead
from mvserver.front import Field, Postponed, Result
from mvserver.serving.api import PlanRequest, PullPlan, refuse_continuous
from mvserver.session.clock import StatementClock
from mvserver.session.kinds import created_name
from mvserver.session.prepared import PreparedStatement
from mvserver.session.reads.filling import ViewWatch
from mvserver.session.reads.freshness import FreshnessGate
from mvserver.session.reads.read_paths import Gathered, Read, read_paths
from mvserver.session.reads.snapshots import Snapshots
from mvserver.session.state import SessionState
from mvserver.sql.statements.queries import NO_TREE, Pull
from mvserver.sql.written_parameters import constant, has_many_digits, others, with_constants
from mvserver.visible_rows import told


def constants_of(plan: PullPlan, parameters: Sequence[Any]) -> tuple[int, ...]:
    """The parameters with whose values the statement has to be planned: a plan's numerics have so many digits only."""
    if not plan.numerics:
        return plan.constants
    many = {at for at in plan.numerics if at <= len(parameters) and has_many_digits(parameters[at - 1])}
    return tuple(sorted({*plan.constants, *many})) if many else plan.constants


class PullRunner:
    def __init__(self, state: SessionState, failed: Callable[[Exception], Exception]) -> None:
        self._state = state
        self._watch = ViewWatch(state)
        self._freshness = FreshnessGate(state)
        self._snapshots = Snapshots(state, failed)
        self._paths = read_paths(state, self._snapshots)
        self._ready = tuple(path.ready for path in self._paths)
        self._gathered: Gathered | None = None  # to be answered together with others; the next call fetches the answer

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
                stopped = self._state.context.cancelled
                return services.pulls.plan(
                    PlanRequest(parsed.select, scope, parameter_oids, statement.text, statement.start, stopped)
                )
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

    def with_values(
        self, plan: PullPlan, prepared: PreparedStatement, statement: Pull, parameters: Sequence[Any]
    ) -> tuple[PullPlan, Sequence[Any]]:
        """The plan that can be run, and the values for it: where it needs constants, that of the text with them."""
        written = constants_of(plan, parameters)
        if not written:
            return plan, parameters
        constants = {number: constant(number, parameters[number - 1]) for number in written}
        rest = others(len(parameters), constants)
        text = with_constants(statement.text, constants)
        try:
            made = self.plan(
                replace(statement, select=NO_TREE, text=text, start=0), [plan.parameter_oids[at - 1] for at in rest]
            )
        except SqlError as error:
            error.position = None  # it would point into a text that the user has not written
            raise
        refuse_changed(prepared, made.fields)
        return made, [parameters[at - 1] for at in rest]

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
        if plan is None or not plan.rows_alone:
            return False
        for ready in self._ready:  # no generator: look-ups ask this each time
            if ready(plan):
                break
        else:
            return False
        transaction = self._state.transaction
        return (
            not (plan.reads_now and transaction.started)
            and not transaction.pins
            and self._freshness.asks_nothing
            and self._watch.is_settled(plan)
        )

    def run(self, plan: PullPlan, parameters: Sequence[Any], clock: StatementClock) -> Result:
        """The answer, however long it takes."""
        plan.refuse_dimensions(parameters)
        self._wait_for_views(plan, clock)
        found = self._first(Read(plan, parameters, clock, at_once=False))
        assert isinstance(found, Result)  # noqa: S101 - the last path answers all
        self._state.transaction.queried = True
        return found

    def run_at_once(self, plan: PullPlan, parameters: Sequence[Any], clock: StatementClock) -> Result | Postponed:
        """The answer on the event loop, where it does not have to wait."""
        gathered, self._gathered = self._gathered, None
        if gathered is not None:
            gathered.clock.check()  # a cancel came meanwhile
        if not self.may_run_at_once(plan):
            return Postponed()
        plan.refuse_dimensions(parameters)
        found = self._first(Read(plan, parameters, clock, at_once=True, gathered=gathered))
        if isinstance(found, Result):
            self._state.transaction.queried = True
            return found
        self._gathered = found
        return Postponed() if found is None else Postponed(self._answer_gathered)

    def _first(self, read: Read) -> Result | Gathered | None:
        for path in self._paths:
            if path.may(read):
                found = path.answer(read)
                if found is not None:
                    return found
        return None

    def _wait_for_views(self, plan: PullPlan, clock: StatementClock) -> None:
        if plan.catalog_only or not plan.view_ids:
            return
        try:
            self._watch.before_read(plan, clock)
            if not self._snapshots.pinned:  # what is pinned already does not become fresher
                self._freshness.before_read(plan.view_ids, clock)
        except SqlError as error:
            raise_instead(told(error, secured=plan.secured), error)

    def _answer_gathered(self) -> None:
        gathering = self._state.services.pulls.gathering
        if gathering.waiting:
            with self._state.services.watchdog.watching(gathering.interrupt):
                gathering.answer()

    # --- ending -----------------------------------------------------------------------------------------------------
    def end_transaction(self) -> None:
        self._snapshots.end_transaction()

    def close(self) -> None:
        self._snapshots.close()


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
