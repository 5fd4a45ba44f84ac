"""CREATE DATABASE, for roles that have CREATEDB; the new one has the schema public."""

from __future__ import annotations

from mvserver import sqlstates
from mvserver.front import Result
from mvserver.routing import notices, privileges
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.namespaces import CreateDatabase

FIELDS = None
TAG = "CREATE DATABASE"


def run(statement: CreateDatabase, context: SessionContext, services: Services, work: Work) -> Result:
    catalog = services.catalog
    privileges.require_attribute(context, services, privileges.CREATEDB, "create database")
    with catalog.transaction():
        if statement.if_not_exists and catalog.databases.find(statement.name) is not None:
            notices.skipped(context, sqlstates.DUPLICATE_DATABASE, f'database "{statement.name}" already exists')
        else:
            catalog.databases.add(statement.name, context.role)
    return done(TAG)
