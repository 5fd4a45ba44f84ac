"""A view that the streaming room's own writer keeps, fed without Spark, in a world whose rows may be kept finished."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from catalog.model import Column
from mvserver.dialect.errors.duck_errors import translate
from mvserver.front import Result
from mvserver.serving.api import PlanRuns, PullPlan
from mvserver.views.targets import Target
from spark_sinks.duckdb.writer import Writer
from tests.serving.world import VISITS_ID, World, rows_of
from tests.streaming.states import Fed, target

MEMORY = 16 << 20
COLUMNS = (Column("site", "BIGINT"), Column("url", "VARCHAR"), Column("visits", "BIGINT"),
           Column("total", "DECIMAL(38, 2)"))  # fmt: skip
SELECT = "SELECT l AS site, k AS url, count(*) AS visits, sum(n) AS total FROM events GROUP BY l, k"


def until(holds: Callable[[], Any], seconds: float = 20.0) -> None:
    ends = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < ends, "it did not come to that"
        time.sleep(0.002)


def declare(world: World, columns: Sequence[Column], key: Sequence[str]) -> None:
    """The view ``visits`` in the catalog."""
    current = world.catalog.current
    visits = replace(current.relations_by_id[VISITS_ID], columns=tuple(columns), key_columns=tuple(key))
    world.catalog.change(relations=(visits, *(each for each in current.relations if each.id != VISITS_ID)))


class KeptView:
    """The view ``visits`` over what is fed."""

    def __init__(
        self, world: World, sql: str = SELECT, columns: Sequence[Column] = COLUMNS,
        key: Sequence[str] = ("site", "url"), *, version: int = 1,
    ) -> None:  # fmt: skip
        self.world = world
        self.finished = world.service.finished
        self.writer = Writer(world.database.cursor, translate, layouts=world.layouts)
        self.writer.watch = self.finished
        self.finished._history = self.writer.histories.of_view  # the world's service is older than the writer
        with self.writer.transaction() as ledger:
            ledger.begin_generation("p", {"at": 0})
        world.writer.execute(f'DROP VIEW IF EXISTS _views."{VISITS_ID}"')
        self.target: Target = target(sql, 1)
        self.fed = Fed(world.database, self.writer, self.target)
        declare(world, columns, key)

    def close(self) -> None:
        self.writer.close()

    def keep(self, text: str, parameters: Sequence[Any] = ()) -> PullPlan:
        """Asks until the rows are kept."""
        plan = self.world.plan(text)
        until(lambda: self.found(plan, parameters) is not None)
        return plan

    def found(self, plan: PullPlan, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]] | None:
        result: Result | None = self.finished.find(plan, parameters)
        return None if result is None else rows_of(result)

    def ready(self, plan: PullPlan, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """What the kept rows say as soon as they can be asked."""
        until(lambda: self.finished.knows(plan))
        found = self.found(plan, parameters)
        assert found is not None
        return found

    def of_duckdb(self, plan: PullPlan, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The oracle: the view, read by DuckDB."""
        through_the_view = replace(plan, direct=None, arrow_types=(), runs=PlanRuns(few=False))
        return rows_of(self.world.snapshot.run(through_the_view, parameters))
