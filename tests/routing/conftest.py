from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.routing.fakes import SETUP, Bench


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    bench.close()


@pytest.fixture
def filled(bench: Bench) -> Bench:
    """Stores k (KAFKA) and f (FILE), stream clicks on k and file_clicks on f."""
    bench.run(*SETUP)
    bench.engine.calls.clear()
    return bench
