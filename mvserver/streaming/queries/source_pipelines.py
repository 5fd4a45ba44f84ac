"""The pipelines that there are, one for each entity that is read: all queries over an entity share its reading.

A pipeline is made for the first that needs it and goes with the last. Its id is derived from what it reads, so that a
new start finds its position in the ledger. The pipelines over the logs of joins are kept here too.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from catalog.model import Relation, Store
from mvserver.compiler.changelogs import CHANGELOG
from mvserver.compiler.plans import ContinuousPlan, Projection, Scan
from mvserver.streaming.pipeline.held_history import EndedReaders
from mvserver.streaming.pipeline.pipeline import Pipeline, PipelineServices
from mvserver.streaming.push.push import PushQueries
from mvserver.streaming.queries.engine_services import EngineServices
from mvserver.streaming.queries.held_histories import HeldHistories
from spark_sinks.base import Position
from spark_sinks.decode import format_of

_NAMESPACE = uuid.UUID("6a1f9f0e-5a0c-4b7e-9a52-0d2a5b1c6e11")  # of pipeline ids, which are derived


class SourcePipelines:
    """All calls are made in the turn of a statement. ``pipelines`` is the engine's own, by id, which push queries and
    derived sources change as well."""

    def __init__(
        self,
        services: EngineServices,
        pipeline_services: PipelineServices,
        pipelines: dict[str, Pipeline],
        pushes: PushQueries,
        histories: HeldHistories,
        ended: EndedReaders,
    ) -> None:
        self._services = services
        self._pipeline_services = pipeline_services
        self._pipelines = pipelines
        self._pushes = pushes
        self._histories = histories
        self._ended = ended

    def all(self) -> Sequence[Pipeline]:
        return list(self._pipelines.values())

    def of_source(self, store: Store, stream: Relation, plan: ContinuousPlan) -> tuple[Pipeline, bool]:
        """The pipeline of a source, and whether nothing has been read by it yet."""
        pipeline_id, entity = self._pipeline_id(store, stream, plan.scan), stream.entity or ""
        found = self._pipelines.get(pipeline_id)
        if found is not None:
            return found, False
        self._pushes.wait_ended(pipeline_id)
        self._ended.wait_ended(pipeline_id)
        work = self._services.work_directory / pipeline_id
        reader = self._services.stores.reader(store, stream, plan, work)
        self._histories.hold(pipeline_id, store, entity, reader)
        pipeline = Pipeline(pipeline_id, reader, self._pipeline_services)
        self._pipelines[pipeline_id] = pipeline
        return pipeline, self._services.writer.pipeline_position(pipeline_id) is None

    def reads(self, store: Store, stream: Relation, scan: Scan) -> bool:
        """Whether there is a pipeline that reads what the scan does."""
        return self._pipeline_id(store, stream, scan) in self._pipelines

    def _pipeline_id(self, store: Store, stream: Relation, scan: Scan) -> str:
        # Where Spark types the records, by what is declared, each relation needs a scan of its own.
        own = stream.id if format_of(scan.value_format).typed_by_spark else ""
        if stream.kind == CHANGELOG and self._services.stores.kind(store.type).changelogs_apart:
            own = CHANGELOG
        reading = "".join(f"/{name}={value}" for name, value in scan.reading)
        return str(uuid.uuid5(_NAMESPACE, f"{store.id}/{stream.entity or ''}/{own}{reading}"))

    def of_scan(self, scan: Scan) -> tuple[Pipeline, bool]:
        """That of a stored relation which is a side of a join."""
        return self.of_source(*self._services.stored(scan.relation_id), Projection(scan, None, ()))

    def begin(self, pipeline: Pipeline, start: Position, *, fresh: bool) -> Position:
        """Where exactly a new query begins. A pipeline that was made for it alone goes again where it cannot."""
        try:
            return pipeline.reader.adopt(start, fresh=fresh)
        except BaseException:
            self._drop_unused(pipeline)
            raise

    @contextmanager
    def making(self) -> Iterator[None]:
        """What is made within, for a query that then cannot be set up, goes again: nobody would ever stop it. What
        has begun, or what others read by, stays."""
        before = set(self._pipelines)
        try:
            yield
        except BaseException:
            for pipeline in [self._pipelines[id_] for id_ in set(self._pipelines) - before]:
                self._drop_unused(pipeline)
            raise

    def start(self, pipeline: Pipeline) -> None:
        if not pipeline.started:
            pipeline.start(self._services.writer.pipeline_position(pipeline.id))

    def _drop_unused(self, pipeline: Pipeline) -> None:
        """One that has not begun, and that nobody reads by, goes."""
        if not pipeline.started and not pipeline.subscribers and self._pipelines.get(pipeline.id) is pipeline:
            del self._pipelines[pipeline.id]
            pipeline.stop()

    def end(self, pipeline: Pipeline) -> None:
        """It will be made anew, and goes on from its place in the ledger. It stops in a thread of its own."""
        if self._pipelines.get(pipeline.id) is pipeline:
            del self._pipelines[pipeline.id]
            pipeline.give_up()
            self._ended.end(pipeline.id, pipeline.stop)

    def leave(self, pipeline: Pipeline, relation_id: str) -> None:
        """A subscriber has gone: what nobody needs any more goes too."""
        pipeline = self._pipelines.get(pipeline.id, pipeline)  # another one may have taken its place
        left, writer = pipeline.subscribers, self._services.writer
        stopped = not left and self._pipelines.pop(pipeline.id, None) is not None
        forgotten = not left and not writer.is_subscribed(pipeline.id)
        unread = all(s.target.plan.scan.relation_id != relation_id for s in left if s.kept)

        def end() -> None:
            if stopped:
                pipeline.stop()
            if forgotten:
                self._services.reached("before forget")
            with writer.transaction() as ledger:  # behind the last batch
                if forgotten:
                    ledger.drop_pipeline(pipeline.id)
                if unread:
                    ledger.drop_rejected(relation_id)
            if forgotten:
                self._ended.forget(pipeline.id, pipeline.reader, self._services.work_directory / pipeline.id)

        if stopped:
            pipeline.give_up()
        if stopped or forgotten:
            self._ended.end(pipeline.id, end)
        else:
            end()

    def is_in_use(self, pipeline_id: str) -> bool:
        """Also while it is being ended, by whoever will forget it."""
        return self.is_read(pipeline_id) or self._ended.is_ending(pipeline_id)

    def is_read(self, pipeline_id: str) -> bool:
        return self._pushes.is_ending(pipeline_id) or pipeline_id in self._pipelines
