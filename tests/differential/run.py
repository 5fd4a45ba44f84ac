"""One run: programs of random queries over random topics, until enough were written."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException

from mvserver import sqlstates
from mvserver.compiler.capabilities import all_capabilities
from mvserver.compiler.plans import ContinuousPlan
from mvserver.errors import SqlError
from tests.differential.data import csv_topic, json_topic
from tests.differential.harness import World, compiled, differences, functions_used, oracle_session, type_differences
from tests.differential.queries import Query, QueryWriter


class DifferentialRun:
    """Counts what was written, accepted, used and found wrong."""

    def __init__(
        self, spark: Any, folder: Path, rng: random.Random, *, rows: int, parts: Sequence[int], uses_min: int
    ) -> None:
        self._spark = spark
        self._oracle = oracle_session(spark)
        self._folder = folder
        self._rng = rng
        self._rows = rows
        self._parts = parts  # in how many batches a topic may come
        self._uses_min = uses_min  # of every function
        self._drawn: Counter[str] = Counter()
        self._programs = 0
        self.functions: Counter[str] = Counter()
        self.trials: Counter[str] = Counter()
        self.written = self.accepted = 0
        self.refused: list[str] = []
        self.wrong: list[str] = []
        self.seconds: Counter[str] = Counter()

    def program(self, queries: int, more: int = 0) -> None:
        """Views of one topic: one in four over CSV, the others over JSON with a second relation declared on it. Up to
        so many ``more`` come while a function is missing: what a refused query was to use is drawn again."""
        rng = self._rng
        csv = self._programs % 4 == 3
        parts = rng.choice(self._parts)
        topic = (csv_topic if csv else json_topic)(rng, self._rows, parts)
        world = World(self._spark, self._oracle, self._folder / f"world{self._programs}", topic)
        try:
            for number in range(queries):
                narrow = not csv and number >= queries - 2
                self._add(world, "lines" if csv else "narrow" if narrow else "everything", narrow)
            for _ in range(more):
                if self.missing():
                    self._add(world, "lines" if csv else "everything", narrow=False)
            started = time.monotonic()
            world.run(partials=[rng.random() < 0.5 for _ in range(parts)])
            self.seconds["views"] += time.monotonic() - started  # type: ignore[assignment]
            self._compare(world)
            self._compare_rejected(world)
        finally:
            world.close()
        self.trials.update(world.trials)
        self._programs += 1

    def missing(self) -> list[str]:
        """The functions that too few queries used."""
        listed = (entry.name for entry in all_capabilities() if entry.family != "sketches")
        return sorted(name for name in listed if self.functions[name] < self._uses_min)

    def _add(self, world: World, relation: str, narrow: bool) -> None:
        rng = self._rng
        writer = QueryWriter(rng, relation, self._drawn, narrow=narrow)
        aggregates = rng.random() < 0.45
        query = writer.aggregation(rng.randint(2, 6)) if aggregates else writer.projection(rng.randint(5, 9))
        self.written += 1
        try:
            plan = _of_one_step(query)
        except SqlError as error:
            self.refused.append(f"{error}\n  {query.sql}")
            for name in query.wanted:
                self._drawn[name] -= 1
            return
        self.accepted += 1
        used = functions_used(plan)
        self.functions.update(used)
        self._drawn.subtract(name for name in set(query.wanted) - used if name != "cast")  # written, not kept
        self.wrong += [f"{query.sql}\n  {difference}" for difference in type_differences(query, plan)]
        world.add(query, plan)

    def _compare(self, world: World) -> None:
        started = time.monotonic()
        for view, truth in zip(world.views, world.truths(), strict=True):
            if view.failure is not None:
                found = [f"failed: {view.failure}"]
            elif isinstance(truth, PySparkException):
                found = [f"the oracle failed: {str(truth)[:500]}"]
            else:
                found = differences(view.query.columns, world.answer(view), truth)
            self.wrong += [_report(view.query, each) for each in found]
        self.seconds["oracle"] += time.monotonic() - started  # type: ignore[assignment]

    def _compare_rejected(self, world: World) -> None:
        used = {view.query.relation for view in world.views}
        for relation in used:
            known = world.batches.narrow_rejected if relation == "narrow" else world.batches.rejected
            found = world.rejected(relation)
            self.wrong += [f"{relation}: wrongly rejected, {found[each]}" for each in sorted(set(found) - known)]
            values = {record.position: record.value for batch in world.batches.batches for record in batch}
            self.wrong += [f"{relation}: wrongly accepted, {values[each]!r}" for each in sorted(known - set(found))]

    def summary(self) -> str:
        return (
            f"{self.written} queries, {self.accepted} accepted, {sum(self.functions.values())} uses of "
            f"{len(self.functions)} functions, batches {dict(self.trials)}, seconds {dict(self.seconds)}"
        )


def _report(query: Query, difference: str) -> str:
    return f"{query.sql}\n  {difference}\n  oracle: {query.oracle}"


def _of_one_step(query: Query) -> ContinuousPlan:
    """0A000 where Spark computes with the aggregates, over the changes of the groups: that takes a second pipeline."""
    plan = compiled(query)
    if plan.scan.derived is not None:
        raise SqlError(sqlstates.FEATURE_NOT_SUPPORTED, "the harness has one step")
    return plan
