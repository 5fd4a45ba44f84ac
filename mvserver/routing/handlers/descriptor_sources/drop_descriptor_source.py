"""DROP DESCRIPTOR_SOURCE: refused while relations have schemas of it."""

from __future__ import annotations

from mvserver.front import Result
from mvserver.routing import descriptor_sources, notices, privileges
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.descriptor_sources import DropDescriptorSource

FIELDS = None
TAG = "DROP DESCRIPTOR_SOURCE"


def run(statement: DropDescriptorSource, context: SessionContext, services: Services, work: Work) -> Result:
    catalog = services.catalog
    with catalog.transaction():
        if statement.if_exists and catalog.descriptor_sources.find(statement.name) is None:
            notices.missing(context, f'descriptor source "{statement.name}" does not exist')
            return done(TAG)
        source = catalog.descriptor_sources.get(statement.name)
        privileges.require_owner(source, context, services)
        descriptor_sources.refuse_dropping(source, catalog.dependencies.of_descriptor_source(source))
        catalog.descriptor_sources.delete(source.id)
    return done(TAG)
