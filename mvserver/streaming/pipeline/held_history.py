"""The end of a reader whose source keeps its history for it."""

from __future__ import annotations

import logging

from mvserver.errors import words_of
from spark_sinks.base import SourceReader

_log = logging.getLogger(__name__)


def forget_history(reader: SourceReader) -> None:
    """What a source keeps for a reader that is needed no more goes. One that does not answer keeps it: it is shown
    there, under the server's name, and nothing is to wait for it."""
    if reader.held is None:
        return
    try:
        reader.held.forget()
    except Exception as error:  # noqa: BLE001 - what reads is dropped all the same
        _log.warning("a source still keeps the history of a reader that is gone: %s", words_of(error))
