"""A window of FROM as part of a scan, and the Spark text that says which windows a record belongs to.

All times are microseconds since 1970; windows begin at multiples of their step from there, as Flink's do.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

WINDOW_START = "window_start"
WINDOW_END = "window_end"

EVENT_MS_MIN, EVENT_MS_MAX = -62_135_596_800_000, 253_402_300_799_999  # the years 1 to 9999


class WindowKind(enum.Enum):
    TUMBLE = "tumble"
    HOP = "hop"
    CUMULATE = "cumulate"
    SESSION = "session"


@dataclass(frozen=True)
class Window:
    """``size_ms`` is the GAP of a session. ``step_ms`` is how far apart windows begin (TUMBLE: their size), how far
    apart those of CUMULATE end, and 0 for a session, whose columns ``partition_by`` names."""

    kind: WindowKind
    size_ms: int
    step_ms: int = 0
    partition_by: tuple[str, ...] = ()

    @property
    def is_shared(self) -> bool:
        """A record may belong to several of them."""
        return self.kind in (WindowKind.HOP, WindowKind.CUMULATE) and self.size_ms != self.step_ms

    @property
    def per_record_max(self) -> int:
        return -(-self.size_ms // self.step_ms) if self.step_ms else 1

    def __str__(self) -> str:
        name, size, step = self.kind.name, length(self.size_ms), length(self.step_ms)
        if self.kind is WindowKind.HOP:
            return f"{name} SIZE {size} ADVANCE BY {step}"
        if self.kind is WindowKind.CUMULATE:
            return f"{name} SIZE {size} STEP {step}"
        if self.kind is WindowKind.SESSION:
            by = f" PARTITION BY {', '.join(self.partition_by)}" if self.partition_by else ""
            return f"{name}{by} GAP {size}"
        return f"{name} SIZE {size}"


def length(ms: int) -> str:
    for unit, length in (("DAY", 86_400_000), ("HOUR", 3_600_000), ("MINUTE", 60_000), ("SECOND", 1_000)):
        if ms % length == 0:
            return f"{ms // length} {unit}{'S' if ms != length else ''}"
    return f"{ms} MILLISECOND{'S' if ms != 1 else ''}"


def spread(window: Window, event_us: str, name: str) -> str:
    """The generator that makes of a record one row for each of its windows: ``name`` is then what tells them apart."""
    size, step = window.size_ms * 1000, window.step_ms * 1000
    if window.kind is WindowKind.HOP:
        last = _floor(event_us, step)
        first = f"{_floor(f'({event_us} - {size}L)', step)} + {step}L"
        places = f"sequence({first}, {last}, {step}L)"
    else:
        begin = _floor(event_us, size)
        first = f"{_floor(event_us, step)} + {step}L"
        places = f"sequence({first}, {begin} + {size}L, {step}L)"
    return f"explode_outer(CASE WHEN {event_us} IS NOT NULL THEN {places} END) AS {name}"


def bounds(window: Window, event_us: str, place: str) -> tuple[str, str]:
    """``window_start`` and ``window_end`` as Spark text; ``place`` is what :func:`spread` named, where it did."""
    size = window.size_ms * 1000
    if window.kind is WindowKind.SESSION:
        begin, end = event_us, f"{event_us} + {size}L"  # of this one record: sessions grow where they are kept
    elif not window.is_shared:
        begin = _floor(event_us, size)
        end = f"{begin} + {size}L"
    elif window.kind is WindowKind.HOP:
        begin, end = place, f"{place} + {size}L"
    else:
        # A cumulating window may end where the next one begins.
        begin, end = _floor(f"({place} - 1L)", size), place
    return _timestamp(begin), _timestamp(end)


def _floor(number: str, unit: int) -> str:
    return f"({number} - pmod({number}, {unit}L))"


def _timestamp(us: str) -> str:
    return f"cast(timestamp_micros({us}) as timestamp_ntz)"
