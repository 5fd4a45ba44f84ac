"""Pipelines below a query whose scan is derived: one over each log, and the sides that feed the logs.

A side is a subscriber of its own source's pipeline like any view. Its rows, the pairs that they make and its progress
are committed in one transaction, and the log's pipeline takes it from there. Query and sides go together: where one
of them has failed or is terminated, none reads on.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from catalog.model import Query
from mvserver import limits, moments
from mvserver.compiler.plans import Scan
from mvserver.streaming.api import QueryState, QueryStatus
from mvserver.streaming.pipeline.pipeline import Pipeline, PipelineServices
from mvserver.streaming.pipeline.subscribers import Subscriber
from mvserver.streaming.queries.outputs import Outlet, OutputSubscriber, known_subscriber
from mvserver.streaming.queries.start_positions import is_rebuilding, sources_of
from mvserver.streaming.queries.status import lag_of, rows_in_of, shown
from mvserver.streaming.spark.types import spark_schema
from mvserver.views.feeds import Node, log_pipeline, nodes
from mvserver.views.finishing import layout_of
from mvserver.views.targets import Target
from spark_sinks.base import Position
from spark_sinks.duckdb.changes.group_logs import GroupTables
from spark_sinks.duckdb.changes.log_reader import LogReader
from spark_sinks.duckdb.changes.sent_rows import SentRows
from spark_sinks.duckdb.joins import join_sides, silence
from spark_sinks.duckdb.ledger.ledger import SubscriberRow
from spark_sinks.duckdb.names import state_name
from spark_sinks.duckdb.writer import MergeError

_NAMESPACE = uuid.UUID("0b6a4a5e-6f0d-4f55-8b3c-7f6a52f0c1d9")  # of the ids of pipelines over logs
_BEGINNING: Position = {"seq": 0}

SourcePipeline = Callable[[Scan], tuple[Pipeline, bool]]
"""The pipeline of a stored relation's scan, and whether nothing has been read by it yet."""


@dataclass
class Feed:
    """A side that runs."""

    node: Node
    index: int
    pipeline: Pipeline
    subscriber: Subscriber


@dataclass
class DerivedSource:
    """All below one query. The first reader and pipeline are those of the query's own scan."""

    readers: list[LogReader] = field(default_factory=list)
    pipelines: list[Pipeline] = field(default_factory=list)
    feeds: list[Feed] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    _clock_set_by: dict[str, float] = field(default_factory=dict)  # when each node was looked at, by its path

    @property
    def tables(self) -> tuple[str, ...]:
        return tuple(table for node in self.nodes for table in node.tables.tables)

    def feeds_of(self, path: str) -> list[Feed]:
        return [feed for feed in self.feeds if feed.node.path == path]

    def complete(self, path: str) -> bool:
        """Whether what feeds the log of a node has been read once up to its end."""
        feeds = self.feeds_of(path)
        return bool(feeds) and all(feed.subscriber.filled for feed in feeds)

    def rows_committed(self, query_ids: Sequence[str]) -> None:
        """Sides may have appended to logs."""
        changed = {feed.node.path for feed in self.feeds if feed.subscriber.query_id in query_ids}
        for node, reader, pipeline in zip(self.nodes, self.readers, self.pipelines, strict=True):
            if node.path in changed:
                reader.notify()
                if pipeline.latest is None and self.complete(node.path):
                    pipeline.ask_end()

    def clock_was_set(self, path: str) -> bool:
        """Whether the system's clock was put forward or back since the last look at a node."""
        now = moments.clock_set_by()
        return abs(now - self._clock_set_by.setdefault(path, now)) > limits.CLOCK_STEP_S

    def clock_is_known(self, path: str) -> None:
        """What was to be done about that is done."""
        self._clock_set_by[path] = moments.clock_set_by()

    def takes_along(self, query_ids: Sequence[str]) -> bool:
        """Whether the query itself has changed with its sides: in their transactions, without a batch of its own."""
        root = self.nodes[0].tables
        if not isinstance(root, GroupTables) or root.group_log.along is None:
            return False
        return any(feed.subscriber.query_id in query_ids for feed in self.feeds_of(""))

    @property
    def leaves(self) -> list[Feed]:
        """The sides that read stored relations."""
        return [feed for feed in self.feeds if feed.pipeline not in self.pipelines]

    @property
    def inner(self) -> list[Feed]:
        """The sides that read what other joins of the query make, the innermost first."""
        return sorted(
            (feed for feed in self.feeds if feed.pipeline in self.pipelines), key=lambda feed: -len(feed.node.path)
        )

    def ask_remaining(self, start_position: str) -> None:
        """Raises what keeps a source from saying what it still has of what the query begins with."""
        for feed, start in zip(self.leaves, sources_of(start_position), strict=True):
            reader = feed.pipeline.reader
            reader.health.remaining(reader.adopt(start, fresh=False))

    def confirmed_at(self, query: Subscriber) -> float | None:
        """The latest moment of which the query is known to have all that its sources had."""
        moments = [feed.pipeline.confirmed_at(feed.subscriber) for feed in self.leaves]
        known = [moment for moment in moments if moment is not None]
        readers = {pipeline.id: reader for pipeline, reader in zip(self.pipelines, self.readers, strict=True)}
        through = [(readers[feed.pipeline.id], feed.subscriber) for feed in self.inner]
        through.append((self.readers[0], query))
        if len(known) == len(moments) and all(r.positions.reached(s.position, r.end()) for r, s in through):
            query.last_confirmed_at = max(query.last_confirmed_at or 0.0, min(known))
        return query.last_confirmed_at

    def status(self, own: QueryStatus, query: Subscriber) -> QueryStatus:
        """The whole query's, given that of what reads the last log."""
        lags = [own.lag_records, *(lag_of(feed.subscriber, feed.pipeline) for feed in self.feeds)]
        known = [lag for lag in lags if lag is not None]
        lag = sum(known) if len(known) == len(lags) else None
        counts = [rows_in_of(feed.subscriber, feed.pipeline) for feed in self.leaves]
        counted = [count for count in counts if count is not None]
        whole = replace(
            own,
            lag_records=lag,
            rows_in=sum(counted) if len(counted) == len(counts) else None,
            rows_in_per_s=sum(feed.subscriber.rate_in.per_second() for feed in self.leaves),
            rejected=sum(feed.subscriber.rejected for feed in self.leaves),
            last_confirmed_at=shown(self.confirmed_at(query)),
            caught_up=own.caught_up and lag == 0,
            position=_together(feed.subscriber.position for feed in self.leaves),
            latest_position=_together(feed.pipeline.latest or {} for feed in self.leaves),
        )
        failure = next((f.subscriber.failure for f in self.feeds if f.subscriber.failure is not None), None)
        if own.state is QueryState.TERMINATED or own.state is QueryState.FAILED:
            return whole
        if failure is not None:
            return replace(whole, state=QueryState.FAILED, error=failure, caught_up=False)
        causes = (feed.pipeline.stalled_of(feed.subscriber) for feed in self.feeds)
        stalled = next((cause for cause in causes if cause is not None), None)
        if stalled is not None and own.state is not QueryState.STARTING:
            return replace(whole, state=QueryState.STALLED, error=stalled, caught_up=False)
        return whole


