"""The result of an evaluation, as far as it has to be told apart: small and whole, or the beginning of more."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from mvserver.front import KeptRows, PlainRows, Result
from mvserver.serving.api import PullPlan
from mvserver.serving.engine.memory_watch import Watched
from mvserver.serving.fast import few_rows

SELECT_TAG = "SELECT "
_VALUE_BYTES = 64  # of a Python value and its place in a row, about


@dataclass(frozen=True)
class Whole:
    """All rows, to be given to any number of readers."""

    rows: PlainRows | KeptRows | tuple[pa.RecordBatch, ...]
    few: bool  # quickly written, and so on the event loop, too

    @classmethod
    def of(cls, found: PlainRows | KeptRows | pa.RecordBatch) -> Whole:
        return cls(found if isinstance(found, PlainRows | KeptRows) else (found,), few=True)

    @property
    def bytes(self) -> int:
        if isinstance(self.rows, tuple):
            return sum(batch.nbytes for batch in self.rows)
        texts = sum(len(value) for row in self.rows.values for value in row if type(value) is str)
        return 4 * texts + _VALUE_BYTES * len(self.rows.values) * (len(self.rows.types) + 1)

    def result(self, plan: PullPlan) -> Result:
        if not isinstance(self.rows, tuple):
            names = [field.name for field in plan.fields]
            return Result(SELECT_TAG, plan.fields, few_rows.batches(self.rows, names), whole=True, rows=self.rows)
        return Result(SELECT_TAG, plan.fields, iter([b for b in self.rows if b.num_rows]), whole=True)


@dataclass(frozen=True)
class Begun:
    """The first rows of a result that is no small one."""

    batches: tuple[pa.RecordBatch, ...]
    reader: pa.RecordBatchReader
    watched: Watched

    def close(self) -> None:
        self.watched.ended()
        self.reader.close()
