"""A program that runs at once: typed in a session with dialect = lenses, or within LENSES $$ … $$."""

from __future__ import annotations

import uuid

from mvserver.front import Result
from mvserver.routing.ports import Services
from mvserver.routing.programs import processors
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.processors import Lenses

FIELDS = None
TAG = "LENSES"


def run(statement: Lenses, context: SessionContext, services: Services, work: Work) -> Result:
    name = f"program_{uuid.uuid4().hex[:12]}"
    start = statement.program_start
    processors.begin(name, statement.program, start, processors.RUNNING, context, services, work)
    context.notice(f'processor "{name}" runs the program', hint=f"DROP PROCESSOR {name} ends it.")
    return done(TAG)
