"""The end of a reader whose source keeps its history for it."""

from __future__ import annotations

import logging

from mvserver.errors import words_of
from spark_sinks.base import SourceReader
from spark_sinks.duckdb.writer import Writer

_log = logging.getLogger(__name__)


def forget_history(reader_id: str, reader: SourceReader, writer: Writer) -> bool:
    """What a source keeps for a reader that is needed no more goes, and the ledger's note of it. False where it could
    not: the note stays, and the next reconciliation sees to it. Nothing is to wait for a source that does not answer.
    """
    if reader.held is None:
        return True
    try:
        reader.held.forget()
    except Exception as error:  # noqa: BLE001 - what reads is dropped all the same
        _log.warning("a source still keeps the history of reader %s, which is gone: %s", reader_id, words_of(error))
        return False
    with writer.transaction() as ledger:
        ledger.drop_history(reader_id)
    return True
