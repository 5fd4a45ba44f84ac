"""The changes of a merge to the rows that a query shows, for an outbox or a change log.

The rows of the keys that a batch touches are read before and after the merge, in its transaction; who keeps the
difference finds both under the names BEFORE and AFTER.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import duckdb
import pyarrow as pa

from spark_sinks.duckdb.changes.changelog import CHANGES, ChangelogState, KeyedRows, Register, merge_changes
from spark_sinks.duckdb.names import qualified
from spark_sinks.duckdb.state.state import State, UpsertState, source_text
from spark_sinks.duckdb.state.windows import Passage, turning
from spark_sinks.duckdb.statements import table_of

CHANGED_KEYS, BEFORE, AFTER = "mv_changed_keys", "mv_before", "mv_after"


class Keeper(Protocol):
    """Keeps what a merge did. ``others`` are states that it changes besides its own tables."""

    @property
    def others(self) -> Sequence[State]: ...

    def shown(self, *, changed_only: bool) -> str:
        """Query of the rows that the query shows, all or those whose keys are among CHANGED_KEYS (g0 ...)."""

    def keep(self, cursor: duckdb.DuckDBPyConnection, register: Register, newest: dt.datetime | None) -> None:
        """``newest``: the time of the batch's newest record."""


def take_changes(
    cursor: duckdb.DuckDBPyConnection,
    register: Register,
    state: ChangelogState,
    query: str,
    keeper: Keeper | None,
    newest: dt.datetime | None,
    note: Callable[[pa.Table | str | None], None] = lambda keys: None,
) -> None:
    """Merges the last changes of a changelog, the rows of ``query``, and has that kept which they do to the rows.
    ``note`` is given the keys of these rows, or a query of them, before they are merged; None where they are not
    known."""
    changes = table_of(cursor, query)
    if changes.num_rows == 0:
        return
    register(CHANGES, changes)
    keys = _changed_keys(state, changes)
    note(keys)
    merge = partial(merge_changes, cursor, register, state, changes)
    if keeper is None:
        merge()
    else:
        capture(cursor, register, keeper, keys, merge, newest)


def _changed_keys(state: ChangelogState, changes: pa.Table) -> pa.Table | str | None:
    """The keys (g0 ...), or a query of them, whose rows CHANGES may change, before they are merged; None: they are not
    known. Where a source row gives several rows, the source's keys: all of its rows may change."""
    if isinstance(state, KeyedRows):
        names = list(state.source_keys)
        return changes.select(names).rename_columns([f"g{i}" for i in range(len(names))]) if names else None
    if not state.group_columns:
        return None
    same = " AND ".join(f"r.{key} = c.{key}" for key in state.rows.source_identity)
    keys = as_g(state.group_columns)
    old = f"(SELECT r.* FROM {qualified(state.rows.table)} AS r SEMI JOIN {CHANGES} AS c ON {same})"
    return f"SELECT {keys} FROM {state.grouped(CHANGES)} WHERE passes UNION SELECT {keys} FROM {state.grouped(old)}"


def shows_closed(state: State) -> bool:
    """Whether only closed windows are shown: no merge changes what is shown then, since they take no more records."""
    return isinstance(state, UpsertState) and state.windowing is not None and state.windowing.final


def turned_keys(state: State, passage: Passage) -> str | None:
    """Query of the keys (g0 ...) whose rows a watermark shows or hides; None where it does neither."""
    if not isinstance(state, UpsertState) or state.windowing is None:
        return None
    if not state.windowing.final and not state.windowing.latest:
        return None
    return f"SELECT {as_g(state.identity)} FROM {source_text(state)} WHERE {turning(state.windowing, passage)}"


def capture(
    cursor: duckdb.DuckDBPyConnection,
    register: Register,
    keeper: Keeper,
    changed: pa.Table | str | None,
    merge: Callable[[], None],
    newest: dt.datetime | None = None,
) -> None:
    """Merges, and has that kept which it did to the rows."""
    if changed is not None:
        register(CHANGED_KEYS, table_of(cursor, changed) if isinstance(changed, str) else changed)
    shown = keeper.shown(changed_only=changed is not None)
    before = table_of(cursor, shown)
    merge()
    register(BEFORE, before)
    register(AFTER, table_of(cursor, shown))
    keeper.keep(cursor, register, newest)


def as_g(names: Sequence[str]) -> str:
    """Keys under the names that CHANGED_KEYS has for them."""
    return ", ".join(f"{name} AS g{i}" for i, name in enumerate(names))
