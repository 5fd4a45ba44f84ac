"""CREATE FUNCTION, for roles that have CREATEFUNCTION: its body is code that runs on the server's machine.

A function that queries call keeps its text: they evaluate records again after a failure, and have to find the same.
"""

from __future__ import annotations

import keyword
from dataclasses import replace

from catalog.dependencies import called, kind
from catalog.model import Function
from mvserver import limits, sqlstates
from mvserver.compiler.own_functions import is_built_in
from mvserver.errors import SqlError
from mvserver.front import Result
from mvserver.python_functions import body
from mvserver.python_functions.definition import is_supported
from mvserver.python_functions.process import FunctionFailed, RunnableFunction, confinement_of
from mvserver.routing import functions, java_functions, lookup, privileges
from mvserver.routing.ports import Services
from mvserver.routing.properties import PropertyReader
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.functions import CreateFunction
from mvserver.sql.types import SqlType

FIELDS = None
TAG = "CREATE FUNCTION"
_TIMEOUT, _MEMORY = "timeout.millis", "memory.mb"
_MEGABYTE = 2**20


def run(statement: CreateFunction, context: SessionContext, services: Services, work: Work) -> Result:
    create(statement, context, services, work, aggregate=False)
    return done(TAG)


def create(
    statement: CreateFunction, context: SessionContext, services: Services, work: Work, *, aggregate: bool
) -> None:
    """A function, or an aggregate."""
    catalog = services.catalog
    privileges.require_attribute(context, services, privileges.CREATEFUNCTION, "create function")
    made = replace(_function(statement, context, services), aggregate=aggregate)
    if statement.language == "java":
        made = java_functions.made(made, statement, context, services)
    else:
        _check_body(statement)
    if not work.rehearsal and made.language == "python":
        made = replace(made, confined=_try(made, context))
    with catalog.transaction():
        schema, _ = lookup.new_relation(statement.name, context, services)
        _check_kind(statement, made, services)
        old = catalog.functions.find(schema.id, made.name, made.signature)
        if old is None or not statement.or_replace:
            catalog.functions.add(made)
        else:
            privileges.require_relation_owner(old, context, services, statement.name.position)
            _replace(old, made, services)


def _check_kind(statement: CreateFunction, made: Function, services: Services) -> None:
    """A name means functions or aggregates: how its arguments are read depends on that."""
    others = [
        each for each in services.catalog.functions.named(made.schema_id, made.name) if each.aggregate != made.aggregate
    ]
    if not others:
        return
    what = "an aggregate function" if others[0].aggregate else "a function"
    raise SqlError(
        sqlstates.WRONG_OBJECT_TYPE,
        "cannot change routine kind" if statement.or_replace else f'"{made.name}" is the name of {what}',
        detail=f'"{made.name}" is {what}.' if statement.or_replace else None,
        hint="A name is either that of functions or that of aggregates.",
        position=statement.name.position,
    )


def _function(statement: CreateFunction, context: SessionContext, services: Services) -> Function:
    schema, name = lookup.new_relation(statement.name, context, services)
    if is_built_in(name):
        raise SqlError(
            sqlstates.DUPLICATE_FUNCTION,
            f'function "{name}" is built in',
            hint="Built-in functions go first: another one of the name could not be called.",
            position=statement.name.position,
        )
    if len(statement.parameters) > limits.FUNCTION_PARAMETERS_MAX:
        raise SqlError(
            sqlstates.TOO_MANY_ARGUMENTS, f"functions cannot have more than {limits.FUNCTION_PARAMETERS_MAX} arguments"
        )
    seen: set[str] = set()
    for each in statement.parameters:
        _check_parameter(each.name, each.position, seen, python=statement.language == "python")
        _check_type(each.type, "an argument", each.position)
    _check_type(statement.result, "an answer", statement.result_position)
    timeout_ms, memory_bytes = (0, 0) if statement.language == "java" else _bounds(statement, services)
    return Function(
        id="",
        oid=0,
        schema_id=schema.id,
        name=name,
        signature=functions.signature([each.type for each in statement.parameters]),
        parameters=tuple((each.name, str(each.type)) for each in statement.parameters),
        result=str(statement.result),
        body=statement.body,
        strict=statement.strict,
        timeout_ms=timeout_ms,
        memory_bytes=memory_bytes,
        confined=False,
        owner=context.role,
    )


def _check_parameter(name: str, position: int, seen: set[str], *, python: bool) -> None:
    if python and (not name.isidentifier() or keyword.iskeyword(name) or name.startswith("__")):
        raise SqlError(
            sqlstates.INVALID_FUNCTION_DEFINITION,
            f'parameter "{name}" cannot be a name in Python',
            hint="The body uses the parameters by their names.",
            position=position,
        )
    if name in seen:
        raise SqlError(
            sqlstates.INVALID_FUNCTION_DEFINITION, f'parameter name "{name}" used more than once', position=position
        )
    seen.add(name)


