"""CREATE FUNCTION ... LANGUAGE JAVA: a class of a function source, looked at before anything is made."""

from __future__ import annotations

from dataclasses import replace

from catalog.model import Function
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.java_functions.class_files import Jar, JarError
from mvserver.java_functions.interfaces import interface_of
from mvserver.java_functions.methods import method_of
from mvserver.routing import privileges
from mvserver.routing.ports import Services
from mvserver.routing.properties import PropertyReader
from mvserver.session.context import SessionContext
from mvserver.sql.statements.functions import CreateFunction

_SOURCE, _CLASS = "source.name", "class.name"
_METHOD = (
    "A class has one public method evaluate, or eval, of the function's types, or implements one of "
    "io.lenses.sql.udf.UserDefinedFunction1, 2, 3 and VarArg."
)
_AGGREGATE = (
    "An aggregate implements io.lenses.sql.udf.UserDefinedAggregateFunction. Else make a function that takes a "
    "java.util.List, and call it over array_agg: f(array_agg(x))."
)


def made(function: Function, statement: CreateFunction, context: SessionContext, services: Services) -> Function:
    """The function with its class and method. 42501 for all but superusers: code of the JVM is not confined."""
    privileges.require_superuser(context, services, "create function in JAVA")
    reader = PropertyReader(statement.properties, "a function in JAVA")
    source_name, class_name = reader.text(_SOURCE), reader.text(_CLASS)
    reader.end((_SOURCE, _CLASS))
    if source_name is None or class_name is None:
        raise SqlError(
            sqlstates.INVALID_FUNCTION_DEFINITION,
            "a function in JAVA needs a source and a class",
            hint="Say WITH ('source.name' = source, 'class.name' = class).",
            position=statement.name.position,
        )
    source = services.catalog.function_sources.get(source_name, statement.properties.position(_SOURCE))
    try:
        method = _called(Jar(services.jars.read(source.digest)), class_name, function.aggregate, statement)
    except (JarError, OSError) as error:
        raise SqlError(
            sqlstates.INVALID_FUNCTION_DEFINITION,
            f'class "{class_name}" of function source "{source.name}" cannot be this function',
            detail=f"{str(error)[:1].upper()}{str(error)[1:]}.",
            hint=_AGGREGATE if function.aggregate else _METHOD,
            position=statement.properties.position(_CLASS),
        ) from error
    return replace(
        function, language="java", body=class_name, source_id=source.id, method=method, timeout_ms=0,
        memory_bytes=0, confined=False,
    )  # fmt: skip


def _called(jar: Jar, class_name: str, aggregate: bool, statement: CreateFunction) -> str:
    """The method of the class, or its interface; JarError where it has none."""
    if jar.find(class_name) is None:
        raise JarError(f"there is no class {class_name}")
    types = [each.type for each in statement.parameters]
    interface = interface_of(jar, class_name, types, statement.result, aggregate=aggregate)
    if interface is not None:
        return interface
    return method_of(jar, class_name, types, statement.result, strict=statement.strict).name
