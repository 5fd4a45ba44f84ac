"""From a statement to its Result: pull queries, the router's statements, the session's own, prepared ones."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from sqlglot import exp

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.pgwire.backend import Field, Result
from mvserver.serving.api import PullPlan
from mvserver.session import kinds
from mvserver.session.clock import StatementClock
from mvserver.session.commands import Commands
from mvserver.session.cursor_commands import CursorCommands
from mvserver.session.parameter_types import oid_of_type, type_of_oid
from mvserver.session.prepared import PreparedStatement
from mvserver.session.pulls import PullRunner
from mvserver.session.routed import RoutedRunner
from mvserver.session.state import SessionState
from mvserver.sql import statements as s
from mvserver.sql.types import parse_type

ParameterValue = None | bool | int | float | str | bytes | Decimal | datetime.date | datetime.time | datetime.timedelta


class Dispatcher:
    def __init__(self, state: SessionState, failed: Callable[[Exception], Exception]) -> None:
        self._state = state
        self.pulls = PullRunner(state, failed)
        self._routed = RoutedRunner(state, failed)
        self._cursors = CursorCommands(state, self.pulls)
        self.commands = Commands(state, self.pulls, self._routed, self._cursors)

    # --- running ----------------------------------------------------------------------------------------------------
    def run(self, statement: s.Statement, clock: StatementClock) -> Result:
        """One statement without parameters."""
        self._refuse_in_failed(statement)
        if isinstance(statement, s.Pull):
            return self.run_plan(self._plan(statement, clock), clock)
        if isinstance(statement, s.DeclareCursor):
            return self._cursors.declare(statement, self._plan(statement.query, clock), (), clock)
        if isinstance(statement, s.CopyTo):
            return self._cursors.copy(statement, self._plan(statement.query, clock), clock)
        if isinstance(statement, s.Prepare):
            return self._prepare(statement)
        if isinstance(statement, s.ExecutePrepared):
            return self._execute(statement, clock)
        if kinds.is_session_statement(statement):
            return self.commands.run(statement, clock)
        return self._routed.run(statement, clock)

    def _plan(self, query: s.Pull, clock: StatementClock) -> PullPlan:
        """Of a query that is not prepared, and so has no parameters."""
        with clock.working():
            plan = self.pulls.plan(query)
        if plan.parameter_oids:
            raise SqlError(
                sqlstates.UNDEFINED_PARAMETER, "there is no parameter $1", position=_parameter_position(query)
            )
        return plan

    def cached(self, text: str) -> PullPlan | None:
        """The plan of a text that is one SELECT without parameters and was planned before."""
        plan = self.pulls.cached(text.strip().rstrip(";").rstrip())
        return plan if plan is not None and not plan.parameter_oids else None

    def run_plan(self, plan: PullPlan, clock: StatementClock) -> Result:
        self._state.transaction.refuse_if_failed()
        return self.pulls.run(plan, (), clock)

    def run_prepared(self, prepared: PreparedStatement, parameters: Sequence[Any], clock: StatementClock) -> Result:
        statement = prepared.statement
        if statement is None:
            return Result("", empty=True)
        self._refuse_in_failed(statement)
        query = statement.query if isinstance(statement, s.DeclareCursor) else statement
        if not isinstance(query, s.Pull):
            return self.run(statement, clock)
        with clock.working():
            plan = self.pulls.plan_prepared(prepared, query)
        if isinstance(statement, s.DeclareCursor):
            return self._cursors.declare(statement, plan, parameters, clock)
        return self.pulls.run(plan, parameters, clock)

    def _refuse_in_failed(self, statement: s.Statement | None) -> None:
        if not isinstance(statement, kinds.TRANSACTION_EXITS):
            self._state.transaction.refuse_if_failed()

    # --- preparing --------------------------------------------------------------------------------------------------
    def prepare(self, name: str, text: str, parameter_oids: Sequence[int]) -> PreparedStatement:
        """Parses and describes without running; raises what is wrong with the statement now."""
        statements = self._state.services.parse(text)
        if len(statements) > 1:
            raise SqlError(sqlstates.SYNTAX_ERROR, "cannot insert multiple commands into a prepared statement")
        statement = statements[0] if statements else None
        if statement is not None:
            self._refuse_in_failed(statement)
        declared = tuple(parameter_oids)
        if isinstance(statement, s.Pull):
            plan = self.pulls.plan(statement, declared)
            return PreparedStatement(name, text, statement, declared, plan.parameter_oids, plan.fields)
        if isinstance(statement, s.DeclareCursor):
            plan = self.pulls.plan(statement.query, declared)
            return PreparedStatement(name, text, statement, declared, plan.parameter_oids)
        if statement is None:
            return PreparedStatement(name, text, None)
        if any(declared):
            self._refuse_parameters(statement)
        return PreparedStatement(name, text, statement, fields=self.fields(statement))

    def _refuse_parameters(self, statement: s.Statement) -> None:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"parameters are not supported in {kinds.command_name(statement)}",
            hint="Parameters are for SELECT; write the values into the text of other statements.",
        )

    def described(self, prepared: PreparedStatement) -> tuple[Field, ...] | None:
        """Its columns as they are now: those of a FETCH are its cursor's, which may be another since."""
        return self.fields(prepared.statement) if isinstance(prepared.statement, s.Fetch) else prepared.fields

    def fields(self, statement: s.Statement) -> tuple[Field, ...] | None:
        """The columns of a statement that is no pull query."""
        if isinstance(statement, s.ExecutePrepared):
            return self._state.prepared.get(statement.name).fields
        if kinds.is_session_statement(statement):
            return self.commands.fields(statement)
        return self._state.services.router.fields(statement, self._state.context)

    # --- SQL-level PREPARE and EXECUTE ------------------------------------------------------------------------------
    def _prepare(self, statement: s.Prepare) -> Result:
        self._state.prepared.check_free(statement.name)
        oids = [oid_of_type(parse_type(text)) for text in statement.types]
        self._state.prepared.add(self.prepare(statement.name, statement.statement_text, oids))
        return Result("PREPARE")

    def _execute(self, statement: s.ExecutePrepared, clock: StatementClock) -> Result:
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
        plan = self._state.services.pulls.plan(exp.select(*columns), self._state.scope())
        result = self.pulls.run(plan, (), clock)
        try:
            rows = [row for batch in result.batches for row in batch.to_pylist()]
        finally:
            result.close()
        return list(rows[0].values())


def _parameter_position(statement: s.Pull) -> int | None:
    at = statement.text.find("$1")
    return at + 1 if at >= 0 else None
