"""``CREATE MATERIALIZED VIEW … WITH (…)``: how long windows take records, and how long rows are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mvserver import sqlstates
from mvserver.compiler.changelogs import over_changelog
from mvserver.compiler.plans import Aggregation, ContinuousPlan, Projection
from mvserver.compiler.windows import WindowKind
from mvserver.errors import SqlError

GRACE = "window.grace.millis"
RETENTION = "retention.millis"
VIEW_PROPERTIES = (GRACE, RETENTION)


def with_view_properties(plan: ContinuousPlan, millis: Mapping[str, int]) -> ContinuousPlan:
    """The plan under the properties that are given; 22023 where they do not fit it."""
    if not millis:
        return plan
    window = plan.scan.window
    if isinstance(plan, Projection) and set(millis) == {RETENTION} and not over_changelog(plan):
        return replace(plan, retention_ms=millis[RETENTION])
    if not isinstance(plan, Aggregation) or window is None:
        # Whether a group is found gone by its next record would depend on when a batch ended.
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f'property "{next(iter(millis))}" needs an aggregation over a window',
            hint="Read FROM TUMBLE(stream, SIZE n unit) and GROUP BY window_start, window_end.",
        )
    grace, retention = millis.get(GRACE, 0), millis.get(RETENTION)
    least = grace + (window.size_ms if window.kind is WindowKind.SESSION else 0)
    if retention is not None and retention < least:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f'property "{RETENTION}" must be at least {least}',
            detail="A window is removed no sooner than it is closed.",
            hint=f"'{GRACE}' is {grace}."
            + (" A session is closed one gap later." if window.kind is WindowKind.SESSION else ""),
        )
    return replace(plan, grace_ms=grace, retention_ms=retention)


def view_properties(plan: ContinuousPlan) -> tuple[tuple[str, str], ...]:
    """What the catalog keeps of them."""
    grace = [(GRACE, str(plan.grace_ms))] if isinstance(plan, Aggregation) and plan.grace_ms else []
    retention = [] if plan.retention_ms is None else [(RETENTION, str(plan.retention_ms))]
    return (*grace, *retention)


def kept_properties(properties: Mapping[str, str]) -> dict[str, int]:
    """Those of a query of the catalog."""
    return {key: int(properties[key]) for key in VIEW_PROPERTIES if key in properties}
