"""CREATE [OR REPLACE] STREAM: columns and a format over an entity, which is made when it is not there."""

from __future__ import annotations

from mvserver.front import Result
from mvserver.routing import declaring, lookup, stream_declaration
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.relations import CreateStream

FIELDS = None
TAG = "CREATE STREAM"


def run(statement: CreateStream, context: SessionContext, services: Services, work: Work) -> Result:
    place = declaring.place(lookup.STREAM, statement, context, services)
    if place is None:
        return done(TAG)
    statement = declaring.stream_with_columns(statement, context, services)
    columns = stream_declaration.check_columns(statement.columns)
    typed = [(c.name, c.type) for c in statement.columns]
    declaration = stream_declaration.read(statement.properties, typed, services.stores.kinds())
    declaration = declaring.with_descriptor(declaration, statement.properties, context, services)
    store, value_format = declaring.store_and_format(lookup.STREAM, declaration, context, services)
    stream_declaration.check_value_columns(
        value_format, typed, declaration.value_delimiter, checked=declaration.value_checked
    )
    stream_declaration.check_key_columns(declaration, services.stores.kind(store.type), statement.properties)
    kind = services.stores.kind(store.type)
    stream_declaration.check_value(declaration, value_format, typed, kind, statement.properties)
    schema, name = place
    entity = declaring.EntityUnder(store, declaration.entity or name.lower(), declaration, statement.properties)
    properties = declaration.kept(value_format)
    new = declaring.relation(lookup.STREAM, statement, place, columns, properties, entity, context, services)
    declaring.declare(new, entity, statement, schema, context, services, work)
    return done(TAG)
