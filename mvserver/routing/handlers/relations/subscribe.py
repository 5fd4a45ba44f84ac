"""SUBSCRIBE: the changes of a materialized view, behind its rows or behind a token, until the client ends it."""

from __future__ import annotations

from catalog.acl import Privilege
from catalog.model import Relation
from mvserver import sqlstates
from mvserver.errors import SqlError, raise_instead
from mvserver.front import Field, Result
from mvserver.routing import lookup, privileges, subscribing
from mvserver.routing.ports import Services
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.queries import Subscribe
from mvserver.visible_rows import told

FIELDS = None
_HINTS = {
    lookup.STREAM: "SELECT ... FROM it shows its rows as they come.",
    lookup.CHANGELOG: "SELECT ... FROM it shows its changes as they come.",
}


def described(statement: Subscribe, context: SessionContext, services: Services) -> tuple[Field, ...]:
    shaper = services.pulls.shaper(subscribing.columns(_view(statement, context, services)))
    shaper.close()
    return shaper.fields


def run(statement: Subscribe, context: SessionContext, services: Services, work: Work) -> Result:
    view = _view(statement, context, services)
    columns = subscribing.columns(view)
    try:
        subscribing.wait_filled(view, context, services)
    except SqlError as error:
        raise_instead(told(error, secured=services.pulls.hides_rows(view.id, context.role)), error)
    shaper = services.pulls.shaper(columns)
    try:
        visible = services.pulls.visible_rows(view.id, context.scope())
        watch = services.engine.watch(view.id, since=statement.since, snapshot=statement.snapshot, visible=visible)
    except BaseException:
        shaper.close()
        raise
    rows = subscribing.SubscribedRows(watch, shaper)
    return Result("SELECT ", shaper.fields, rows, live=rows.ready)


def _view(statement: Subscribe, context: SessionContext, services: Services) -> Relation:
    found = lookup.relation(statement.name, context, services)
    privileges.require(found, Privilege.SELECT, context, services, statement.name.position)
    if found.kind != lookup.VIEW:
        raise SqlError(
            sqlstates.WRONG_OBJECT_TYPE,
            f'"{found.name}" is not a materialized view',
            detail="A history is kept of the rows of materialized views.",
            hint=_HINTS.get(found.kind, "SUBSCRIBE TO a materialized view that it reads."),
            position=statement.name.position,
        )
    return found
