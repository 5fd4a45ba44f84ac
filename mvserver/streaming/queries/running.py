"""The record of a continuous query as it runs: what it has, and what is done with all of that together.

A view has a subscriber of a pipeline; over a join also what is below it; a query that writes has a sink or a relay.
Nothing here asks the catalog or makes anything: ``start_up`` fills the record, ``orphan_clean_up`` takes down
what is in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from catalog.model import Query
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.streaming.api import PipelineStatus, QueryState, QueryStatus
from mvserver.streaming.pipeline.pipeline import Pipeline
from mvserver.streaming.pipeline.subscribers import Subscriber, obstacle_of
from mvserver.streaming.queries.csas import SinkQuery
from mvserver.streaming.queries.derived import DerivedSource, Feed
from mvserver.streaming.queries.freshness import KeptView
from mvserver.streaming.queries.outbox_relay import OutboxRelay
from mvserver.streaming.queries.outputs import output_status
from mvserver.streaming.queries.status import (
    WRITING,
    kept_for,
    pipeline_status,
    sink_pipeline_status,
    view_status,
)
from mvserver.streaming.spark.state import SparkState

_RENEWED = "a store was changed, and what reads or writes by its former properties has not ended yet"


@dataclass
class RunningQuery:
    """``pipeline`` is None for one that writes straight to its stream, and where it could not even be set up."""

    query: Query
    pipeline: Pipeline | None = None
    subscriber: Subscriber | None = None
    sink: SinkQuery | None = None
    broken: str | None = None  # why it could not be set up
    store_versions: Mapping[str, float] = field(default_factory=dict)
    ending: tuple[str, ...] | None = None  # what of it ends since a store was changed, before it is taken up again
    derived: DerivedSource | None = None  # what is below it, where its scan is a join
    forget_output: Callable[[], None] | None = None  # once it is dropped, of one that writes to a stream
    relay: OutboxRelay | None = None  # of a query that writes to a changelog

    @property
    def feeds(self) -> Sequence[Feed]:
        """The sides that run below it."""
        return () if self.derived is None else self.derived.feeds

    def members(self) -> Sequence[Subscriber | SinkQuery]:
        """All of it that may fail."""
        own = (self.subscriber, self.sink)
        return [member for member in (*own, *(feed.subscriber for feed in self.feeds)) if member is not None]

    def terminate(self) -> None:
        """A sink is told to, and has still to be stopped."""
        if self.sink is not None:
            self.sink.give_up()
        if self.pipeline is not None:
            self.pipeline.terminate(self.query.id)

    def refuse_held(self) -> None:
        """55000 where it is another query of its application that has to be mended, and nothing in this one."""
        failures = [member.failure for member in self.members()]
        failures += [] if self.relay is None else [self.relay.failure]
        if self.query.desired_state == "terminated" or any(failure is not None for failure in failures):
            return
        obstacle = next((found for found in (obstacle_of(m.application) for m in self.members()) if found), None)
        if obstacle is not None:
            raise SqlError(
                sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
                "the query stands still because another one of its application has failed",
                detail=f"{obstacle[:1].upper()}{obstacle[1:]}",
                hint="RESTART or TERMINATE that one, and the others of the application go on.",
            )

    def run_again(self, *, skip_rejected: bool) -> None:
        """From where it stands, after it has failed or was terminated."""
        if self.sink is not None:
            self.sink.stop()
            self.sink.start()
        if self.relay is not None:
            self.relay.stop()
            self.relay.start()
        if self.pipeline is not None:
            self.pipeline.restart_subscriber(self.query.id, skip_rejected=skip_rejected)
        for feed in self.feeds:
            feed.pipeline.restart_subscriber(feed.subscriber.query_id, skip_rejected=skip_rejected)

    def rows_committed(self, query_ids: Sequence[str]) -> None:
        """A batch of these queries and sides is in DuckDB: a log may have rows now, and an outbox changes."""
        if self.derived is not None:
            self.derived.rows_committed(query_ids)
        along = self.derived is not None and self.derived.takes_along(query_ids)
        if along and self.subscriber is not None:
            self.subscriber.changed()
        if self.relay is not None and (along or self.query.id in query_ids):
            self.relay.committed()

    def kept_view(self, name: Callable[[], str], spark: SparkState) -> KeptView:
        broken = self.broken or spark.problem
        return KeptView(name, self.query, self.pipeline, self.subscriber, broken, self.derived, spark.interruption)

    @property
    def sources(self) -> Sequence[str]:
        """The ids under which its batches are evaluated."""
        pipelines = [*(feed.pipeline for feed in self.feeds), *([] if self.pipeline is None else [self.pipeline])]
        return [self.query.id, *(pipeline.id for pipeline in pipelines)]

    def status(self, spark: SparkState) -> QueryStatus:
        status = self._status(spark)
        if self.ending is None:
            return status
        if self.query.desired_state == "terminated":  # of which what ends was not told
            return replace(status, state=QueryState.TERMINATED, error=None, caught_up=False)
        if status.state is QueryState.FAILED:
            return status
        return replace(status, state=QueryState.STALLED, error=_RENEWED, caught_up=False)

    def _status(self, spark: SparkState) -> QueryStatus:
        if self.sink is not None:
            return replace(self.sink.status(spark), lane_reason=WRITING)
        if self.subscriber is None or self.pipeline is None:
            return QueryStatus(self.query.id, QueryState.FAILED, error=self.broken)
        status = view_status(self.query.id, self.subscriber, self.pipeline, spark)
        if self.relay is not None:
            status = output_status(status, self.subscriber, self.relay)
        return status if self.derived is None else self.derived.status(status, self.subscriber)


def pipeline_statuses(running: Iterable[RunningQuery], spark: SparkState) -> Sequence[PipelineStatus]:
    """What reads the sources now; a query that could not be set up reads nothing."""
    found: dict[str, PipelineStatus] = {}
    for known in running:
        source_id = known.query.source_ids[0]
        if known.sink is not None:
            status = known.sink.status(spark)
            found[known.query.id] = sink_pipeline_status(
                status, source_id, known.sink.generation, kept_for(known.sink.reader)
            )
        elif known.derived is not None:
            for pipeline in known.derived.pipelines:
                found[pipeline.id] = pipeline_status(pipeline, known.query.sink_id, spark)
            for feed in known.derived.leaves:
                source_id = feed.subscriber.target.plan.scan.relation_id
                found[feed.pipeline.id] = pipeline_status(feed.pipeline, source_id, spark)
        elif known.pipeline is not None and known.pipeline.id not in found:
            found[known.pipeline.id] = pipeline_status(known.pipeline, source_id, spark)
    return list(found.values())


def group_applications(running: Iterable[RunningQuery]) -> None:
    """The queries of an application fail together: each is told the others."""
    groups: dict[str, list[RunningQuery]] = {}
    for known in running:
        name = dict(known.query.properties).get("application")
        if name is not None:
            groups.setdefault(name, []).append(known)
    for together in groups.values():
        for known in together:
            others = tuple(member for other in together if other is not known for member in other.members())
            for member in known.members():
                member.application = others
