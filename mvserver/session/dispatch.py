"""From a statement to its Result: pull queries, the router's statements, the session's own, prepared ones."""

from __future__ import annotations

import dataclasses
import datetime
import time
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from sqlglot import exp

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import Field, Postponed, Result
from mvserver.serving.api import PlanRequest, PullPlan, ReadsStream
from mvserver.session import kinds
from mvserver.session.clock import StatementClock
from mvserver.session.commands import Commands
from mvserver.session.copy_in import CopyCommands
from mvserver.session.cursors.cursor_commands import CursorCommands
from mvserver.session.cursors.cursors import Cursor
from mvserver.session.parameter_types import oid_of_name, type_of_oid
from mvserver.session.portals import Portal
from mvserver.session.prepared import PreparedStatement, without_tree
from mvserver.session.reads.measuring import measured
from mvserver.session.reads.pulls import PullRunner, bare, constants_of, refuse_changed
from mvserver.session.reads.pushes import PushRunner
from mvserver.session.routed import RoutedRunner
from mvserver.session.state import SessionState
from mvserver.sql.explain_options import explain_options
from mvserver.sql.statements.base import Statement
from mvserver.sql.statements.copying import CopyTo
from mvserver.sql.statements.cursors import DeclareCursor, Fetch
from mvserver.sql.statements.queries import Explain, Pull, PushQuery, Subscribe
from mvserver.sql.statements.settings import ExecutePrepared, Prepare

ParameterValue = None | bool | int | float | str | bytes | Decimal | datetime.date | datetime.time | datetime.timedelta


