"""A query that writes to a store which has changed is taken up anew; what reads its source reads on for the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from catalog.model import Query
from mvserver.server import Rooms
from mvserver.streaming.queries.engine_services import EngineServices
from tests.server.kept_directory import opened_rooms, unpack


@pytest.fixture
def rooms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rooms]:
    unpack(tmp_path)
    with opened_rooms(tmp_path, monkeypatch) as opened:
        yield opened


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
