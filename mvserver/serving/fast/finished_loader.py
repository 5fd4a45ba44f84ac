"""Reads rows of views out of DuckDB to be kept finished: all of a view, and again those whose keys have changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import pyarrow as pa

from mvserver.dialect.typing import duck_types
from mvserver.quoting import quoted
from mvserver.serving.engine.database import VIEW_SCHEMA, Database
from mvserver.serving.fast import few_rows
from mvserver.serving.fast.direct import finished_columns
from mvserver.serving.fast.finished_view import Budget, FinishedView, Row
from mvserver.serving.fast.past_rows import PastRows
from spark_sinks.duckdb.changes.change_outbox import GONE, OLD_OF_UPDATE
from spark_sinks.duckdb.changes.changes import Change, RowsNow, ShownChanges
from spark_sinks.duckdb.history.log import rows_before_statement
from spark_sinks.duckdb.layout import ViewLayout, ViewLayouts

_PIECE_ROWS = 500  # made into Python's values at a time: other threads wait for so long
_ROW_BYTES_MIN = 150
_KEY_TYPES: dict[str, type] = {
    "TINYINT": int, "SMALLINT": int, "INTEGER": int, "BIGINT": int, "HUGEINT": int, "VARCHAR": str,
}  # fmt: skip
_ARROW_KEYS = _KEY_TYPES.keys() - {"HUGEINT"}
_CHANGED = "mv_finished_keys"


class CannotBeKept(Exception):  # noqa: N818 - a finding
    """The view is too large, or is not of the kind whose rows can be kept."""


@dataclass(frozen=True)
class Source:
    """A view that can be kept: ``columns`` and Arrow's ``types`` begin with its key; ``tables`` are its state's.

    ``told`` has the columns over those of the state's first table; None where a row is more than a row of that."""

    view_id: str
    columns: tuple[str, ...]
    types: tuple[Any, ...]
    key_types: tuple[type, ...]
    tables: frozenset[str]
    zoned: bool  # its columns may depend on the session's time zone
    told: str | None = None

    def is_of(self, changed: Change) -> bool:
        """Not keys of what has given several rows, nor rows that were asked for otherwise."""
        if isinstance(changed, RowsNow):
            return changed.columns == self.told
        keys = (changed,) if isinstance(changed, pa.Table) else changed.keys
        return all(each.num_columns == len(self.key_types) for each in keys)

    def rows_now(self, changes: Sequence[Change], before: Mapping[Any, Row]) -> dict[Any, Row | None] | None:
        """What the rows are now that have changed, by their keys, None of one that is gone. None where they were not
        told: so it may be where a number of a row that was there ``before`` goes from 0 to -0, which are equal."""
        key_of, found = itemgetter(*range(len(self.key_types))), dict[Any, Row | None]()
        for each in changes:
            if isinstance(each, RowsNow):
                found.update((key_of(row), row) for row in each.rows)
                continue
            if isinstance(each, pa.Table) or not set(self.columns) <= set(each.names):
                return None
            columns = [f"c{each.names.index(name)}" for name in self.columns]
            for table in each.tables:
                shown = table.select(columns)
                if tuple(shown.schema.types) != self.types:
                    return None
                for op, row in zip(table.column("op").to_pylist(), _rows(shown), strict=True):
                    if op != OLD_OF_UPDATE:
                        found[key_of(row)] = None if op == GONE else row
            if floats := [at for at, kind in enumerate(self.types) if pa.types.is_floating(kind)]:
                untold = {key_of(row) for table in each.keys for row in _rows(table)} - found.keys()
                if any(row[at] == 0 for row in map(before.get, untold) if row is not None for at in floats):
                    return None
        return found

    def keys_of(self, changed: Change) -> Sequence[pa.Table]:
        """As tables (g0 ...)."""
        if isinstance(changed, pa.Table):
            return (changed,)
        if isinstance(changed, ShownChanges):
            return changed.keys
        width = len(self.key_types)
        columns = zip(*(row[:width] for row in changed.rows), strict=True) if changed.rows else [()] * width
        arrays = [pa.array(column, kind) for column, kind in zip(columns, self.types[:width], strict=True)]
        return (pa.table(arrays, names=[f"g{at}" for at in range(width)]),)


def _rows(table: pa.Table) -> Iterator[Row]:
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


