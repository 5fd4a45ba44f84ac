"""The router: a statement to its handler, and one unit of work around it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.pgwire.backend import Field, Result
from mvserver.routing import copying
from mvserver.routing.copying import CopyTarget
from mvserver.routing.kinds import HandlerModule, Kind, row_of
from mvserver.routing.ports import Services
from mvserver.routing.spark_wait import wait_for_spark
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.base import Statement
from mvserver.sql.statements.copying import CopyFrom


class Router:
    """Safe for any number of sessions at a time; what is shared is guarded where it lives."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def kind(self, statement: Statement) -> Kind:
        """SESSION and PULL are the session room's to run."""
        return row_of(statement).kind

    def fields(self, statement: Statement, context: SessionContext) -> tuple[Field, ...] | None:
        """The columns that the statement will return, without running it."""
        row = row_of(statement)
        if row.fields_of is not None:
            return row.fields_of(statement)
        if row.described is not None:
            return row.described(statement, context, self._services)
        return _handler(statement).FIELDS

    def execute(self, statement: Statement, context: SessionContext) -> Result:
        """One statement: it is durable when this returns, or has left nothing behind when it raises."""
        work = Work()
        try:
            result = _handler(statement).run(statement, context, self._services, work)
        except BaseException:
            work.take_back(context)
            raise
        work.finish(context)
        return result

    def execute_all(self, statements: Sequence[Statement], context: SessionContext) -> list[Result]:
        """The statements of one COMMIT: all of them, or none."""
        work = Work()
        results: list[Result] = []
        if any(self.kind(statement) is Kind.CONTINUOUS for statement in statements):
            # before the transaction, which holds up other definitions
            wait_for_spark(context, self._services)
        try:
            with self._services.catalog.transaction():
                for statement in statements:
                    results.append(_handler(statement).run(statement, context, self._services, work))  # noqa: PERF401
        except BaseException:
            work.take_back(context)
            raise
        work.finish(context)
        return results

    def copy_target(self, statement: CopyFrom, context: SessionContext) -> CopyTarget:
        """Where the rows of a COPY FROM go until they are written."""
        return copying.plan(statement, context, self._services)

    def write_copies(self, copies: Sequence[CopyTarget], check: Callable[[], None]) -> None:
        copying.write(copies, self._services, check)

    def validate(self, statement: Statement, context: SessionContext, earlier: Sequence[Statement] = ()) -> None:
        """For a transaction block: all reasons for which the statement would be refused, given that the ``earlier``
        statements of the block take effect before it. Nothing happens."""
        if row_of(statement).irreversible:
            raise SqlError(
                sqlstates.ACTIVE_SQL_TRANSACTION,
                f"{_words(statement)} cannot run inside a transaction block",
                hint="Switch the driver to autocommit for this statement.",
            )
        aside = dataclasses.replace(context, notices=[])
        with self._services.catalog.rehearsal():
            for each in (*earlier, statement):
                aside.notices.clear()
                _handler(each).run(each, aside, self._services, Work(rehearsal=True))


def _handler(statement: Statement) -> HandlerModule:
    handler = row_of(statement).handler
    if handler is None:
        raise SqlError(sqlstates.INTERNAL_ERROR, f"{_words(statement)} is not a statement of the router")
    return handler


def _words(statement: Statement) -> str:
    name = type(statement).__name__
    return "".join(f" {c}" if c.isupper() and i else c for i, c in enumerate(name)).upper()
