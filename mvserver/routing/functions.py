"""Functions of users between the catalog and the compiler: which a statement may call, and what they are."""

from __future__ import annotations

from collections.abc import Sequence

from catalog.acl import Privilege
from catalog.model import Function, Query
from mvserver import sqlstates
from mvserver.compiler.own_functions import OwnFunction
from mvserver.compiler.type_names import postgres_name
from mvserver.errors import SqlError
from mvserver.java_functions.definition import JavaFunction
from mvserver.python_functions.definition import PythonFunction, kind_of
from mvserver.routing import privileges
from mvserver.routing.ports import Services
from mvserver.session.context import SessionContext
from mvserver.sql.statements.base import ObjectName
from mvserver.sql.statements.functions import FunctionName
from mvserver.sql.types import SqlType, parse_type


def definition(function: Function, services: Services) -> OwnFunction:
    if function.source_id is None:
        return in_python(function)
    source = services.catalog.function_sources.by_id(function.source_id)
    assert source is not None  # noqa: S101 - it is not dropped while there is a function of it
    return JavaFunction(
        function.id,
        function.name,
        tuple((name, parse_type(type_)) for name, type_ in function.parameters),
        parse_type(function.result),
        str(services.jars.path(source.digest)),
        source.digest,
        function.body,
        function.method or "",
        function.strict,
        function.aggregate,
    )


def in_python(function: Function) -> PythonFunction:
    return PythonFunction(
        function.id,
        function.name,
        tuple((name, parse_type(type_)) for name, type_ in function.parameters),
        parse_type(function.result),
        function.body,
        function.strict,
        function.timeout_ms,
        function.memory_bytes,
        function.confined,
        function.aggregate,
    )


def signature(types: Sequence[SqlType]) -> str:
    return ", ".join(map(kind_of, types))


def named(name: ObjectName, context: SessionContext, services: Services) -> tuple[Function, ...]:
    """Those of a name, and of the arguments where they are said; none where there is none."""
    if len(name.parts) > 1:
        privileges.require_place(name.parts[:-1], context, services, name.position)
    path = privileges.usable_path(context, services)
    found = services.catalog.names.functions(name.parts, context.database, path, name.position)
    types = name.types if isinstance(name, FunctionName) else None
    return found if types is None else tuple(each for each in found if each.signature == signature(types))


def missing(name: ObjectName, what: str = "function") -> str:
    """PostgreSQL's words for a function that is not there."""
    if isinstance(name, FunctionName) and name.types is not None:
        return f"{what} {'.'.join(name.parts)}({', '.join(map(postgres_name, name.types))}) does not exist"
    return f'could not find {"an" if what == "aggregate" else "a"} {what} named "{name}"'


def function(name: ObjectName, context: SessionContext, services: Services) -> Function:
    """42883 where there is none, 42725 where there are several."""
    found = named(name, context, services)
    if not found:
        raise SqlError(sqlstates.UNDEFINED_FUNCTION, missing(name), position=name.position)
    return only(found, name)


def only(found: Sequence[Function], name: ObjectName) -> Function:
    """The one of the name; 42725 where there are several."""
    if len(found) > 1:
        raise SqlError(
            sqlstates.AMBIGUOUS_FUNCTION,
            f'function name "{name}" is not unique',
            hint="Specify the argument list to select the function unambiguously.",
            position=name.position,
        )
    return found[0]


class VisibleFunctions:
    """Those that a new statement of the session may call."""

    def __init__(self, context: SessionContext, services: Services) -> None:
        self._context = context
        self._services = services

    def named(self, parts: Sequence[str], position: int | None) -> Sequence[OwnFunction]:
        if len(parts) > 1:  # 3F000 for a schema that is not there
            self._services.catalog.names.schema(parts[:-1], self._context.database, position)
        return [
            definition(each, self._services)
            for each in named(ObjectName(tuple(parts), position), self._context, self._services)
        ]

    def call(self, function: OwnFunction, position: int | None) -> None:
        found = self._services.catalog.functions.by_id(function.id)
        if found is not None:
            privileges.require(found, Privilege.EXECUTE, self._context, self._services, position)


class KnownFunctions:
    """Those of a definition that the catalog keeps: what its names meant when it was made."""

    def __init__(self, query: Query, services: Services) -> None:
        self._query = query
        self._services = services

    def named(self, parts: Sequence[str], position: int | None) -> Sequence[OwnFunction]:
        catalog, ids = self._services.catalog, self._query.function_ids
        if not ids:
            return ()
        database, schema = self._query.search_path
        found = [each for each in catalog.names.functions(parts, database, (schema,)) if each.id in ids]
        if not found:  # made along a search path that is not kept
            kept = (catalog.functions.by_id(id_) for id_ in ids)
            found = [each for each in kept if each is not None and each.name == parts[-1]]
        return [definition(each, self._services) for each in found]

    def call(self, function: OwnFunction, position: int | None) -> None:
        """Its owner's privileges are looked at when the query is started anew."""
