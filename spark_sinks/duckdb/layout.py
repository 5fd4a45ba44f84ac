"""The layout of a view in DuckDB: its tables, and how its columns are finished from them.

A layout is derived from the view's plan whenever the view is made or taken up again, so a file of an older server needs
nothing more. The writer makes the view from it; whoever reads past the view asks :class:`ViewLayouts`.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass

from spark_sinks.duckdb.names import qualified_view

NamedText = tuple[str, str]
"""A column's name and its SQL text: an expression, or a type."""


@dataclass(frozen=True)
class Finishing:
    """The user's columns as expressions, in two steps: ``columns`` are over the names of ``inner``, which are over the
    columns of the state table. Each row of the state table and the NULL-key table gives one row of the view."""

    columns: tuple[NamedText, ...]
    inner: tuple[NamedText, ...]


@dataclass(frozen=True)
class ViewLayout:
    """A view's tables by their names in the schema ``_state``. All of these names begin with that of ``table``.

    ``query`` gives the view's rows. ``finishing`` is None where a row of the view is more than a row of the state:
    there is a HAVING, a value table to be read, or a watermark.
    """

    view_id: str
    table: str
    stored: tuple[NamedText, ...]  # the columns of ``table`` and their DuckDB types, in order
    keys: tuple[str, ...]  # those that are its key
    query: str
    finishing: Finishing | None = None
    nulls: str | None = None  # the table of the rows whose key holds a NULL
    values: tuple[str, ...] = ()  # tables of counted values
    rows: str | None = None  # the table of what each row of a changelog contributes
    settled: str | None = None  # the table of the contributions that do not change any more
    outbox: str | None = None  # the table of the rows that wait to be sent
    reads: frozenset[str] = frozenset()  # the tables that ``query`` reads
    by_state_alone: bool = True  # False: a watermark, too, decides which rows are seen
    zoned: bool = False  # an instant is stored, whose text depends on a session's time zone

    @property
    def tables(self) -> tuple[str, ...]:
        """All that the view has in DuckDB."""
        single = (self.nulls, *self.values, self.rows, self.settled, self.outbox)
        return tuple(dict.fromkeys((self.table, *filter(None, single))))

    @property
    def statement(self) -> str:
        """CREATE VIEW of the user's columns over the state."""
        return f"CREATE OR REPLACE VIEW {qualified_view(self.view_id)} AS {self.query}"


class ViewLayouts:
    """The layouts of all views, as of the last commit. The writer changes them; any thread may ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, ViewLayout] = {}

    def of(self, view_id: str) -> ViewLayout | None:
        return self._known.get(view_id)

    def change(self, changes: Mapping[str, ViewLayout | None]) -> None:
        """By view id; None for a view that has been dropped."""
        with self._lock:
            known = {**self._known, **changes}
            self._known = {view_id: layout for view_id, layout in known.items() if layout is not None}
