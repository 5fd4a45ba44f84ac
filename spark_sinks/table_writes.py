"""A sink of rows that tries a commit again before it gives up.

Whether a commit that failed was made all the same is not known: the reply may have been lost. So each new attempt
opens the sink anew, and asks it first.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable

import pyarrow as pa

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.base import Position, TableSink
from spark_sinks.table_options import TableOptions

_log = logging.getLogger(__name__)
_AGAIN = ("08", "40", "53", "57", "58")  # classes: the store is away, is changed by others, has no room, ends, fails
_BACKOFF_MOST_S = 10.0
_LOOK_S = 0.1


class RetriedTable:
    """A :class:`spark_sinks.base.TableSink`. ``stopped`` ends the waits between attempts."""

    def __init__(self, open_sink: Callable[[], TableSink], options: TableOptions, stopped: Callable[[], bool]) -> None:
        self._open_sink = open_sink
        self._options = options
        self._stopped = stopped
        self._sink = open_sink()
        self._written: Position | None = None

    def committed_position(self, *, expected: bool = False) -> Position | None:
        self._written = self._sink.committed_position(expected=expected)
        return self._written

    def renew(self, position: Position) -> None:
        self._sink.renew(position)

    def write(self, rows: pa.Table, gone: pa.Table, position: Position) -> None:
        for attempt in range(1, self._options.retry_attempts + 1):
            try:
                if attempt == 1 or not self._is_written(position):
                    self._sink.write(rows, gone, position)
                self._written = position
                return
            except SqlError as error:
                if error.sqlstate[:2] not in _AGAIN or attempt == self._options.retry_attempts or self._stopped():
                    raise
                _log.info("a commit of %s rows is tried again: %s", rows.num_rows + gone.num_rows, error)
            self._rest(min(self._options.retry_backoff_s * 2 ** (attempt - 1), _BACKOFF_MOST_S))

    def _is_written(self, position: Position) -> bool:
        """Whether the attempt before has come to be in spite of its error."""
        self._sink.close()
        self._sink = self._open_sink()
        found = self._sink.committed_position()
        if same_position(found, position):
            return True
        if not same_position(found, self._written):
            raise another_writer()
        return False

    def _rest(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self._stopped() and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, _LOOK_S))

    def close(self) -> None:
        self._sink.close()


def same_position(one: Position | None, other: Position | None) -> bool:
    """As the store gives them back: they are kept as JSON."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def another_writer() -> SqlError:
    """What has to begin anew where the table stands now."""
    return SqlError(
        sqlstates.SERIALIZATION_FAILURE,
        "something else has written to the table for this query",
        detail="Another server may run over a copy of this one's data directory.",
    )
