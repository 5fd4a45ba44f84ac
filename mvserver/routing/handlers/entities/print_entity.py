"""PRINT ENTITY: records as they come, undecoded, until LIMIT or until the client cancels.

Each record is a batch of its own: whoever watches an entity wants it when it comes, also where the last one is still
to come.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from catalog.acl import Privilege
from mvserver.front import Result
from mvserver.routing import lookup
from mvserver.routing.ports import Services
from mvserver.routing.properties import PropertyReader
from mvserver.routing.rows import batch, fields, moment
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.stores import PrintEntity
from mvserver.types.oids import TEXT, TIMESTAMPTZ
from spark_sinks.base import EntityRecord

FIELDS = fields(("key", TEXT), ("value", TEXT), ("position", TEXT), ("timestamp", TIMESTAMPTZ))


def run(statement: PrintEntity, context: SessionContext, services: Services, work: Work) -> Result:
    store = lookup.store(statement.store, Privilege.USAGE, context, services)
    reader = PropertyReader(statement.properties, "PRINT ENTITY")
    from_beginning = reader.flag("from_beginning")
    reader.end(("from_beginning",))
    records = services.stores.client(store).print_entity(
        statement.name, from_beginning=from_beginning, limit=statement.limit, stopped=context.cancelled
    )
    return Result("PRINT ENTITY", FIELDS, _batches(records), live=lambda: False)


def _batches(records: Iterator[EntityRecord]) -> Iterator[pa.RecordBatch]:
    try:
        for record in records:
            time = None if record.timestamp_ms is None else record.timestamp_ms / 1000
            yield batch(FIELDS, [(_text(record.key), _text(record.value), record.position, moment(time))])
    finally:
        close = getattr(records, "close", None)
        if close is not None:
            close()


def _text(content: bytes | None) -> str | None:
    """Text where it is UTF-8 without zero bytes (which no PostgreSQL text has), else bytea's notation."""
    if content is None:
        return None
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return "\\x" + content.hex()
    return "\\x" + content.hex() if "\0" in text else text