class DerivedSources:
    """Makes them. ``pipelines`` is the engine's own, by id."""

    def __init__(
        self, services: PipelineServices, pipelines: dict[str, Pipeline], source_pipeline: SourcePipeline
    ) -> None:
        self._services = services
        self._pipelines = pipelines
        self._source_pipeline = source_pipeline

    def attach(
        self, query: Query, target: Target, rows: Mapping[str, SubscriberRow], *, relay: Outlet | None
    ) -> tuple[DerivedSource, Subscriber]:
        """Takes up a query; what is not in DuckDB is made, whole: in a REFRESH from what the sources still have.
        Nothing runs yet."""
        table = state_name(target.view_id, query.definition_version)
        made = DerivedSource(nodes=list(nodes(target, table, _reader_id(query))))
        for node in made.nodes:
            self._add_log(made, query, node)
        sides = _in_order(
            [
                (node, i, node.side_target(query.id, target.view_id, i))
                for node in made.nodes
                for i in range(len(node.sides))
            ]
        )
        writer, version = self._services.writer, query.definition_version
        targets = [target, *(side for _, _, side in sides)]
        layout = layout_of(target)
        self._upgrade(made)
        whole = writer.has_tables((*layout.tables, *made.tables))
        main: Subscriber
        if whole and all(each.query_id in rows and rows[each.query_id].version == version for each in targets):
            with writer.transaction():
                writer.replace_view(layout)
                for node in made.nodes:
                    for statement in () if node.join is None else join_sides.wake_statements(node.join):
                        writer.execute(statement)
            main = known_subscriber(rows[query.id], target, relay)
            for node, index, side in sides:
                pipeline, _ = self._pipeline(made, node, index)
                made.feeds.append(Feed(node, index, pipeline, known_subscriber(rows[side.query_id], side)))
        else:
            main = self._create(made, query, target, sides, relay=relay)
        group = (main, *(feed.subscriber for feed in made.feeds))
        for subscriber in group:
            subscriber.group = group
        return made, main

    def _upgrade(self, made: DerivedSource) -> None:
        """The tables of joins in a file of before."""
        writer = self._services.writer
        known = set(writer.state_tables())
        statements = [text for n in made.nodes if n.join is not None for text in n.join.upgrade_statements(known)]
        if statements:
            with writer.transaction():
                for statement in statements:
                    writer.execute(statement)

    def _create(
        self,
        made: DerivedSource,
        query: Query,
        target: Target,
        sides: Sequence[tuple[Node, int, Target]],
        *,
        relay: Outlet | None,
    ) -> Subscriber:
        writer, version = self._services.writer, query.definition_version
        starts, rebuilt = iter(sources_of(query.start_position)), is_rebuilding(query.start_position)
        notes: list[str] = []
        for node, index, side in sides:
            pipeline, fresh = self._pipeline(made, node, index)
            position = _BEGINNING
            if node.sides[index].scan.derived is None:
                position = pipeline.reader.adopt(next(starts), fresh=fresh)
                if rebuilt:
                    position, note = pipeline.reader.health.remaining(position)
                    notes += [] if note is None else [note]
            policy = side.plan.scan.error_handling
            # Either new, or its state was lost: then the source must still have all that it was made of.
            subscriber = Subscriber(side, version, position, policy, unverified=not rebuilt)
            made.feeds.append(Feed(node, index, pipeline, subscriber))
        own, note = made.pipelines[0], "; ".join(notes) or None
        kept = None if isinstance(target.state, SentRows) else target.outbox
        with writer.transaction() as ledger:
            writer.drop_state(made.tables, None)
            writer.create_state(target.state, layout_of(target), kept)
            for node in made.nodes:
                for statement in node.tables.create_statements():
                    writer.execute(statement)
            ledger.add_subscriber(query.id, version, own.id, _BEGINNING, note)
            for feed in made.feeds:
                ledger.add_subscriber(feed.subscriber.query_id, version, feed.pipeline.id, feed.subscriber.position)
        policy = target.plan.scan.error_handling
        return OutputSubscriber(target, version, _BEGINNING, policy, note=note, relay=relay)

    def _add_log(self, made: DerivedSource, query: Query, node: Node) -> None:
        pipeline_id = log_pipeline(_reader_id(query), node.path)
        writer, path = self._services.writer, node.path
        reader = LogReader(
            node.tables.log,
            spark_schema(node.scan.columns),
            writer.read_cursor,
            complete=lambda: made.complete(path),
            look=lambda: self._look(made, node),
        )
        pipeline = Pipeline(pipeline_id, reader, self._services)
        self._pipelines[pipeline_id] = pipeline
        made.readers.append(reader)
        made.pipelines.append(pipeline)

    def _look(self, made: DerivedSource, node: Node) -> None:
        """What lets rows go although none comes: time alone, where a source that is read to its end gives nothing any
        more, and the low watermark of a log below."""
        writer, tables = self._services.writer, node.join
        if tables is None:
            return
        first = made.feeds_of(node.path)[0]
        if made.clock_was_set(node.path):  # how long a partition is silent is known by the clock alone
            self._execute(first, [join_sides.silence_begins_statement(tables)])
            made.clock_is_known(node.path)
            return
        moved = []
        for feed in made.feeds_of(node.path):
            index, side = feed.index, join_sides.side_of(tables, feed.index)
            if side.low is not None:
                seq = int(feed.subscriber.position["seq"])
                if writer.answers(join_sides.passes(tables, index, seq)):
                    moved.append(join_sides.passing_statement(tables, index, str(seq)))
                continue
            if not writer.answers(silence.is_due(tables, index, time.time())):
                continue
            feed.pipeline.ask_end()  # for the next look, where the last answer is too old for this one
            moment = shown(feed.pipeline.confirmed_at(feed.subscriber))
            if moment is not None and writer.answers(silence.is_due(tables, index, moment)):
                moved += silence.statements(tables, index, moment)
        if moved:
            self._execute(first, (*moved, *tables.close_statements()))

    def _execute(self, feed: Feed, statements: Sequence[str]) -> None:
        try:
            self._services.writer.execute_for(feed.subscriber.query_id, statements)
        except MergeError as failed:  # of the join's own condition, as in a batch of that side
            feed.pipeline.fail(feed.subscriber, failed.error)

    def _pipeline(self, made: DerivedSource, node: Node, index: int) -> tuple[Pipeline, bool]:
        scan = node.sides[index].scan
        if scan.derived is None:
            return self._source_pipeline(scan)
        path = node.side_path(index)
        return next(p for n, p in zip(made.nodes, made.pipelines, strict=True) if n.path == path), False


def _together(positions: Iterable[Position]) -> str:
    return json.dumps({"sources": list(positions)}, sort_keys=True)


def _in_order(sides: list[tuple[Node, int, Target]]) -> list[tuple[Node, int, Target]]:
    """In the order of the sources in FROM: by the path from the root."""
    return sorted(sides, key=lambda side: side[0].side_path(side[1]))


def _reader_id(query: Query) -> str:
    """A new definition version has new logs, and pipelines that know nothing of the old ones."""
    return str(uuid.uuid5(_NAMESPACE, f"{query.id}/{query.definition_version}"))
