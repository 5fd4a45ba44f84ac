"""The supervisor as users of Spark see it: whether their Spark is still there, and leave to evaluate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import SparkSession

from mvserver.errors import raise_instead
from mvserver.limits import PROBATION_RECORDS_MAX
from mvserver.streaming.spark.isolation import Isolation
from mvserver.streaming.spark.supervisor import SparkSupervisor
from spark_sinks.base import Position, Positions


@dataclass(frozen=True)
class Range:
    """The records of a source that are evaluated together. ``source`` is the id of a pipeline or of a query."""

    source: str
    positions: Positions
    start: Position
    end: Position


class SparkGuard(Protocol):
    def is_current(self, session: SparkSession) -> bool:
        """Whether the session's Spark goes on."""
        ...

    def noticing(self, session: SparkSession) -> AbstractContextManager[None]:
        """What fails inside since Spark has ended is raised as SparkLostError."""
        ...

    def evaluating(
        self,
        session: SparkSession,
        records: Range,
        place: AbstractContextManager[None],
        stopped: Callable[[], bool],
    ) -> AbstractContextManager[None]:
        """Around the evaluation of a batch, in its ``place`` at the gate. 55000 for one that ends Spark each time."""
        ...

    def is_suspect(self, source: str) -> bool:
        """Whether a source has records by which Spark may end, so that each query reads what it lacks by itself."""
        ...

    def records_max(self, source: str, wanted: int) -> int:
        """How many records a batch may have."""
        ...


class Unguarded:
    """Of a Spark that nobody starts again."""

    def is_current(self, session: SparkSession) -> bool:
        return True

    def noticing(self, session: SparkSession) -> AbstractContextManager[None]:
        return nullcontext()

    def evaluating(
        self,
        session: SparkSession,
        records: Range,
        place: AbstractContextManager[None],
        stopped: Callable[[], bool],
    ) -> AbstractContextManager[None]:
        return place

    def is_suspect(self, source: str) -> bool:
        return False

    def records_max(self, source: str, wanted: int) -> int:
        return wanted


@dataclass(frozen=True)
class Guarded:
    """Of a Spark that is supervised."""

    supervisor: SparkSupervisor
    isolation: Isolation

    def is_current(self, session: SparkSession) -> bool:
        return self.supervisor.is_current(session)

    @contextmanager
    def noticing(self, session: SparkSession) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self._raise_lost(session, error)
            raise

    @contextmanager
    def evaluating(
        self,
        session: SparkSession,
        records: Range,
        place: AbstractContextManager[None],
        stopped: Callable[[], bool],
    ) -> Iterator[None]:
        of = records.source, records.positions, records.start, records.end
        self.isolation.check(*of)
        with (
            self.isolation.turn(records.source, stopped),
            place,
            self.isolation.evaluating(*of, lambda error: self._raise_lost(session, error)),
        ):
            yield

    def is_suspect(self, source: str) -> bool:
        return self.isolation.is_suspect(source)

    def records_max(self, source: str, wanted: int) -> int:
        return min(wanted, PROBATION_RECORDS_MAX) if self.isolation.on_probation(source) else wanted

    def _raise_lost(self, session: SparkSession, error: Exception) -> None:
        lost = self.supervisor.lost(session, error)
        if lost is not None and lost is not error:
            raise_instead(lost, error)
