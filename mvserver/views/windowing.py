"""Windows in a batch: the Spark columns that they need, and what the state is told of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mvserver.compiler.changelogs import CHANGELOG
from mvserver.compiler.expressions import Expression
from mvserver.compiler.plans import Aggregation, ContinuousPlan, Projection, Scan, Unnest
from mvserver.compiler.windowed import END, START
from mvserver.compiler.windows import (
    EVENT_MS_MAX,
    EVENT_MS_MIN,
    WINDOW_END,
    WINDOW_START,
    Window,
    WindowKind,
    bounds,
    spread,
)
from mvserver.sql.types import Kind
from spark_sinks.duckdb.state.windows import Aging, Windowing

SpreadKey = tuple[str, str | None, Window | None, tuple[Unnest, ...]]


def state_keys(plan: Aggregation) -> tuple[Expression, ...]:
    """The keys of its groups, and the bounds of the time of each where they are forgotten."""
    return (*plan.keys, START, END) if plan.forgetting else plan.keys


def windowing_of(plan: ContinuousPlan) -> Windowing | None:
    """What a view's state is told; None for one that is not aggregated over a window of
    records, which do not change."""
    window = plan.scan.window
    if window is None or not isinstance(plan, Aggregation) or plan.scan.kind == CHANGELOG:
        return None
    keys, gap_ms = state_keys(plan), window.size_ms if window.kind is WindowKind.SESSION else None
    retention_ms = gap_ms if plan.forgetting else plan.retention_ms
    return Windowing(
        start_key=keys.index(START),
        end_key=keys.index(END),
        delay_us=plan.scan.watermark_delay_ms * 1000,
        grace_us=plan.grace_ms * 1000,
        gap_us=None if gap_ms is None else gap_ms * 1000,
        final=plan.emit_final,
        retention_us=None if retention_ms is None else retention_ms * 1000,
        latest=plan.forgetting,
    )


def aging_of(plan: Projection) -> Aging | None:
    """What the state of a view whose rows age is told."""
    if plan.retention_ms is None:
        return None
    return Aging(plan.scan.watermark_delay_ms * 1000, plan.retention_ms * 1000)


def spread_key(scan: Scan) -> SpreadKey | None:
    """Scans that make several rows of a record can share a program only where they make the same."""
    if not scan.unnests and (scan.window is None or not scan.window.is_shared):
        return None
    return scan.relation_id, scan.timestamp, scan.window, scan.unnests  # an array may name the window's bounds


def rows_max(scans: Iterable[Scan]) -> int:
    """How many rows their windows make of a record at most, and one for all scans that make one. The elements of
    arrays are not counted: nobody knows them."""
    spread = {key: scan for scan in scans if (key := spread_key(scan)) is not None}
    return 1 + sum(scan.window.per_record_max if scan.window is not None else 1 for scan in spread.values())


class WindowColumns:
    """Of one program: each scan's event time in microseconds, and the bounds of its windows."""

    def __init__(self) -> None:
        self._events: dict[str, str] = {}  # text → name
        self._places: dict[str, str] = {}
        self._by_scan: dict[tuple[str, str | None, Window], tuple[str, Mapping[str, str]]] = {}

    def add(self, scan: Scan, references: Mapping[str, str], good: str) -> None:
        if scan.window is None or self._key(scan) in self._by_scan:
            return
        text = f"CASE WHEN {good} THEN {event_us(scan, references)} END"
        event = self._events.setdefault(text, f"event{len(self._events)}")
        place = ""
        if scan.window.is_shared:
            place = f"place{len(self._places)}"
            self._places[spread(scan.window, event, place)] = place
        start, end = bounds(scan.window, event, place)
        self._by_scan[self._key(scan)] = event, {**references, WINDOW_START: start, WINDOW_END: end}

    def references(self, scan: Scan) -> Mapping[str, str] | None:
        """All columns that expressions over the scan may name; None where it has no window."""
        found = self._by_scan.get(self._key(scan)) if scan.window is not None else None
        return None if found is None else found[1]

    def event(self, scan: Scan) -> str:
        return self._by_scan[self._key(scan)][0]

    @property
    def stages(self) -> list[tuple[str, ...]]:
        events = tuple(f"{text} AS {name}" for text, name in self._events.items())
        return [stage for stage in (events, tuple(self._places)) if stage]

    @property
    def events(self) -> tuple[str, ...]:
        return tuple(self._events.values())

    @staticmethod
    def _key(scan: Scan) -> tuple[str, str | None, Window]:
        assert scan.window is not None  # noqa: S101 - asked by the callers
        return scan.relation_id, scan.timestamp, scan.window


def event_us(scan: Scan, references: Mapping[str, str]) -> str:
    """NULL for what no calendar has: such a record belongs to no window."""
    column = next((each for each in scan.columns if each.name == scan.timestamp), None)
    if column is None:
        return "unix_micros(record_time)"
    text = references[column.name]
    if column.type.kind is Kind.BIGINT:
        return f"CASE WHEN {text} BETWEEN {EVENT_MS_MIN}L AND {EVENT_MS_MAX}L THEN {text} * 1000L END"
    return f"unix_micros(cast({text} as timestamp))"
