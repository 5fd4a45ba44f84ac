"""CREATE DESCRIPTOR_SOURCE, for roles that have CREATESTORE: the file is read once and kept."""

from __future__ import annotations

import uuid

from catalog.model import DescriptorSource
from mvserver import sqlstates
from mvserver.front import Result
from mvserver.routing import descriptor_sources, notices, privileges
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.descriptor_sources import CreateDescriptorSource

FIELDS = None
TAG = "CREATE DESCRIPTOR_SOURCE"


def run(statement: CreateDescriptorSource, context: SessionContext, services: Services, work: Work) -> Result:
    known = services.catalog.descriptor_sources
    privileges.require_attribute(context, services, privileges.CREATESTORE, "create descriptor source")
    if statement.if_not_exists and known.find(statement.name) is not None:
        notices.skipped(context, sqlstates.DUPLICATE_OBJECT, f'descriptor source "{statement.name}" already exists')
        return done(TAG)
    known.check_new(statement.name)
    kind, properties = descriptor_sources.read(statement.properties, services.store_config_dir)
    now = services.clock()
    source = DescriptorSource(str(uuid.uuid4()), 0, statement.name, kind, properties, context.role, now, now)
    with services.catalog.transaction():
        known.add(source)
    return done(TAG)
