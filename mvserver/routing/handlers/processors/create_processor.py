"""CREATE PROCESSOR: a program checked as a whole and kept, with its targets. START PROCESSOR runs it."""

from __future__ import annotations

from mvserver.front import Result
from mvserver.routing.ports import Services
from mvserver.routing.programs import processors
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.processors import CreateProcessor

FIELDS = None
TAG = "CREATE PROCESSOR"


def run(statement: CreateProcessor, context: SessionContext, services: Services, work: Work) -> Result:
    (name,) = statement.name.parts
    start = statement.program_start
    processors.begin(name, statement.program, start, processors.STOPPED, context, services, work)
    context.notice(f'processor "{name}" is not running yet', hint=f"START PROCESSOR {name} runs it.")
    return done(TAG)
