"""The timelines of a server's log: which former ones its log comes from, and where each of them was left.

A server that is promoted or restored begins a new timeline. Its log has all that the former one had up to the place
where it was left, and nothing of what that one has behind it.
"""

from __future__ import annotations

from collections.abc import Mapping

from spark_sinks.postgresql.connections import Connection
from spark_sinks.postgresql.positions import lsn_of

FIRST = 1  # the timeline of a server that was never promoted nor restored


def former(connection: Connection, timeline: int) -> Mapping[int, int]:
    """The former timelines of one, with the LSN at which each was left. The connection is one for replication."""
    if timeline == FIRST:
        return {}
    result = connection.execute(f"TIMELINE_HISTORY {timeline}").pgresult
    assert result is not None  # noqa: S101 - the command answers with one row
    return parsed(result.get_value(0, 1) or b"")  # bytes as they are in the file, whatever their type is declared


def parsed(history: bytes) -> Mapping[int, int]:
    """The file has a line for each former timeline: its number, the LSN, and why it was left."""
    found: dict[int, int] = {}
    for line in history.splitlines():
        number, _, rest = line.strip().partition(b"\t")
        if number and not number.startswith(b"#"):
            found[int(number)] = lsn_of(rest.split()[0].decode())
    return found
