"""The streaming room as the rest of the server sees it: frozen values and one Protocol; no pyspark here."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from catalog.model import Relation, Store
from mvserver.compiler.plans import ContinuousPlan, Projection, Scan
from mvserver.errors import SqlError
from mvserver.front import ViewChanges, ViewReader
from mvserver.visible_rows import VisibleRows
from spark_sinks.base import KeptHistory

DEAD_LETTERS = "dead_letters"  # the kind of a query that writes what is rejected of a relation
# Properties of a query that goes on where a record cannot be written: this one says so, the other one names the entity
# that the record is written to instead.
LEAVES_REFUSED = "refused.records.left"
REFUSED_LETTERS = "refused.records.entity"
HISTORY = "history.millis"
"""The property of a view's query by which its changes are kept whether somebody watches or not."""


class PipelineState(enum.Enum):
    STARTING = "STARTING"  # Spark is not up, or its query is being made
    RUNNING = "RUNNING"
    STALLED = "STALLED"  # the source or Spark does not answer; will resume by itself
    FAILED = "FAILED"  # Spark cannot start, or the query that is its only one has failed
    IDLE = "IDLE"  # none of its queries wants records


class QueryState(enum.Enum):
    STARTING = "STARTING"  # Spark is not up, or the pipeline is being built
    FILLING = "FILLING"  # reading its source's history
    RUNNING = "RUNNING"
    STALLED = "STALLED"  # the source or Spark does not answer; will resume by itself
    FAILED = "FAILED"  # needs RESTART QUERY, REFRESH or a new definition
    TERMINATED = "TERMINATED"


@dataclass(frozen=True)
class Backfill:
    """How much of the history that its source had is in a new view: about, where records are estimated."""

    records: int
    records_done: int
    seconds_left: float | None = None  # at the present rate; None while nothing is read

    @property
    def share(self) -> float:
        return 1.0 if self.records == 0 else max(0.0, min(1.0, self.records_done / self.records))


@dataclass(frozen=True)
class QueryStatus:
    """The truth about one continuous query at this moment. Rates are per second over the last 10 s."""

    query_id: str
    state: QueryState
    error: str | None = None  # "SQLSTATE: message DETAIL: ... HINT: ..."
    note: str | None = None  # e.g. rebuilt from less than the whole history
    rows_in_per_s: float = 0.0
    rows_out_per_s: float = 0.0
    rows_in: int | None = 0  # None: the source does not count its records, and the rate is an estimate
    rejected: int = 0
    position: str = "{}"  # JSON
    latest_position: str = "{}"  # JSON: the source's present end
    lag_records: int | None = None
    freshness_ms: float | None = None  # age of the newest visible event when it became visible
    last_change_at: float | None = None
    last_confirmed_at: float | None = None
    caught_up: bool = False
    epoch: int = 0
    filled_share: float | None = None  # 0..1 while FILLING
    filled: bool = False  # a view that has had its source's whole history once
    lane: str = "batch"  # by which its source is read: live or batch
    lane_reason: str | None = None  # why not live
    backfill: Backfill | None = None  # of a view that is not filled, when it is known how much there is to read


@dataclass(frozen=True)
class PipelineStatus:
    """One reading of an entity, for all views of it or for one query that writes."""

    id: str
    source_id: str  # a relation over what is read
    state: PipelineState
    generation: int
    queries: int
    position: str | None  # JSON
    latest_position: str | None  # JSON
    records_per_s: float
    error: str | None = None
    lane: str = "batch"  # live or batch
    lane_reason: str | None = None  # why not live
    kept: KeptHistory | None = None  # of a source that keeps its history for its readers


class PresentEnds(Protocol):
    """The ends that the sources of some views had at one moment."""

    def wait(self, timeout_s: float) -> bool:
        """Whether each view has come to its end within this time. 55000 for a view that nothing keeps up to date."""

    def behind(self) -> SqlError:
        """What to say when it was waited for long enough: which view lags by how much."""


