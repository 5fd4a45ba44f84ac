"""How long what a query makes takes records and is kept: properties that views and the changelogs of queries share."""

from __future__ import annotations

from mvserver.compiler.source_properties import millis
from mvserver.compiler.view_properties import RETENTION, VIEW_PROPERTIES
from mvserver.routing.properties import PropertyReader
from mvserver.sql.statements.base import Properties

_TTL = "state.ttl.millis"
KNOWN = (*VIEW_PROPERTIES, _TTL)


def read(reader: PropertyReader, given: Properties) -> dict[str, int]:
    found = {key: value for key in VIEW_PROPERTIES if (value := millis(given, key)) is not None}
    for key in VIEW_PROPERTIES:
        reader.take(key)
    reader.refuse(_TTL, f"Group by a window and give '{RETENTION}'.")
    return found
