"""DROP ... IF EXISTS of what the server never has: PostgreSQL's notices, and nothing else happens."""

from __future__ import annotations

from functools import cache

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import Result
from mvserver.pgcatalog.static_data import PG_CATALOG, rows_of
from mvserver.routing import lookup, notices
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.absent import ArgumentType, DropAbsent
from mvserver.sql.statements.base import ObjectName

FIELDS = None

_WITHOUT_SCHEMA = ("sequence", "foreign table")  # are told without that of their names
_TOLD = {"domain": "type", "statistics": "statistics object"}


def run(statement: DropAbsent, context: SessionContext, services: Services, work: Work) -> Result:
    for place, name in enumerate(statement.names):
        arguments = statement.arguments[place] if statement.arguments else None
        what = _missing(statement, name, arguments, context, services)
        notices.missing(context, f"{what} does not exist")
    return done(f"DROP {statement.what.upper()}")


def _missing(
    statement: DropAbsent,
    name: ObjectName,
    arguments: tuple[ArgumentType, ...] | None,
    context: SessionContext,
    services: Services,
) -> str:
    what = _TOLD.get(statement.what, statement.what)
    if statement.on is not None:
        return _of_relation(what, name, statement.on, context, services)
    if arguments is not None:
        return missing_function(what, name, arguments, context, services)
    schema = lookup.missing_schema(name, context, services)
    if schema is not None:
        return schema
    _refuse_other(statement.what, name, context, services)
    return f'{what} "{name.parts[-1] if what in _WITHOUT_SCHEMA else name}"'


def _of_relation(what: str, name: ObjectName, on: ObjectName, context: SessionContext, services: Services) -> str:
    schema = lookup.missing_schema(on, context, services)
    if schema is not None:
        return schema
    if not _is_of_the_system(on) and lookup.find_relation(on, context, services) is None:
        return f'relation "{on.parts[-1]}"'
    return f'{what} "{name}" for relation "{on}"'


def missing_function(
    what: str, name: ObjectName, arguments: tuple[ArgumentType, ...], context: SessionContext, services: Services
) -> str:
    schema = lookup.missing_schema(name, context, services)
    if schema is not None:
        return schema
    if name.parts[-1] in _system_names("pg_proc", "proname") and PG_CATALOG in (name.parts[-2:-1] or (PG_CATALOG,)):
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"DROP {what.upper()} of a built-in function is not supported",
            position=name.position,
        )
    for argument in arguments:
        schema = lookup.missing_schema(argument.name, context, services)
        if schema is not None:
            return schema
        if not _is_type(argument.name, context, services):
            return f'type "{argument.name}"'
    return f"{what} {name}({','.join(map(str, arguments))})"


def _is_type(name: ObjectName, context: SessionContext, services: Services) -> bool:
    return name.parts[-1] in _system_names("pg_type", "typname") or (
        lookup.find_type(name, context, services) is not None
    )


def _refuse_other(what: str, name: ObjectName, context: SessionContext, services: Services) -> None:
    """42809 where something else has the name."""
    found = None
    if what in _WITHOUT_SCHEMA:
        relation = lookup.find_relation(name, context, services)
        found = None if relation is None else (relation.name, f"Use DROP {relation.kind.upper()} to remove it.")
    elif what == "domain" and lookup.find_type(name, context, services) is not None:
        found = (str(name), "Use DROP TYPE to remove it.")
    if found is not None:
        raise SqlError(
            sqlstates.WRONG_OBJECT_TYPE, f'"{found[0]}" is not a {what}', hint=found[1], position=name.position
        )


def _is_of_the_system(name: ObjectName) -> bool:
    return any(schema in name.parts[:-1] for schema in lookup.SYSTEM_SCHEMAS) or name.parts[-1].startswith("pg_")


@cache
def _system_names(relation: str, column: str) -> frozenset[str]:
    names, rows = rows_of(relation)
    at = names.index(column)
    return frozenset(str(row[at]) for row in rows)