class Dispatcher:
    def __init__(self, state: SessionState, failed: Callable[[Exception], Exception]) -> None:
        self._state = state
        self.pulls = PullRunner(state, failed)
        self._routed = RoutedRunner(state, failed)
        self.pushes = PushRunner(state, failed)
        self._cursors = CursorCommands(state, self.pulls, self.pushes)
        self.commands = Commands(state, self.pulls, self._routed, self._cursors, CopyCommands(state, failed))

    # --- running ----------------------------------------------------------------------------------------------------
    def run(self, statement: Statement, clock: StatementClock) -> Result:
        """One statement without parameters."""
        self._refuse_in_failed(statement)
        self._refuse_writing(statement)
        if isinstance(statement, Pull):
            plan = self._plan(statement, clock)
            return self.pulls.run(plan, (), clock) if isinstance(plan, PullPlan) else self.pushes.run(plan, clock)
        if isinstance(statement, Subscribe):
            return self.pushes.run(statement, clock)
        if isinstance(statement, DeclareCursor):
            return self._cursors.declare(statement, self._plan(statement.query, clock), (), clock)
        if isinstance(statement, CopyTo):
            return self._cursors.copy(statement, self._plan(statement.query, clock), clock)
        if isinstance(statement, Prepare):
            return self._prepare(statement)
        if isinstance(statement, ExecutePrepared):
            return self._execute(statement, clock)
        if kinds.is_session_statement(statement):
            return self.commands.run(statement, clock)
        if isinstance(statement, Explain) and explain_options(statement.options).analyze:
            statement = self._measured(statement, clock)
        return self._routed.run(statement, clock)

    def _measured(self, statement: Explain, clock: StatementClock) -> Explain:
        """With what was seen of its SELECT; what is none, or does not end by itself, is not run."""
        query = statement.statement
        if not isinstance(query, Pull):
            return statement
        began = time.perf_counter()
        plan = self._plan(query, clock)
        if not isinstance(plan, PullPlan):
            return statement
        seen = measured(self.pulls, plan, time.perf_counter() - began, clock)
        return dataclasses.replace(statement, measured=seen)

    def _plan(self, query: Pull | Subscribe, clock: StatementClock) -> PullPlan | PushQuery | Subscribe:
        """Of a query that is not prepared, and so has no parameters."""
        if isinstance(query, Subscribe):
            return query
        try:
            with clock.working():
                plan = self.pulls.plan(query)
        except ReadsStream:
            return self.pushes.query(query)
        if plan.parameter_oids:
            raise SqlError(
                sqlstates.UNDEFINED_PARAMETER, "there is no parameter $1", position=_parameter_position(query)
            )
        return plan

    def run_known(self, text: str, new_clock: Callable[[], StatementClock]) -> Result | Postponed | None:
        """Of a text that is one SELECT without parameters and was planned before, or one that differs in values."""
        known = self.pulls.known(bare(text))
        if known is None:
            return None
        self._state.transaction.refuse_if_failed()
        run = self.pulls.run_at_once if self._state.at_once else self.pulls.run
        return run(*known, new_clock())

    def is_short(self, prepared: PreparedStatement | None) -> bool:
        """Whether a prepared statement is worth trying on the event loop."""
        statement = prepared.statement if prepared is not None else None
        if prepared is None or not isinstance(statement, Pull):
            return False
        return self.pulls.may_run_at_once(self.pulls.cached(statement.text, prepared.declared_oids))

    def is_short_query(self, text: str) -> bool:
        known = self.pulls.known(bare(text))
        return known is not None and self.pulls.may_run_at_once(known[0])

    def is_short_text(self, text: str, parameter_oids: Sequence[int]) -> bool:
        return self.pulls.may_run_at_once(self.pulls.cached(bare(text), parameter_oids))

    def run_prepared(self, prepared: PreparedStatement, parameters: Sequence[Any], clock: StatementClock) -> Result:
        """Postponed on the event loop alone."""
        statement = prepared.statement
        if statement is None:
            return Result("", empty=True)
        self._refuse_in_failed(statement)
        query = statement.query if isinstance(statement, DeclareCursor) else statement
        if not isinstance(query, Pull):
            return self.run(statement, clock)
        plan: PullPlan | PushQuery
        try:
            with clock.working():
                plan, parameters = self.pulls.with_values(
                    self.pulls.plan_prepared(prepared, query), prepared, query, parameters
                )
        except ReadsStream:
            plan = self.pushes.query(query)
            refuse_changed(prepared, self.pushes.fields(plan))
        if isinstance(statement, DeclareCursor):
            return self._cursors.declare(statement, plan, parameters, clock)
        if isinstance(plan, PushQuery):
            return self.pushes.run(plan, clock)
        return self.pulls.run(plan, parameters, clock)

    def run_portal(self, portal: Portal, max_rows: int | None, clock: StatementClock) -> Result:
        """With a row limit a query becomes a cursor, so that FETCH and MOVE may go on where the client stands."""
        if portal.cursor is not None or (max_rows is not None and isinstance(portal.prepared.statement, Pull)):
            self._state.transaction.refuse_if_failed()
            try:
                return self.read_cursor(self._cursors.of_portal(portal, clock), max_rows)
            except ReadsStream:
                pass  # a push query: its rows come as they happen, whatever was asked for
        portal.ran = True
        return self.run_prepared(portal.prepared, portal.parameters, clock)

    def run_portal_at_once(self, portal: Portal, clock: StatementClock) -> Result | Postponed:
        """All rows of its query, on the event loop."""
        query = portal.prepared.statement
        if portal.cursor is not None or not isinstance(query, Pull):
            return Postponed()
        self._refuse_in_failed(query)
        try:
            with clock.working():
                plan = self.pulls.plan_prepared(portal.prepared, query)
        except ReadsStream:
            return Postponed()
        if constants_of(plan, portal.parameters):
            return Postponed()
        portal.ran = True
        return self.pulls.run_at_once(plan, portal.parameters, clock)

    def read_cursor(self, cursor: Cursor, max_rows: int | None) -> Result:
        """The protocol's Execute of a cursor."""
        self._state.transaction.refuse_if_failed()
        return Result("SELECT ", cursor.fields, cursor.fetch("forward", max_rows), part=True)

    def _refuse_in_failed(self, statement: Statement | None) -> None:
        if not isinstance(statement, kinds.TRANSACTION_EXITS):
            self._state.transaction.refuse_if_failed()

    def _refuse_writing(self, statement: Statement) -> None:
        """In a read-only transaction; and in an application, what is no part of one."""
        if not kinds.writes(statement):
            return
        if self._state.transaction_settings()["transaction_read_only"] == "on":
            raise SqlError(
                sqlstates.READ_ONLY_SQL_TRANSACTION,
                f"cannot execute {kinds.command_name(statement)} in a read-only transaction",
            )
        application = self._state.transaction.application
        if application is not None:
            application.refuse_other(statement)

    # --- preparing --------------------------------------------------------------------------------------------------
    def prepare(self, name: str, text: str, parameter_oids: Sequence[int]) -> PreparedStatement:
        """Parses and describes without running; raises what is wrong with the statement now."""
        with self._state.services.large_texts.working(text):
            return self._prepared(name, text, tuple(parameter_oids))

    def _prepared(self, name: str, text: str, declared: tuple[int, ...]) -> PreparedStatement:
        services = self._state.services
        with services.large_texts.parsing(text, self._state.context.cancelled):
            statements = self._state.parse(text)
        if len(statements) > 1:
            raise SqlError(sqlstates.SYNTAX_ERROR, "cannot insert multiple commands into a prepared statement")
        statement = statements[0] if statements else None
        if statement is not None:
            self._refuse_in_failed(statement)
        query = statement.query if isinstance(statement, DeclareCursor) else statement
        if statement is not None and isinstance(query, Pull):
            try:
                oids, fields = self._described(query, declared)
                kept = without_tree(statement)
            finally:
                services.large_texts.free(query)
            return PreparedStatement(name, text, kept, declared, oids, fields if query is statement else None)
        if statement is None:
            return PreparedStatement(name, text, None)
        if any(declared):
            self._refuse_parameters(statement)
        return PreparedStatement(name, text, statement, fields=self.fields(statement))

    def _described(self, query: Pull, declared: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[Field, ...]]:
        """Its parameters and its columns."""
        try:
            plan = self.pulls.plan(query, declared)
        except ReadsStream:
            return (), self.pushes.fields(self.pushes.query(query))
        return plan.parameter_oids, plan.fields

    def _refuse_parameters(self, statement: Statement) -> None:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"parameters are not supported in {kinds.command_name(statement)}",
            hint="Parameters are for SELECT; write the values into the text of other statements.",
        )

    def described(self, prepared: PreparedStatement) -> tuple[Field, ...] | None:
        """Its columns as they are now: those of a FETCH are its cursor's, which may be another since."""
        return self.fields(prepared.statement) if isinstance(prepared.statement, Fetch) else prepared.fields

    def fields(self, statement: Statement) -> tuple[Field, ...] | None:
        """The columns of a statement that is no pull query."""
        if isinstance(statement, ExecutePrepared):
            return self._state.prepared.get(statement.name).fields
        if kinds.is_session_statement(statement):
            return self.commands.fields(statement)
        return self._state.services.router.fields(statement, self._state.context)

    # --- SQL-level PREPARE and EXECUTE ------------------------------------------------------------------------------
    def _prepare(self, statement: Prepare) -> Result:
        self._state.prepared.check_free(statement.name)
        oids = [oid_of_name(text) for text in statement.types]
        try:
            prepared = self.prepare(statement.name, statement.statement_text, oids)
        except SqlError as error:
            if error.position is not None:
                error.position += statement.statement_start
            raise
        self._state.prepared.add(dataclasses.replace(prepared, prepare_text=statement.text))
        return Result("PREPARE")

    def _execute(self, statement: ExecutePrepared, clock: StatementClock) -> Result:
        prepared = self._state.prepared.get(statement.name)
        expected = len(prepared.parameter_oids)
        if len(statement.arguments) != expected:
            raise SqlError(
                sqlstates.SYNTAX_ERROR,
                f'wrong number of parameters for prepared statement "{statement.name}"',
                detail=f"Expected {expected} parameters but got {len(statement.arguments)}.",
            )
        parameters = self._evaluate(statement.arguments, prepared.parameter_oids, clock) if expected else ()
        return self.run_prepared(prepared, parameters, clock)

    def _evaluate(
        self, arguments: Sequence[exp.Expression], oids: Sequence[int], clock: StatementClock
    ) -> Sequence[ParameterValue]:
        """The arguments are expressions: one SELECT of them, cast to the parameters' types, gives their values."""
        columns = [
            exp.alias_(exp.cast(argument.copy(), type_of_oid(oid), dialect="postgres"), f"p{number}")
            for number, (argument, oid) in enumerate(zip(arguments, oids, strict=True), start=1)
        ]
        with clock.working():
            plan = self._state.services.pulls.plan(
                PlanRequest(exp.select(*columns), self._state.scope(), stopped=self._state.context.cancelled)
            )
        result = self.pulls.run(plan, (), clock)
        try:
            rows = [row for batch in result.batches for row in batch.to_pylist()]
        finally:
            result.close()
        return list(rows[0].values())


def _parameter_position(statement: Pull) -> int | None:
    at = statement.text.find("$1")
    return statement.start + at + 1 if at >= 0 else None
