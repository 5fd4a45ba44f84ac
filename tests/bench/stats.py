"""Percentiles and rates, said the same way in every part."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least ``share`` of all do not exceed (nearest rank); no value is made up."""
    if not values:
        raise ValueError("no values")
    if not 0 < share <= 1:
        raise ValueError("a share lies between 0 and 1")
    ordered = sorted(values)
    return ordered[math.ceil(share * len(ordered)) - 1]


def latency_summary(values_ms: Sequence[float]) -> dict[str, float]:
    return {
        "n": len(values_ms),
        "p50_ms": round(percentile(values_ms, 0.5), 3),
        "p90_ms": round(percentile(values_ms, 0.9), 3),
        "p99_ms": round(percentile(values_ms, 0.99), 3),
        "max_ms": round(max(values_ms), 3),
    }


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def rate_after_first(points: Sequence[tuple[float, int]], total: int) -> float:
    """Events a second between the first moment at which anything was visible and the moment at which all was.

    ``points`` are (time in seconds, events visible). What the first look already shows is not counted as work.
    """
    seen = [(moment, visible) for moment, visible in points if visible > 0]
    if not seen:
        raise ValueError("nothing became visible")
    first_time, first_visible = seen[0]
    end_time = next((moment for moment, visible in seen if visible >= total), None)
    if end_time is None:
        raise ValueError(f"only {seen[-1][1]} of {total} events became visible")
    if end_time == first_time:
        raise ValueError("all events became visible at once: too few for a rate")
    return (total - first_visible) / (end_time - first_time)
