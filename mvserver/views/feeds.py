"""A derived scan as it is kept: its tables by name, and what each of its sides evaluates and feeds into them."""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from mvserver import limits
from mvserver.compiler import lower_duckdb
from mvserver.compiler.changelogs import CHANGELOG, over_changelog
from mvserver.compiler.derived import EVENT_TIME, has_marks
from mvserver.compiler.plans import (
    ChangelogJoin,
    Derived,
    GroupJoin,
    Groups,
    GroupsSide,
    IntervalJoin,
    JoinKind,
    JoinSide,
    Scan,
    TemporalJoin,
    UnionAll,
)
from mvserver.views.finishing import group_log, groups_made
from mvserver.views.same_transaction_groups import along
from mvserver.views.targets import Target, target_of, until_closed
from spark_sinks.duckdb.changes.changelog import RetractedState
from spark_sinks.duckdb.changes.group_logs import GroupTables
from spark_sinks.duckdb.changes.logs import Log, low_table
from spark_sinks.duckdb.joins.changelog_joins import ChangelogTables
from spark_sinks.duckdb.joins.group_versions import GroupVersionTables
from spark_sinks.duckdb.joins.interval_joins import IntervalTables
from spark_sinks.duckdb.joins.join_sides import FeedState, JoinTables, Side
from spark_sinks.duckdb.joins.temporal_joins import TemporalTables
from spark_sinks.duckdb.joins.unions import UnionTables
from spark_sinks.duckdb.state.state import JOIN, UpsertState

_LETTERS = string.digits + string.ascii_lowercase  # of the sides of a union, in their order; more than it may have
Tables = IntervalTables | TemporalTables | ChangelogTables | UnionTables | GroupTables


@dataclass(frozen=True)
class Node:
    """One derived scan of a query. ``path`` tells the nodes of a query apart: that of the query's own scan is empty,
    that of a side's scan has the side's letter at its end."""

    scan: Scan
    path: str
    tables: Tables

    @property
    def sides(self) -> Sequence[JoinSide | GroupsSide]:
        assert self.scan.derived is not None  # noqa: S101 - a node has one
        return self.scan.derived.sides

    @property
    def join(self) -> JoinTables | None:
        """Its tables where its sides wait for each other."""
        return self.tables if isinstance(self.tables, IntervalTables | TemporalTables) else None

    def side_path(self, index: int) -> str:
        return _side_path(self.path, index, len(self.sides))

    def side_target(self, query_id: str, view_id: str, index: int) -> Target:
        side_id, plan = feed_id(query_id, self.side_path(index)), self.sides[index].plan
        if isinstance(self.tables, GroupTables):
            target = until_closed(target_of(side_id, view_id, self.tables.state.table, plan))
            return replace(target, group_log=self.tables.group_log)
        return Target(side_id, view_id, plan, FeedState(self.tables, index))


def feed_id(query_id: str, path: str) -> str:
    """What a side is called in the ledger."""
    return f"{query_id}/{path}"


def _side_path(path: str, index: int, sides: int) -> str:
    return f"{path}{('lr' if sides <= len('lr') else _LETTERS)[index]}"


def query_of(subscriber_id: str) -> str:
    """The query that a subscriber of the ledger is, or is a side of."""
    return subscriber_id.split("/", 1)[0]


def nodes(target: Target, state_table: str, reader_id: str, path: str = "") -> Iterator[Node]:
    """The derived scans below a query, the query's own first; ``target`` is the query, or a side that is over one.
    ``reader_id`` is the beginning of the names of the pipelines that read their logs."""
    scan = target.plan.scan
    if scan.derived is None:
        return
    query_id, sides = query_of(target.query_id), len(scan.derived.sides)
    side_ids = [feed_id(query_id, _side_path(path, index, sides)) for index in range(sides)]
    tables = _tables(target, scan.derived, side_ids, f"{state_table}{JOIN}{path}", log_pipeline(reader_id, path))
    node = Node(scan, path, tables)
    yield node
    for index in range(len(node.sides)):
        side = node.side_target(query_of(target.query_id), target.view_id, index)
        yield from nodes(side, state_table, reader_id, node.side_path(index))


def log_pipeline(reader_id: str, path: str) -> str:
    return f"{reader_id}{path}"


