"""The retention properties of queries' results, which views and the changelogs of queries share."""

from __future__ import annotations

from mvserver.compiler.source_properties import millis
from mvserver.compiler.view_properties import VIEW_PROPERTIES
from mvserver.routing.properties import PropertyReader
from mvserver.sql.statements.base import Properties


def read(reader: PropertyReader, given: Properties) -> dict[str, int]:
    found = {key: value for key in VIEW_PROPERTIES if (value := millis(given, key)) is not None}
    for key in VIEW_PROPERTIES:
        reader.take(key)
    return found
