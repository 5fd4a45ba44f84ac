from __future__ import annotations

from collections.abc import Iterator

import pytest

from mvserver.serving.engine.database import Database
from tests.pgcatalog.world import CatalogWorld


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CatalogWorld]:
    with Database.open(tmp_path_factory.mktemp("pgcatalog") / "views.duckdb") as database:
        made = CatalogWorld(database)
        yield made
        made.close()
