"""CREATE FUNCTION ... LANGUAGE JAVA: a class of a function source, looked at before anything is made."""

from __future__ import annotations

from dataclasses import replace

from catalog.model import Function
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.java_functions.class_files import Jar, JarError
from mvserver.java_functions.methods import method_of
from mvserver.routing import privileges
from mvserver.routing.ports import Services
from mvserver.routing.properties import PropertyReader
from mvserver.session.context import SessionContext
from mvserver.sql.statements.functions import CreateFunction

_SOURCE, _CLASS = "source.name", "class.name"


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
        jar = Jar(services.jars.read(source.digest))
        method = method_of(
            jar, class_name, [each.type for each in statement.parameters], statement.result, strict=statement.strict
        )
    except (JarError, OSError) as error:
        raise SqlError(
            sqlstates.INVALID_FUNCTION_DEFINITION,
            f'class "{class_name}" of function source "{source.name}" cannot be this function',
            detail=f"{str(error)[:1].upper()}{str(error)[1:]}.",
            hint="A class has one public method evaluate, or eval, of the function's types.",
            position=statement.properties.position(_CLASS),
        ) from error
    return replace(
        function, language="java", body=class_name, source_id=source.id, method=method.name, timeout_ms=0,
        memory_bytes=0, confined=False,
    )  # fmt: skip
