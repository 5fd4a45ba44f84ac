"""PRINT ENTITY: the records of files as they come."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.base import EntityRecord
from spark_sinks.file.entity_files import EntityFiles
from spark_sinks.file.files import VisibleFile
from spark_sinks.file.shown import shown

_STOP_CHECK_LINES = 512


def follow(
    files: EntityFiles, seen: set[str], limit: int | None, stopped: Callable[[], bool], poll_s: float
) -> Iterator[EntityRecord]:
    """The records of the files that are not ``seen``, then of those that come, which are looked for each ``poll_s``."""
    sent = 0
    looked_at = 0.0
    while not stopped() and (limit is None or sent < limit):
        if time.monotonic() - looked_at < poll_s:
            time.sleep(min(poll_s, 0.1))
            continue
        fresh, looked_at = files.look(seen), time.monotonic()
        for file in fresh:
            seen.add(file.name)
            for record in _records(files, file, stopped):
                yield record
                sent += 1
                if sent == limit or (sent % _STOP_CHECK_LINES == 0 and stopped()):
                    return
            if stopped():
                return
        if fresh:
            looked_at = 0.0


def _records(files: EntityFiles, file: VisibleFile, stopped: Callable[[], bool]) -> Iterator[EntityRecord]:
    with tempfile.TemporaryDirectory(prefix="mvserver-print-") as folder:
        try:
            path = files.fetch(file, Path(folder), stopped)
        except SqlError as error:
            if error.sqlstate != sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE:  # gone, or another one meanwhile
                raise
            return
        if stopped():  # then it need not be whole
            return
        with suppress(FileNotFoundError), closing(shown(path)) as records:
            for number, value in enumerate(records, start=1):
                yield EntityRecord(None, value, f"{file.name}:{number}", file.mtime_ns // 1_000_000)