class Loader:
    """For one thread. ``settings`` are those of a cursor that answers pull queries."""

    def __init__(self, database: Database, layouts: ViewLayouts, settings: Sequence[str]) -> None:
        self._database = database.name
        self._layouts = layouts
        self._cursor = database.cursor()
        for setting in settings:
            self._cursor.execute(setting)

    def close(self) -> None:
        self._cursor.interrupt()
        self._cursor.close()

    # --- what there is to keep ----------------------------------------------------------------------------------------
    def source(self, view_id: str, key: Sequence[str]) -> Source:
        """CannotBeKept where its rows are of more than its state, or its key is of other types."""
        layout = self._layouts.of(view_id)
        if layout is None or not layout.by_state_alone:
            raise CannotBeKept("what it shows depends on more than its state, such as a watermark")
        found = {str(name): str(kind) for name, kind, *_ in self._all(f"DESCRIBE {self._view(view_id)}")}
        if not all(found.get(name) in _KEY_TYPES for name in key):
            raise CannotBeKept("its key is of other types")
        columns = [name for name in (*key, *(name for name in found if name not in key)) if _is_plain(found[name])]
        return Source(
            view_id,
            tuple(columns),
            tuple(duck_types.arrow_type(found[name]) for name in columns),
            tuple(_KEY_TYPES[found[name]] for name in key),
            layout.reads,
            layout.zoned,
            _told(layout, columns) if all(found[name] in _ARROW_KEYS for name in key) else None,
        )

    # --- its rows -----------------------------------------------------------------------------------------------------
    def load(self, source: Source, budget: Budget, stopped: Callable[[], bool]) -> FinishedView:
        """All of them, of one committed state."""
        ((count,),) = self._all(f"SELECT count(*) FROM {self._view(source.view_id)}")
        if count * _ROW_BYTES_MIN > budget.most - budget.taken:
            raise CannotBeKept(f"{count} rows do not fit into {budget.most - budget.taken} bytes")
        view = FinishedView(source.columns, source.types, source.key_types, budget)
        try:
            order = ", ".join(quoted(name) for name in source.columns[: len(source.key_types)])
            self._cursor.execute(f"{self._select(source)} ORDER BY {order}")
            while piece := self._cursor.fetchmany(_PIECE_ROWS):
                if stopped() or not view.add(piece):
                    raise CannotBeKept("it was let go while it was read, or does not fit")
        except BaseException:
            view.give_up()
            raise
        finally:
            self._cursor.abort()
        return view

    def follow(self, source: Source, past: PastRows, stopped: Callable[[], bool]) -> bool:
        """What the history has behind the changes that ``past`` has; without those that it keeps no more. False where
        they cannot be used."""
        view = past.history.view
        if not {name for name, _ in view.columns} >= set(source.columns):
            return False  # it has just been made anew
        self._cursor.execute(rows_before_statement(view, self._database, source.columns), [past.last_seq])
        try:
            while piece := self._cursor.fetchmany(_PIECE_ROWS):
                if stopped() or not past.add(piece):
                    return False
        finally:
            self._cursor.abort()
        past.trim(past.history.extent.first_seq)
        return True

    def changed(self, source: Source, changes: Sequence[pa.Table]) -> tuple[list[Any], list[Row]]:
        """The keys of these tables (g0 ...), and the rows that they have now."""
        width = len(source.key_types)
        names = [f"g{at}" for at in range(width)]
        keys: list[Any] = []
        for table in changes:
            columns = [table.column(name).to_pylist() for name in names]
            keys += columns[0] if width == 1 else zip(*columns, strict=True)
        same = " AND ".join(
            f"v.{quoted(name)} IS NOT DISTINCT FROM g.g{at}" for at, name in enumerate(source.columns[:width])
        )
        together = pa.concat_tables([table.select(names) for table in changes], promote_options="permissive")
        self._cursor.register(_CHANGED, together)
        try:
            rows = self._all(f"{self._select(source)} SEMI JOIN {_CHANGED} AS g ON {same}")
        finally:
            self._cursor.unregister(_CHANGED)
        return list(set(keys)), rows

    def _select(self, source: Source) -> str:
        columns = ", ".join(f"v.{quoted(name)}" for name in source.columns)
        return f"SELECT {columns} FROM {self._view(source.view_id)} AS v"

    def _view(self, view_id: str) -> str:
        return f'{quoted(self._database)}.{VIEW_SCHEMA}."{view_id}"'

    def _all(self, text: str) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self._cursor.execute(text).fetchall()
        return rows


def _told(layout: ViewLayout, columns: Sequence[str]) -> str | None:
    known = finished_columns(layout)
    return None if known is None else ", ".join(known[name].sql(dialect="duckdb") for name in columns)


def _is_plain(kind: str) -> bool:
    arrow = duck_types.arrow_type(kind)
    return duck_types.output_type(kind).cast is None and arrow is not None and bool(few_rows.plain_types([arrow]))
