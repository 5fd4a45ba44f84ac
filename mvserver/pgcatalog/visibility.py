"""The rows of the catalog's relations that a role sees: those of objects that it may use, unless it is a superuser.

Each row carries in ``_o`` the oid of the database, schema, relation or store that it tells of, 0 where it tells of
none. Rows of mv_catalog that show content carry in ``_r`` the oid of the relation that one must be allowed to read. A
plan has the visible oids in its text; it is made anew when the catalog changes, and so when anything is granted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mvserver.quoting import constant

FIRST_OWN_OID = 16_384  # of what users make; the system's own objects are everybody's
SEEN, READ = "_o", "_r"
HIDDEN_COLUMNS = ("_db", SEEN, READ)

_SESSIONS = "pg_stat_activity"
_OWN_SESSIONS_ONLY = frozenset(
    {
        "application_name", "client_addr", "client_hostname", "client_port", "backend_start", "xact_start",
        "query_start", "state_change", "wait_event_type", "wait_event", "state", "backend_xid", "backend_xmin",
        "query_id",
    }
)  # fmt: skip


TELLING = frozenset(
    {
        "rows", "bytes", "late_rows", "changes", "oldest_token", "latest_token", "oldest_at", "last_change_at", "epoch",
        "rows_in", "rows_in_per_second", "rejected", "position", "latest_position", "lag_records", "rows_done",
        "rows_total", "share", "filled_share", "seconds_left", "watermark", "lane_reason", "error", "note",
    }
)  # fmt: skip
"""Columns of mv_catalog that tell how many rows a view or its source has or had, when one changed, or of a value."""


@dataclass(frozen=True)
class Viewer:
    """``seen`` and ``read`` are oids; ``known`` are those seen and what belongs to them (indexes, row types); ``roles``
    are the names of the roles that the viewer is or is a member of. Of ``secured`` relations policies hide rows from
    the viewer, and so what tells of them."""

    seen: frozenset[int]
    read: frozenset[int]
    known: frozenset[int]
    roles: frozenset[str]
    secured: frozenset[int] = frozenset()

    def untold(self, columns: Iterable[str]) -> str:
        """The part of a SELECT * that leaves out what tells of rows that are hidden; empty where none are."""
        telling = [f'"{column}"' for column in columns if column in TELLING]
        if not telling or not self.secured:
            return ""
        hidden = f"{SEEN} IN ({_list(self.secured)})"
        return f" REPLACE ({', '.join(f'CASE WHEN {hidden} THEN NULL ELSE {each} END AS {each}' for each in telling)})"

    def condition(self, columns: Iterable[str]) -> str | None:
        """Of a WHERE clause over a relation that has these columns."""
        tests = [
            f"{column} IN ({_list(oids)})"
            for column, oids in ((SEEN, self.seen), (READ, self.read))
            if column in columns
        ]
        return " AND ".join(tests) or None

    def column(self, relation: str, column: str) -> str:
        """What a SELECT of the column says: of others' sessions only that they are there."""
        quoted = f'"{column}"'
        if relation != _SESSIONS or (column != "query" and column not in _OWN_SESSIONS_ONLY):
            return quoted
        own = ", ".join(map(constant, sorted(self.roles))) or "NULL"
        other = "'<insufficient privilege>'" if column == "query" else "NULL"
        return f"CASE WHEN usename IN ({own}) THEN {quoted} ELSE {other} END"

    def known_oids(self) -> str:
        """As one text, with commas."""
        return _joined(self.known)


def _list(oids: frozenset[int]) -> str:
    return f"SELECT CAST(unnest(string_split('{_joined(oids)}', ',')) AS UINTEGER)"


def _joined(oids: frozenset[int]) -> str:
    """One literal, however many they are: it is read at once, where a list of numbers is read one by one."""
    return ",".join(map(str, (0, *sorted(oids))))
