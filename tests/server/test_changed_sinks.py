"""A query that writes to a store which has changed is taken up anew; what reads its source reads on for the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from catalog.model import Query
from mvserver.server import Rooms
from mvserver.streaming.queries.engine_services import EngineServices
from mvserver.streaming.queries.running import RunningQuery


@pytest.mark.parametrize("name", ["keyed", "joined"])
def test_the_others_of_its_pipelines_are_read_on(rooms: Rooms, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine: Any = rooms.engine
    (view,) = [each for each in rooms.catalog.relations.all() if each.name == name]
    versions = EngineServices.store_versions

    def changed(services: EngineServices, query: Query) -> Mapping[str, float]:
        found = versions(services, query)
        return {**found, "that of the sink": 1.0} if query.sink_id == view.id else found

    known = {each.query.id: each for each in engine._queries.all()}
    monkeypatch.setattr(EngineServices, "store_versions", changed)
    engine.reconcile()
    pipelines = engine._sources.all()
    renewed = [each for each in engine._queries.all() if known[each.query.id] is not each]
    assert [each.query.sink_id for each in renewed] == [view.id]
    for each in engine._queries.all():
        parts = [(each.pipeline, each.subscriber), *((feed.pipeline, feed.subscriber) for feed in each.feeds)]
        for pipeline, subscriber in parts:
            assert pipeline in pipelines
            assert subscriber in pipeline.subscribers
            assert not pipeline._stopping.is_set()


def test_a_query_that_could_not_be_set_up_reads_by_the_new_properties(
    rooms: Rooms, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It must not join what the others still read by the former ones, and are about to end."""
    engine: Any = rooms.engine
    views = {each.id: each.name for each in rooms.catalog.relations.all()}
    over_users = {"changed", "regions", "oldest"}
    known = [each for each in engine._queries.all() if views[each.query.sink_id] in over_users]
    before = {each.pipeline for each in known}
    versions = EngineServices.store_versions
    for each in known[:1]:
        each.pipeline.remove(each.query.id)
        engine._queries.put(RunningQuery(each.query, store_versions=each.store_versions, broken="away"))
    monkeypatch.setattr(
        EngineServices, "store_versions", lambda self, query: {key: at + 1 for key, at in versions(self, query).items()}
    )
    engine.reconcile()
    engine._ended.wait_all(60)
    engine.reconcile()
    for each in engine._queries.all():
        assert each.ending is None
        if views[each.query.sink_id] in over_users:
            assert each.pipeline in engine._sources.all()
            assert each.pipeline not in before
            assert each.subscriber in each.pipeline.subscribers
