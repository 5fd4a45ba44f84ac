"""The tables of a view's history: what each commit did to the rows that the view shows.

A change is one row: its number, the epoch (the number of the commit that changed the view), the time, the kind, and the
view's columns. A row that is replaced comes twice, as it was (``-U``) and as it is (``+U``). The log stands beside the
state that it belongs to, under a name that begins with that of the state, and goes with it.
"""

from __future__ import annotations

from dataclasses import dataclass

from mvserver.quoting import quoted
from spark_sinks.duckdb.history.epochs import KIND
from spark_sinks.duckdb.layout import NamedText
from spark_sinks.duckdb.names import qualified
from spark_sinks.duckdb.state.state import HISTORY

SCHEMA = """
CREATE SCHEMA IF NOT EXISTS "_changes";
CREATE TABLE IF NOT EXISTS "_ledger".view_histories (
    query_id VARCHAR PRIMARY KEY, view_id VARCHAR NOT NULL, state_table VARCHAR NOT NULL, incarnation VARCHAR NOT NULL,
    first_seq BIGINT NOT NULL, last_seq BIGINT NOT NULL, last_epoch BIGINT NOT NULL, first_size BIGINT NOT NULL,
    last_size BIGINT NOT NULL, since TIMESTAMPTZ NOT NULL, last_at TIMESTAMPTZ NOT NULL);
"""

TOKEN, EPOCH, TIME = "mv_token", "mv_epoch", "mv_time"
CHANGE_COLUMNS: tuple[NamedText, ...] = (
    (TOKEN, "VARCHAR"),
    (EPOCH, "BIGINT"),
    (TIME, "TIMESTAMPTZ"),
    (KIND, "VARCHAR"),
)
"""What comes before a view's own columns where its changes are shown."""


@dataclass(frozen=True)
class LoggedView:
    """A view whose changes are kept. ``columns`` are the user's names and DuckDB types. ``rows`` is a query of the rows
    as the state has them, ``keys`` (by which they are told apart) and then c0, c1 ...; ``changed_rows`` gives those
    whose keys a batch has touched. Without keys a view has one row, or rows that do not replace each other."""

    query_id: str
    view_id: str
    state_table: str
    columns: tuple[NamedText, ...]
    keys: tuple[str, ...]
    rows: str
    changed_rows: str

    @property
    def table(self) -> str:
        return f"{self.state_table}{HISTORY}"

    @property
    def values(self) -> tuple[str, ...]:
        return tuple(f"c{i}" for i in range(len(self.columns)))

    @property
    def shown_as(self) -> str:
        return changes_view(self.view_id)


def changes_view(view_id: str) -> str:
    """The history as a relation: the columns that come before the view's own, and these."""
    return f'"_changes"."{view_id}"'


def create_statements(view: LoggedView, incarnation: str) -> list[str]:
    columns = ", ".join(f"{name} {kind}" for name, (_, kind) in zip(view.values, view.columns, strict=True))
    shown = ", ".join(f"{name} AS {quoted(shown)}" for name, (shown, _) in zip(view.values, view.columns, strict=True))
    token = f"'{incarnation}-' || printf('%x', _seq)"
    return [
        f"CREATE TABLE {qualified(view.table)} (_epoch BIGINT, _seq BIGINT, _at TIMESTAMPTZ, _size BIGINT, "
        f"_op VARCHAR, {columns})",
        f"CREATE OR REPLACE VIEW {view.shown_as} AS SELECT {token} AS {TOKEN}, _epoch AS {EPOCH}, _at AS {TIME}, "
        f"_op AS {KIND}, {shown} FROM {qualified(view.table)} ORDER BY _seq",
        f"INSERT OR REPLACE INTO \"_ledger\".view_histories VALUES ('{view.query_id}', '{view.view_id}', "
        f"'{view.state_table}', '{incarnation}', 1, 0, 0, 0, 0, $1, $1)",
    ]


def drop_statements(query_id: str, view_id: str, state_table: str) -> list[str]:
    return [
        f"DROP VIEW IF EXISTS {changes_view(view_id)}",
        f"DROP TABLE IF EXISTS {qualified(state_table + HISTORY)}",
        f"DELETE FROM \"_ledger\".view_histories WHERE query_id = '{query_id}'",
    ]


def read_statement(view: LoggedView) -> str:
    """The changes behind number $1, at most $2; under the names that readers know."""
    shown = ", ".join(f"{name} AS {quoted(shown)}" for name, (shown, _) in zip(view.values, view.columns, strict=True))
    return (
        f"SELECT _epoch, _seq, _at, _op AS {KIND}, {shown} FROM {qualified(view.table)} "
        "WHERE _seq > $1 ORDER BY _seq LIMIT $2"
    )
