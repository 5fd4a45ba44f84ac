"""DROP FUNCTION and DROP AGGREGATE: refused while queries call it, or with them by CASCADE."""

from __future__ import annotations

from catalog.dependencies import called, kind
from catalog.model import Function
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import Result
from mvserver.routing import cascades, functions, notices, privileges
from mvserver.routing.handlers.relations import drop_absent
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.absent import ArgumentType
from mvserver.sql.statements.base import ObjectName
from mvserver.sql.statements.functions import DropFunction, FunctionName
from mvserver.sql.types import array, parse_type

FIELDS = None
TAG = "DROP FUNCTION"


def run(statement: DropFunction, context: SessionContext, services: Services, work: Work) -> Result:
    drop(statement, context, services, work, aggregate=False)
    return done(TAG)


def drop(statement: DropFunction, context: SessionContext, services: Services, work: Work, *, aggregate: bool) -> None:
    for name, arguments in zip(statement.names, statement.arguments, strict=True):
        _drop(name, arguments, statement, context, services, work, aggregate=aggregate)


def _drop(
    name: ObjectName,
    arguments: tuple[ArgumentType, ...] | None,
    statement: DropFunction,
    context: SessionContext,
    services: Services,
    work: Work,
    *,
    aggregate: bool,
) -> None:
    with services.catalog.transaction():
        wanted = _named(name, arguments)
        found = () if wanted is None else functions.named(wanted, context, services)
        if not found:
            what = "aggregate" if aggregate else "function"
            said = drop_absent.missing_function(what, name, arguments or (), context, services)
            if not statement.if_exists:
                message = f"{said} does not exist" if wanted is None else functions.missing(wanted, what)
                raise SqlError(sqlstates.UNDEFINED_FUNCTION, message, position=name.position)
            notices.missing(context, f"{said} does not exist")
            return
        function = functions.only(found, name)
        _check_kind(function, name, aggregate=aggregate)
        privileges.require_relation_owner(function, context, services, name.position)
        dependents = services.catalog.dependencies.of_function(function)
        cascades.clear(f"{kind(function)} {called(function)}", dependents, statement.cascade, services)
        services.catalog.functions.delete(function.id)
    cascades.tell(dependents, context, services, work)


def _check_kind(function: Function, name: ObjectName, *, aggregate: bool) -> None:
    if function.aggregate == aggregate:
        return
    raise SqlError(
        sqlstates.WRONG_OBJECT_TYPE,
        f"{called(function)} is {'an aggregate function' if function.aggregate else 'not an aggregate'}",
        hint=f"Use DROP {kind(function).upper()} to drop {kind(function)}s.",
        position=name.position,
    )


def _named(name: ObjectName, arguments: tuple[ArgumentType, ...] | None) -> FunctionName | None:
    """None where a type is none that a function here can take."""
    if arguments is None:
        return FunctionName(name.parts, name.position)
    try:
        types = [parse_type(each.name.parts[-1]) for each in arguments]
    except SqlError:
        return None
    made = (array(type_) if each.array else type_ for type_, each in zip(types, arguments, strict=True))
    return FunctionName(name.parts, name.position, tuple(made))