class LiveRows(Protocol):
    """The rows of a push query, as Arrow batches. One thread takes them; ``interrupt`` may come from any."""

    def wait(self, seconds: float | None) -> bool:
        """Whether there is something to take, rows or the end: now, or within this time (None: as long as it takes)."""

    def take(self) -> Any:
        """The next rows; waits for them. Raises what has ended the query, behind the last row."""

    def interrupt(self) -> None:
        """Whoever waits, or is about to, does so no longer (57014)."""

    def close(self) -> None:
        """Ends the query and frees all it holds; safe to call again."""


class EpochChanges(ViewChanges, Protocol):
    """All readers of the commit are given the same object. The kinds of changes are the column ``mv_op``."""

    def token(self, index: int) -> str:
        """Of a row: whoever has it, and all rows before it, resumes behind it."""

    def once(self, form: object, make: Callable[[Any], Any]) -> Any:
        """What ``make`` gives of this object, made once for all readers that ask for the same (hashable) form."""


class HistoryReader(ViewReader, Protocol):
    """One reader of a view's history."""

    @property
    def columns(self) -> Sequence[tuple[str, str]]:
        """The view's, with their DuckDB types."""

    def take(self) -> Sequence[EpochChanges]: ...


class StreamingEngine(Protocol):
    """Handlers write the catalog first, then call :meth:`reconcile`."""

    def reconcile(self) -> None:
        """Make what runs equal to what the catalog says; returns when the change is taken up (not when caught up)."""

    def status(self, query_id: str) -> QueryStatus: ...

    def statuses(self) -> Sequence[QueryStatus]: ...

    def restart(self, query_id: str, *, skip_rejected: bool = False) -> None:
        """Run a FAILED or TERMINATED query again from its position."""

    def refresh(self, query_id: str) -> None:
        """Rebuild a view from what its source still has."""

    def resolve_position(self, store: Store, entity: str, starting: str) -> str:
        """``earliest`` or ``latest`` as exact JSON positions, asked of the store now."""

    def wait_until_ready(self, timeout_s: float) -> None:
        """Wait for Spark; 57P03 when it is not up in time, 58000 with the cause when waiting does not help."""

    def refuse_empty(self, view_ids: Sequence[str]) -> None:
        """55000 with the cause where the query of one of them failed before it took anything."""

    def failures(self) -> int:
        """How many times queries have failed since the start: a greater number says to look again."""

    def wait_while_filling(self, view_ids: Sequence[str], timeout_s: float) -> None:
        """Wait until each view has left FILLING and STARTING for the first time; 55000 with progress otherwise."""

    def subscribe(self, plan: ContinuousPlan, start_position: str) -> LiveRows:
        """A push query: the rows of a projection from a resolved position on. 53400 where there are too many."""

    def watch(
        self, view_id: str, *, since: str | None = None, snapshot: bool = False, visible: VisibleRows | None = None
    ) -> HistoryReader:
        """A reader of a view's history, which is kept from now on if it was not: behind the token ``since``, or from
        now on, with or without the rows that are there; of the ``visible`` rows, where these are not all. 22023 for
        what is no token, 72000 where the changes behind it are not kept, 53400 where there are too many readers, 55000
        for a view that is being made."""

    def read_bounded(self, plan: Projection, rows_max: int | None, stopped: Callable[[], bool]) -> Any:
        """A projection's rows from its starting position to the source's present end, or the first ``rows_max``, as an
        Arrow table; 53400 where they are too many. ``stopped`` is asked again and again."""

    def planned_lane(self, plan: ContinuousPlan) -> Sequence[str]:
        """Lines of EXPLAIN: by which lane each source of a query is read; none where there are no live lanes."""

    def check_reading(self, store: Store, relation: Relation, scan: Scan) -> None:
        """Asks the store whether it can be read as the scan's properties of reading say; raises its error."""

    def check_plan(self, plan: object) -> None:
        """Analyse the lowered plan with Spark without running it; raises SqlError. Needs Spark to be up."""
