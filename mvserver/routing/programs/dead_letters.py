"""The topic of a program's dead letters: its records are the keys and values of others, as they were."""

from __future__ import annotations

from catalog.acl import Privilege
from catalog.model import Schema, Store
from mvserver.lenses.problems import unsupported
from mvserver.lenses.program import RowKind
from mvserver.lenses.rows import KEY, VALUE
from mvserver.lenses.settings import DeadLetterTopic, ProgramSettings
from mvserver.routing import privileges, sinks
from mvserver.routing.continuous import PlannedQuery
from mvserver.routing.ports import Services
from mvserver.routing.programs import targets
from mvserver.routing.programs.schemas import SchemaField
from mvserver.routing.programs.targets import Records, Target
from mvserver.session.context import SessionContext

_BYTES = "VARBINARY"
_UNREAD = "error.policy.read = continue keeps rejected records in mv_catalog.rejected_rows."
_UNWRITTEN = "error.policy.write = continue leaves out what cannot be written."


def target(
    topic: DeadLetterTopic,
    planned: PlannedQuery,
    settings: ProgramSettings,
    place: tuple[Schema, Store],
    processor: str,
    context: SessionContext,
    services: Services,
) -> Target:
    """``planned`` reads the records of which some may be dead letters."""
    store = place[1]
    privileges.require(store, Privilege.INSERT, context, services)
    sinks.check_sink_store(store, services, keyed=False)
    if not services.stores.kind(store.type).written_headers:
        raise unsupported(
            topic.place,
            f"a topic of dead letters is not supported in a store of type {store.type}",
            " ".join(hint for wanted, hint in ((topic.read, _UNREAD), (topic.written, _UNWRITTEN)) if wanted),
        )
    columns = ([(KEY, SchemaField(KEY, _BYTES))], [(VALUE, SchemaField(VALUE, _BYTES))])
    records = Records(topic.name, RowKind.STREAM, columns, ("primitive", "primitive"))
    other_name = f"{processor}.dead_letters"
    return targets.target_of(records, topic.place, planned, settings, place, other_name, context, services)
