"""One transaction of the writer, as data."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from spark_sinks.base import Position
from spark_sinks.duckdb.changes.capture import Keeper
from spark_sinks.duckdb.joins.join_sides import JoinTables
from spark_sinks.duckdb.ledger.ledger import LedgerEntry, RejectedRow
from spark_sinks.duckdb.state import windows
from spark_sinks.duckdb.state.roll_ups import RollUp
from spark_sinks.duckdb.state.state import State, UpsertState, merge_statement
from spark_sinks.duckdb.state.telling import Telling


@dataclass(frozen=True)
class ViewMerge:
    """What one view does with one table of the batch."""

    query_id: str
    state: State
    roll_ups: tuple[RollUp, ...] = ()  # upsert mode; of keys with a NULL, where there are such, the second
    values: tuple[str, ...] = ()  # what takes in the values of each value table of the state, before the roll-ups
    statements: tuple[str, ...] = ()  # of a state that takes rows as they are: they take in all that there is
    added: str | None = None  # query of the rows that a view shows besides, behind these statements
    changes: str | None = None  # query of the last change of each primary key, over a changelog
    keeper: Keeper | None = None  # of what the merge changes
    keys: str | None = None  # query of the group keys of the batch; None: any may change
    judging: windows.Judging | None = None  # over a window: the other statements then read the judged batch

    @cached_property
    def takes_rows_alone(self) -> bool:
        """Whether the merge of its roll-ups is all that it does, and all that its rows depend on."""
        others = (self.values, self.statements, self.added, self.changes, self.judging)
        return isinstance(self.state, UpsertState) and self.state.windowing is None and not any(others)

    @cached_property
    def merge_statements(self) -> tuple[str, ...]:
        """Of the roll-ups; made once for all batches that bring this very object."""
        return tuple(merge_statement(each.state, each.query, nulls=bool(each.nulls)) for each in self.roll_ups)

    @cached_property
    def _told(self) -> dict[tuple[str | None, ...], tuple[str, ...]]:
        return {}

    def statements_for(self, telling: Telling) -> tuple[str, ...]:
        """The same merges, as they are made of these rows in the least time."""
        keys = tuple(map(telling.key, self.roll_ups))
        if not any(keys):
            return self.merge_statements
        known = self._told.get(keys)
        if known is None:
            known = self._told[keys] = tuple(
                merge_statement(each.state, each.query, nulls=bool(each.nulls), told_by=key)
                for each, key in zip(self.roll_ups, keys, strict=True)
            )
        return known


@dataclass(frozen=True)
class TableMerge:
    """An Arrow table as Spark delivered it, and the views that merge from it under the name ``mv_batch``."""

    table: pa.Table
    views: tuple[ViewMerge, ...]
    newest: dt.datetime | None = None  # the time of its newest record


@dataclass(frozen=True)
class Move:
    """These subscribers stand at ``position`` when the transaction commits."""

    query_ids: tuple[str, ...]
    position: Position


@dataclass(frozen=True)
class Advance:
    """The watermark of a windowed view goes where its partitions are; that may show rows, and remove some."""

    standing: windows.Standing
    state: State
    keeper: Keeper | None = None


@dataclass(frozen=True)
class Presence:
    """The partitions that the source of a join's side has at the end of a batch."""

    query_id: str  # of the side
    join: JoinTables
    index: int
    partitions: tuple[str, ...]


@dataclass(frozen=True)
class BatchCommit:
    """Everything of one transaction; ``entry`` is None for a round of a backfill, which moves only its views."""

    entry: LedgerEntry | None
    merges: tuple[TableMerge, ...] = ()
    rejected: tuple[RejectedRow, ...] = ()
    moves: tuple[Move, ...] = ()
    failures: tuple[tuple[str, str], ...] = field(default=())  # (query id, error text): recorded with the batch
    advances: tuple[Advance, ...] = ()  # of the windowed views that move
    presences: tuple[Presence, ...] = ()  # of the sides whose sources have other partitions than they had

    @property
    def changed(self) -> set[str] | None:
        """The queries whose rows it may change; None where one of them hands its changes on to others."""
        parts = [(view.query_id, view.keeper) for merge in self.merges for view in merge.views]
        parts += [(advance.standing.query_id, advance.keeper) for advance in self.advances]
        return {query_id for query_id, _ in parts} if all(keeper is None for _, keeper in parts) else None
