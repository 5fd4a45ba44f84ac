"""``CREATE MATERIALIZED VIEW … WITH (…)``: how long groups and windows take records, and how long rows are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mvserver import sqlstates
from mvserver.compiler.changelogs import over_changelog
from mvserver.compiler.plans import Aggregation, ContinuousPlan, Groups, Projection
from mvserver.compiler.source_properties import STATE_TTL
from mvserver.compiler.state_ttl import state_ttl, with_state_ttl
from mvserver.compiler.windows import WindowKind
from mvserver.errors import SqlError

GRACE = "window.grace.millis"
RETENTION = "retention.millis"
VIEW_PROPERTIES = (GRACE, RETENTION, STATE_TTL)


def with_view_properties(plan: ContinuousPlan, millis: Mapping[str, int]) -> ContinuousPlan:
    """The plan under the properties that are given; an error where they do not fit it."""
    if STATE_TTL in millis:
        plan = with_state_ttl(plan, millis[STATE_TTL])
    given = {key: value for key, value in millis.items() if key != STATE_TTL}
    if not given:
        return plan
    window = plan.scan.window
    groups = _groups(plan)
    if groups is not None and set(given) == {GRACE}:
        made = with_view_properties(groups, given)
        assert isinstance(made, Aggregation)  # noqa: S101 - as it was
        return replace(plan, scan=replace(plan.scan, derived=Groups(made)))
    if isinstance(plan, Projection) and set(given) == {RETENTION} and not over_changelog(plan):
        return replace(plan, retention_ms=given[RETENTION])
    if not isinstance(plan, Aggregation) or window is None or plan.forgetting or over_changelog(plan):
        return _without_window(plan, given)
    grace, retention = given.get(GRACE, 0), given.get(RETENTION)
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


def _groups(plan: ContinuousPlan) -> Aggregation | None:
    """The groups of windows that Spark computes with: a grace is theirs."""
    derived = plan.scan.derived
    return derived.plan if isinstance(plan, Projection) and isinstance(derived, Groups) else None


def _without_window(plan: ContinuousPlan, given: Mapping[str, int]) -> ContinuousPlan:
    """A group goes when nothing has come for it for the time of its retention, which is what forgetting it means."""
    of_changelog = over_changelog(plan) and plan.scan.window is not None  # whose windows are never closed
    if GRACE in given or isinstance(plan, Projection) or of_changelog:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f'property "{next(iter(given))}" needs an aggregation over a window',
            hint="Read FROM TUMBLE(stream, SIZE n unit) and GROUP BY window_start, window_end.",
        )
    if given[RETENTION] == 0:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f'property "{RETENTION}" must be at least 1',
            detail="A group without a window goes when it has had no record for so long.",
            hint="Without the property it stays for ever.",
        )
    return with_state_ttl(plan, given[RETENTION], RETENTION)


def view_properties(plan: ContinuousPlan) -> tuple[tuple[str, str], ...]:
    """What the catalog keeps of them."""
    windowed = plan if isinstance(plan, Aggregation) else _groups(plan)
    grace = windowed.grace_ms if windowed is not None and windowed.grace_ms else None
    kept = {GRACE: grace, RETENTION: plan.retention_ms, STATE_TTL: state_ttl(plan)}
    return tuple((key, str(value)) for key, value in kept.items() if value is not None)


def kept_properties(properties: Mapping[str, str]) -> dict[str, int]:
    """Those of a query of the catalog."""
    return {key: int(properties[key]) for key in VIEW_PROPERTIES if key in properties}
