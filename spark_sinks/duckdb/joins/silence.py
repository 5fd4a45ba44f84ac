"""Partitions of a join's sources that are *silent*: nothing has come from them yet, or not for their side's time-out.

What is about to come from a silent partition may belong before what the partitions beside it have shown. So it still
holds its side back, but not for ever: where the others have come to (``awaited``) is where it ``stands``, too, as soon
as it is known that it had nothing some time later. Its own records are still timed by its own mark.

A side of which all partitions are silent for its time-out is *idle* until it shows a record again. In a join with a
changelog it holds nothing back then. In a join of streams it follows the other side: it stands where that one had come
to before a moment when it still had nothing.

Time is counted up to a moment of which all that the source had then is read: what lies unread is never silence.
"""

from __future__ import annotations

from mvserver.limits import JOIN_SILENCE_MS
from spark_sinks.duckdb.changes.logs import NEVER
from spark_sinks.duckdb.joins.join_sides import JoinTables, await_statement, qualified_marks, side_of


def present_statements(join: JoinTables, index: int) -> list[str]:
    """Before the rows of a batch: the source has the partitions $1. A new one stands where the side does."""
    marks = qualified_marks(join)
    known = f"SELECT part FROM {marks} WHERE side = {index}"
    stands = f"SELECT min(coalesce(stands, mark)) FROM {marks} WHERE side = {index} AND part <> ''"
    return [
        f"INSERT INTO {marks} SELECT {index}, part, {NEVER}, now(), false, coalesce(({stands}), {NEVER}), {NEVER} "
        f"FROM unnest($1::VARCHAR[]) AS present(part) WHERE part NOT IN ({known})",
        f"DELETE FROM {marks} WHERE side = {index} AND part = '' AND len($1::VARCHAR[]) > 0",
    ]


def gone_statement(join: JoinTables, index: int) -> str:
    """Behind the rows of a batch: partitions that are not among $1 have ended, and hold nobody back. Where all have,
    those that go on for them are not told yet, and will stand where these do."""
    gone = "part <> '' AND len($1::VARCHAR[]) > 0 AND NOT list_contains($1::VARCHAR[], part)"
    return f"DELETE FROM {qualified_marks(join)} WHERE side = {index} AND {gone}"


def is_due(join: JoinTables, index: int, confirmed_at: float) -> str:
    """Query whether :func:`statements` would change anything."""
    conditions = [_still_silent(join, index, confirmed_at)]
    if side_of(join, index).idle_us is not None:
        conditions += [_falls_silent(join, index, confirmed_at), _idle(join, index, confirmed_at)]
    either = " OR ".join(f"({condition})" for condition in conditions)
    return f"SELECT count(*) > 0 FROM {qualified_marks(join)} WHERE side = {index} AND ({either})"


def statements(join: JoinTables, index: int, confirmed_at: float) -> list[str]:
    """What time decides of a side; ``confirmed_at`` is a moment of which all that the source had then is read."""
    update, of_side = f"UPDATE {qualified_marks(join)} SET", f"WHERE side = {index} AND"
    found = []
    if side_of(join, index).idle_us is not None:
        found += [
            f"{update} stands = mark, awaited = mark {of_side} {_falls_silent(join, index, confirmed_at)}",
            f"{update} idle = true {of_side} {_idle(join, index, confirmed_at)}",
        ]
    return [
        *found,
        f"{update} stands = awaited {of_side} {_still_silent(join, index, confirmed_at)}",
        await_statement(join, index),
    ]


def _falls_silent(join: JoinTables, index: int, confirmed_at: float) -> str:
    return f"stands IS NULL AND seen_at <= {_before(confirmed_at, side_of(join, index).idle_us)}"


def _idle(join: JoinTables, index: int, confirmed_at: float) -> str:
    last = f"(SELECT max(seen_at) FROM {qualified_marks(join)} WHERE side = {index})"
    return f"NOT idle AND {last} <= {_before(confirmed_at, side_of(join, index).idle_us)}"


def _still_silent(join: JoinTables, index: int, confirmed_at: float) -> str:
    idle_us, most = side_of(join, index).idle_us, JOIN_SILENCE_MS * 1000
    least = most if idle_us is None else min(idle_us, most)
    silent = f"CASE WHEN idle THEN {_before(confirmed_at, 0)} ELSE {_before(confirmed_at, least)} END"
    return f"awaited > stands AND seen_at <= {silent}"


def _before(moment: float, microseconds: int | None) -> str:
    return f"to_timestamp({moment!r}) - to_microseconds({microseconds or 0})"
