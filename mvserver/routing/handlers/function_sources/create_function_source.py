"""CREATE FUNCTION_SOURCE, for superusers: the jar is read once and kept. Its code is not confined."""

from __future__ import annotations

from catalog.model import FunctionSource
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import Result
from mvserver.java_functions.class_files import Jar, JarError
from mvserver.java_functions.jars import JAR_BYTES_MAX, digest_of
from mvserver.routing import notices, privileges
from mvserver.routing.config_folder import cannot_read, read_file
from mvserver.routing.ports import Services
from mvserver.routing.properties import PropertyReader
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.function_sources import CreateFunctionSource

FIELDS = None
TAG = "CREATE FUNCTION_SOURCE"
_FILE, _DESCRIPTION = "file", "description"


def run(statement: CreateFunctionSource, context: SessionContext, services: Services, work: Work) -> Result:
    known, jars = services.catalog.function_sources, services.jars
    privileges.require_superuser(context, services, "create function source")
    if statement.if_not_exists and known.find(statement.name) is not None:
        notices.skipped(context, sqlstates.DUPLICATE_OBJECT, f'function source "{statement.name}" already exists')
        return done(TAG)
    known.check_new(statement.name)
    reader = PropertyReader(statement.properties, "a function source")
    name, description = reader.text(_FILE), reader.text(_DESCRIPTION)
    reader.end((_FILE, _DESCRIPTION))
    if name is None:
        raise SqlError(sqlstates.INVALID_PARAMETER_VALUE, 'a function source needs the property "file"')
    name = name.removeprefix("@").removeprefix("/")
    content = read_file(services.store_config_dir, name, _FILE, JAR_BYTES_MAX)
    _check(content, name)
    digest = digest_of(content)
    with services.catalog.transaction():
        if all(each.digest != digest for each in known.all()):
            work.effect(f"jar {digest}", lambda: jars.keep(content), lambda: jars.forget(digest))
        known.add(FunctionSource("", 0, statement.name, name, digest, description, context.role))
    return done(TAG)


def _check(content: bytes, name: str) -> None:
    try:
        jar = Jar(content)
    except JarError as error:
        raise cannot_read(name, _FILE, str(error)) from error
    if not jar.has_classes:
        raise cannot_read(name, _FILE, "it has no classes")
