"""The way out of the server: what a query writes, in the form of its sink, be it records or rows of a table.

A query writes what Spark has evaluated, or what its outbox holds. Both go through one form, and the sink keeps how far
they are written in the transaction of what it writes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from mvserver.compiler.plans import Projection
from mvserver.streaming.batch.program import Program, ViewInput, build_program
from mvserver.views.targets import Target
from spark_sinks.base import Position, SinkProgress
from spark_sinks.duckdb.changes.outbox import Pending
from spark_sinks.schema_registry.base import NO_SCHEMAS, KnownSchemas


@dataclass(frozen=True)
class Pace:
    """Between two writes there are ``interval_s``, unless as many rows wait as one may have."""

    rows_max: int | None = None  # None: as many as come
    interval_s: float = 0.0


AT_ONCE = Pace()


class WritingBatches(SinkProgress, Protocol):
    """A sink that is open, of a query that keeps no rows."""

    def write(self, table: pa.Table, position: Position) -> None:
        """Rows of the columns that were selected, and the source's position behind them."""


class Writing(WritingBatches, Protocol):
    """A sink that is open."""

    def send(self, pending: Pending, incarnation: str) -> None:
        """Rows of an outbox."""


class OfSink:
    """The part of a :class:`Writing` that is its sink's."""

    def __init__(self, sink: SinkProgress) -> None:
        self._progress = sink

    def committed_position(self, *, expected: bool = False) -> Position | None:
        return self._progress.committed_position(expected=expected)

    def renew(self, position: Position) -> None:
        self._progress.renew(position)

    def close(self) -> None:
        self._progress.close()


class BatchForm(Protocol):
    """Of one query that keeps no rows."""

    @property
    def pace(self) -> Pace: ...

    def open(self, stopped: Callable[[], bool]) -> WritingBatches:
        """Anew at each start; ``stopped`` ends what waits in it."""


class Form(BatchForm, Protocol):
    """Of one query."""

    def selected(self, view: ViewInput, plan: Projection) -> Sequence[str]:
        """What is evaluated of a record for :meth:`Writing.write`, as Spark's expressions with names. They may use what
        the program has made, and ``key``, ``record_time`` and ``position``."""

    def open(self, stopped: Callable[[], bool]) -> Writing:
        """Anew at each start; ``stopped`` ends what waits in it."""


class Evaluation(Protocol):
    """What is evaluated of the records of a query that keeps no rows."""

    def program(self, schemas: KnownSchemas = NO_SCHEMAS) -> Program: ...

    def selected(self, program: Program) -> Sequence[str]:
        """What is collected, as Spark's expressions with names. ``passing`` says which rows are written."""


@dataclass(frozen=True)
class Rows:
    """An :class:`Evaluation`: the rows that a plan makes of records, as a form writes them."""

    target: Target
    plan: Projection
    form: Form

    def program(self, schemas: KnownSchemas = NO_SCHEMAS) -> Program:
        return build_program([self.target], schemas=schemas)

    def selected(self, program: Program) -> Sequence[str]:
        view = program.views[0]
        return f"{view.flag} AS passing", *self.form.selected(view, self.plan)


def outbox_position(incarnation: str, last: int) -> Position:
    """How far an outbox is sent: its numbers mean nothing for another one."""
    return {"outbox": incarnation, "seq": last}
