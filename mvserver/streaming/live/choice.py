"""Which lane a pipeline takes: live where it has caught up and can be carried exactly, else batches, and why."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from mvserver.compiler.own_functions import called
from mvserver.compiler.plans import ContinuousPlan
from mvserver.errors import SqlError
from mvserver.streaming.live.ended import LaneEnded
from mvserver.streaming.live.lanes import LiveLanes
from mvserver.streaming.pipeline.running_state import RunningState
from mvserver.streaming.pipeline.subscribers import Subscriber
from mvserver.views.windowing import rows_max
from spark_sinks.base import SourceReader
from spark_sinks.duckdb.ledger.ledger import encode

BATCHES_ONLY = "its source is read in batches only"
BEHIND_RECORDS = 10_000  # a pipeline that has more to read than this has not caught up
LARGE_S = 4.0
BEHIND_LIVE_RECORDS = 30_000  # above it a live lane has fallen behind: batches read so many in half a second
RATE_MAX = 50_000  # rows per second that are left to batches, which cost less for each
_DELAYS_S = (2.0, 5.0, 15.0, 60.0, 300.0)
_LASTED_S = 120.0  # a run that went well for so long: what ends it now is another matter


class LaneChoice:
    """Of one pipeline. Its own threads use it under the state's lock."""

    def __init__(
        self,
        reader: SourceReader,
        state: RunningState,
        lanes: LiveLanes,
        *,
        is_suspect: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._reader = reader
        self._state = state
        self._lanes = lanes
        self._is_suspect = is_suspect
        self._clock = clock
        self.is_live = False
        self._last_records: int | None = None  # of the last batch of this generation
        self._last_at = 0.0
        self._ended: str | None = None  # why the last live run ended
        self._failed = 0
        self._not_before = 0.0
        self._refused: frozenset[str] = frozenset()  # queries whose plan Spark does not run live

    # --- asked by everybody -----------------------------------------------------------------------------------------
    @property
    def lane(self) -> str:
        return "live" if self.is_live else "batch"

    @property
    def reason(self) -> str | None:
        """Why it is not live."""
        return None if self.is_live else self.obstacle()

    def obstacle(self) -> str | None:
        """What a live lane could not begin for now; None where it could."""
        with self._state.lock:
            wanted = self._state.wanted()
            plans = (s.target.plan for s in wanted)
            return lasting_obstacle(self._reader, self._lanes, plans) or self._passing(wanted)

    # --- told by the pipeline ---------------------------------------------------------------------------------------
    def batches_began(self) -> None:
        self._last_records = None

    def batch_taken(self, records: int) -> None:
        self._last_records, self._last_at = records, self._clock()

    def live_began(self) -> None:
        self.is_live = True
        self._ended = None

    def live_ended(self, cause: LaneEnded | None, lasted_s: float) -> None:
        """``cause`` is None where the pipeline itself ends."""
        self.is_live = False
        self._last_records = None  # a batch has to read on first: only that judges what has ended the run
        if cause is None:
            return
        self._ended = cause.reason
        if cause.at_once:
            self._not_before = 0.0
            return
        if lasted_s > _LASTED_S:
            self._failed = 0
        self._not_before = self._clock() + _DELAYS_S[min(self._failed, len(_DELAYS_S) - 1)]
        self._failed += 1

    def refused(self, subscribers: Sequence[Subscriber]) -> None:
        """Spark does not run these live; it is not asked again as long as they are the same."""
        self._refused = _set_of(subscribers)

    # --- how it is decided ------------------------------------------------------------------------------------------
    def _passing(self, wanted: Sequence[Subscriber]) -> str | None:
        if not wanted:
            return "no query wants records"
        if self._refused and _set_of(wanted) == self._refused:
            return self._ended or "Spark does not run its queries live"
        if self._is_suspect():
            return "its records are under suspicion to end Spark"
        wait_s = self._not_before - self._clock()
        if wait_s > 0:
            return f"{self._ended}; live is tried again in {wait_s:.0f} s"
        start = encode(self._state.next)
        if any(s.busy or s.unverified or not s.filled or encode(s.claimed) != start for s in wanted):
            return "some of its queries are behind the others"
        partitions = len(self._reader.positions.partitions(self._state.next))
        if not self.is_live and partitions > self._lanes.left:
            return f"its {partitions} partitions want as many task slots, and {self._lanes.left} are left"
        return self._behind(wanted)

    def _behind(self, wanted: Sequence[Subscriber]) -> str | None:
        latest, start, positions = self._state.latest, self._state.next, self._reader.positions
        if latest is None or self._last_records is None:  # the first batch also warms Spark up
            return "no batch was read since its start"
        try:
            records = positions.distance(start, latest)
        except SqlError as error:  # a topic that was made anew
            return error.message
        if not positions.partitions(latest).keys() <= positions.partitions(start).keys():
            return "nothing was read since partitions were added to the topic"
        if self._clock() - self._last_at < LARGE_S:  # what comes behind a large batch may be one again
            records = max(records, self._last_records)
        if records > BEHIND_RECORDS:
            return f"it is behind by about {records} records"
        rate, rows = self._state.rate.per_second(), rows_max(s.target.plan.scan for s in wanted)
        if rate * rows > RATE_MAX:
            each = "" if rows == 1 else f", each in up to {rows} rows,"
            return f"{rate:.0f} records a second{each} are more than one process takes"
        return None


def lasting_obstacle(reader: SourceReader, lanes: LiveLanes, plans: Iterable[ContinuousPlan]) -> str | None:
    """Why a source is never read live, or not for these."""
    plans = list(plans)
    if lanes.refusal is not None:
        return lanes.refusal
    if reader.live is None:
        return BATCHES_ONLY
    if reader.live.refusal is not None:
        return reader.live.refusal
    if any(True for plan in plans for _ in called(plan)):
        return "a query calls a function of one's own, whose rows go to Python in batches"
    return None


def _set_of(subscribers: Sequence[Subscriber]) -> frozenset[str]:
    return frozenset(f"{s.query_id}:{s.version}" for s in subscribers)
