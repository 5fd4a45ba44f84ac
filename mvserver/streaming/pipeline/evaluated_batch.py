"""An evaluated batch on its way to its commit, and the shares that subscribers have in it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from mvserver.streaming.batch.evaluate import Evaluated
from mvserver.streaming.pipeline.subscribers import Subscriber
from spark_sinks.base import Position
from spark_sinks.duckdb.ledger.ledger import LedgerEntry


@dataclass(frozen=True)
class Share:
    """What one subscriber gets out of a batch: from ``start`` to ``end`` of its own reading."""

    subscriber: Subscriber
    start: Position
    end: Position
    records: int


@dataclass
class EvaluatedBatch:
    """An evaluated batch on its way to the commit thread."""

    entry: LedgerEntry | None
    parts: list[tuple[Evaluated, list[Share]]]
    commit_s: float = 0.0  # how long its commit took, once that is done
    done: threading.Event = field(default_factory=threading.Event)

    @property
    def start(self) -> Position | None:
        """From where it was read; a round is for queries that stand together. None where it is for nobody."""
        if self.entry is not None:
            return self.entry.start
        return next((shares[0].start for _, shares in self.parts if shares), None)

    @property
    def subscribers(self) -> list[Subscriber]:
        return [share.subscriber for _, shares in self.parts for share in shares]

    @property
    def records(self) -> int:
        """How many were read for it; the shares of a part are of the same records."""
        return sum(shares[0].records for _, shares in self.parts if shares)
