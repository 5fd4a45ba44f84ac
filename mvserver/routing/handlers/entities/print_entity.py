"""PRINT ENTITY: records as they come, undecoded, until LIMIT or until the client cancels."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from catalog.acl import Privilege
from mvserver import limits
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
    return Result("PRINT ENTITY", FIELDS, _batches(records, statement.limit), live=lambda: False)


def _batches(records: Iterator[EntityRecord], limit: int | None) -> Iterator[pa.RecordBatch]:
    """Without LIMIT each record is a batch: whoever watches a topic wants each record as it comes."""
    size = 1 if limit is None else min(limit, limits.RESULT_CHUNK_ROWS)
    chunk: list[tuple[object, ...]] = []
    try:
        for record in records:
            time = None if record.timestamp_ms is None else record.timestamp_ms / 1000
            chunk.append((_text(record.key), _text(record.value), record.position, moment(time)))
            if len(chunk) >= size:
                yield batch(FIELDS, chunk)
                chunk = []
        if chunk:
            yield batch(FIELDS, chunk)
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
