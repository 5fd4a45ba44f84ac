"""DROP FUNCTION_SOURCE: refused while there are functions of it."""

from __future__ import annotations

from catalog.dependencies import called
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import Result
from mvserver.routing import notices, privileges
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.function_sources import DropFunctionSource

FIELDS = None
TAG = "DROP FUNCTION_SOURCE"


def run(statement: DropFunctionSource, context: SessionContext, services: Services, work: Work) -> Result:
    catalog, jars = services.catalog, services.jars
    privileges.require_superuser(context, services, "drop function source")
    with catalog.transaction():
        if statement.if_exists and catalog.function_sources.find(statement.name) is None:
            notices.missing(context, f'function source "{statement.name}" does not exist')
            return done(TAG)
        source = catalog.function_sources.get(statement.name)
        using = catalog.functions.of_source(source.id)
        if using:
            raise SqlError(
                sqlstates.DEPENDENT_OBJECTS_STILL_EXIST,
                f"cannot drop function source {source.name} because other objects depend on it",
                detail="\n".join(f"function {called(each)} depends on function source {source.name}" for each in using),
                hint="Drop these first.",
            )
        catalog.function_sources.delete(source.id)
        shared = any(each.digest == source.digest for each in catalog.function_sources.all())
    if not shared:
        work.after_commit(lambda: jars.forget(source.digest))
    return done(TAG)
