"""The router: a statement to its handler, and one unit of work around it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import Field, Result
from mvserver.routing import copying
from mvserver.routing.handler_rows import row_of, words
from mvserver.routing.ports import Services
from mvserver.routing.spark_wait import wait_for_spark
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.session.copies import CopyTarget
from mvserver.sql.statements.base import Kind, Statement
from mvserver.sql.statements.copying import CopyFrom


class Router:
    """Safe for any number of sessions at a time; what is shared is guarded where it lives."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def fields(self, statement: Statement, context: SessionContext) -> tuple[Field, ...] | None:
        """The columns that the statement will return, without running it."""
        row = row_of(statement)
        if row.fields_of is not None:
            return row.fields_of(statement)
        if row.described is not None:
            return row.described(statement, context, self._services)
        return row.handler.FIELDS

    def execute(self, statement: Statement, context: SessionContext) -> Result:
        """One statement: it is durable when this returns, or has left nothing behind when it raises."""
        work = Work()
        try:
            result = row_of(statement).handler.run(statement, context, self._services, work)
        except BaseException:
            work.take_back(context)
            raise
        work.finish(context)
        return result

    def execute_all(self, statements: Sequence[Statement], context: SessionContext) -> list[Result]:
        """The statements of one COMMIT: all of them, or none."""
        work = Work()
        results: list[Result] = []
        if any(statement.kind_of_statement is Kind.CONTINUOUS for statement in statements):
            # before the transaction, which holds up other definitions
            wait_for_spark(context, self._services)
        try:
            with self._services.catalog.transaction():
                for statement in statements:
                    handler = row_of(statement).handler
                    results.append(handler.run(statement, context, self._services, work))
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
                f"{words(statement)} cannot run inside a transaction block",
                hint="Switch the driver to autocommit for this statement.",
            )
        aside = dataclasses.replace(context, notices=[])
        with self._services.catalog.rehearsal():
            for each in (*earlier, statement):
                aside.notices.clear()
                row_of(each).handler.run(each, aside, self._services, Work(rehearsal=True))