def _check_type(type_: SqlType, what: str, position: int | None) -> None:
    if not is_supported(type_):
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"{what} of type {type_} is not supported",
            hint="Functions of one's own know scalar types and arrays of them.",
            position=position,
        )


def _bounds(statement: CreateFunction, services: Services) -> tuple[int, int]:
    """Milliseconds and bytes; the server's settings hold where nothing is said, and are never passed."""
    reader = PropertyReader(statement.properties, "a function")
    timeout_ms, memory_mb = reader.count(_TIMEOUT), reader.count(_MEMORY)
    reader.end((_TIMEOUT, _MEMORY))
    most_ms = max(1, round(services.function_timeout_s * 1000))
    most_mb = services.function_memory_bytes // _MEGABYTE
    if timeout_ms is not None and timeout_ms > most_ms:
        raise reader.error(
            _TIMEOUT, f'property "{_TIMEOUT}" can be at most {most_ms}', hint="The setting function_timeout says so."
        )
    if memory_mb is not None and not limits.FUNCTION_MEMORY_MB_MIN <= memory_mb <= most_mb:
        raise reader.error(
            _MEMORY,
            f'property "{_MEMORY}" must be between {limits.FUNCTION_MEMORY_MB_MIN} and {most_mb}',
            hint="The setting function_memory_limit says so.",
        )
    return timeout_ms or most_ms, (memory_mb or most_mb) * _MEGABYTE


def _check_body(statement: CreateFunction) -> None:
    name = statement.name.parts[-1]
    if len(statement.body.encode("utf-8", "replace")) > limits.FUNCTION_BODY_BYTES_MAX:
        raise SqlError(
            sqlstates.PROGRAM_LIMIT_EXCEEDED,
            f"the body of a function has at most {limits.FUNCTION_BODY_BYTES_MAX} bytes",
        )
    try:
        body.check(name, [each.name for each in statement.parameters], statement.body)
    except body.BodyError as error:
        at = f" at line {error.line}, column {error.column} of the body" if error.line else ""
        raise SqlError(
            sqlstates.SYNTAX_ERROR if error.is_syntax else sqlstates.FEATURE_NOT_SUPPORTED,
            f'{error.message}{at} of function "{name}"' if not at else f"{error.message}{at}",
            detail=f'The body of function "{name}" is the inside of a Python function.',
            hint=None if error.is_syntax else f"It may import {', '.join(sorted(body.MODULES))}.",
            position=_position(statement, error),
        ) from error


def _position(statement: CreateFunction, error: body.BodyError) -> int | None:
    if statement.body_start is None or not error.line:
        return None
    before = statement.body.splitlines(keepends=True)[: error.line - 1]
    return statement.body_start + sum(map(len, before)) + max(error.column, 1)


def _try(function: Function, context: SessionContext) -> bool:
    """Its process starts here once, without a call: what it imports is there, and whether it is confined is known."""
    try:
        found = confinement_of(RunnableFunction.of(functions.in_python(function)))
    except FunctionFailed as error:
        raise SqlError(error.sqlstate, error.message) from error
    if not found.is_whole:
        lacks = [
            *([] if found.files_and_network else ["files, the network and other processes"]),
            *([] if found.memory else ["more memory than it may have"]),
        ]
        context.notice(
            f'the body of function "{function.name}" is not confined on this machine',
            detail=f"The operating system cannot deny it {' and '.join(lacks)}.",
            hint="Let only those make functions who may do on this machine what the server may.",
        )
    return found.is_whole


def _replace(old: Function, new: Function, services: Services) -> None:
    subject = f"{kind(old)} {called(old)}"
    if old.result != new.result:
        raise SqlError(
            sqlstates.INVALID_FUNCTION_DEFINITION,
            "cannot change return type of existing function",
            hint=f"Use DROP {kind(old).upper()} {called(old)} first.",
        )
    if functions.definition(old, services).digest == functions.definition(new, services).digest:
        return
    queries = services.catalog.queries.of_function(old.id)
    if queries:
        raise SqlError(
            sqlstates.DEPENDENT_OBJECTS_STILL_EXIST,
            f"cannot replace {subject} because queries call it",
            detail="\n".join(f"query {each.id} calls it" for each in queries),
            hint="Answers do not change under a query. Make a function of another name, and new queries that call it.",
        )
    services.catalog.functions.replace(old, new)