def _tables(target: Target, join: Derived, side_ids: Sequence[str], table: str, reader: str) -> Tables:
    scan = target.plan.scan
    types = tuple(lower_duckdb.duckdb_type(column.type) for column in scan.columns)
    keys = len(scan.primary_key) if scan.kind == CHANGELOG else None
    marked = has_marks(scan)
    log = Log(_log_table(table), types, reader, keys, marked=marked)
    if isinstance(join, Groups):
        inner = until_closed(target_of(side_ids[0], "", f"{table}_groups", join.plan))
        assert isinstance(inner.state, UpsertState | RetractedState)  # noqa: S101 - of an aggregation
        return GroupTables(inner.state, replace(group_log(inner, log, join.window_end), along=along(target)))
    if isinstance(join, UnionAll):
        sides = [_side(join, table, i, str(i), preserved=False) for i in range(len(join.sides))]
        known = [replace(side, watched=own) for side, own in zip(sides, side_ids, strict=True)] if marked else sides
        return UnionTables(tuple(known), log)
    left = _side(join, table, 0, "left", preserved=join.kind is not JoinKind.INNER)
    right = _side(join, table, 1, "right", preserved=join.kind is JoinKind.FULL)
    marks, residual = f"{table}_marks", _residual(join)
    if isinstance(join, IntervalJoin):
        return IntervalTables(left, right, marks, log, join.within_us, residual)
    if isinstance(join, ChangelogJoin):
        places = {name: place for place, name in enumerate([*(o.name for o in join.outputs), EVENT_TIME])}
        given = tuple(places[column.name] for column in scan.columns)
        left, right = _keeping_rows(left, join.left), _keeping_rows(right, join.right)
        return ChangelogTables(left, right, log, given, residual)
    if isinstance(join, GroupJoin):
        right = replace(right, types=tuple(lower_duckdb.duckdb_type(output.type) for output in join.groups.outputs))
    if not join.by_key or (over_changelog(join.right.plan) and isinstance(join, GroupJoin)):
        right = replace(right, primary_types=_primary_types(join.right))
    if right.idle_us is None:
        right = replace(right, idle_us=limits.TEMPORAL_JOIN_IDLE_MS * 1000)
    if marked and not isinstance(target.state, FeedState):  # under a window, whose watermark waits for all partitions
        left = replace(left, watched=side_ids[0])
    kept_us = limits.TEMPORAL_JOIN_KEPT_MS * 1000
    if isinstance(join, GroupJoin):
        return GroupVersionTables(left, right, marks, log, kept_us, residual, made=groups_made(join))
    return TemporalTables(left, right, marks, log, kept_us, residual)


def _side(
    join: IntervalJoin | TemporalJoin | ChangelogJoin | UnionAll, table: str, index: int, name: str, *, preserved: bool
) -> Side:
    """``table`` is what the names of the join's tables begin with, ``name`` what its own one ends with."""
    side = join.sides[index]
    scan = side.scan
    return Side(
        table=f"{table}_{name}",
        key_types=tuple(lower_duckdb.duckdb_type(key.type) for key in side.keys),
        types=tuple(lower_duckdb.duckdb_type(output.type) for output in side.outputs),
        preserved=preserved,
        delay_us=scan.watermark_delay_ms * 1000,
        idle_us=None if scan.idle_timeout_ms is None else scan.idle_timeout_ms * 1000,
        low=low_table(_log_table(_side_path(table, index, len(join.sides)))) if has_marks(scan) else None,
    )


def _log_table(table: str) -> str:
    return f"{table}_log"


def _keeping_rows(side: Side, join_side: JoinSide) -> Side:
    """The side of a join that does not ask for times: it has its current rows."""
    return replace(side, primary_types=_primary_types(join_side), idle_us=None)


def _primary_types(side: JoinSide) -> tuple[str, ...]:
    types = {column.name: column.type for column in side.scan.columns}
    return tuple(lower_duckdb.duckdb_type(types[name]) for name in side.scan.primary_key)


def _residual(join: IntervalJoin | TemporalJoin | ChangelogJoin) -> str | None:
    if join.residual is None:
        return None
    lefts = len(join.left.outputs)

    def column(index: int) -> str:
        return f"\0l.v{index}" if index < lefts else f"\0r.v{index - lefts}"

    text = lower_duckdb.lower(join.numbered(join.residual), column, str)
    return text.replace("{", "{{").replace("}", "}}").replace("\0l", "{l}").replace("\0r", "{r}")
