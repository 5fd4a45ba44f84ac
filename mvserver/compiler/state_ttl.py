"""``state.ttl.millis``: groups that are forgotten when nothing has come for them for so long.

When a group begins anew must not depend on what else is read meanwhile. So the event times of its own records tell:
such a group is a SESSION of that gap, whose bounds nobody sees and of which the latest is shown, until the watermark
has passed its end.
"""

from __future__ import annotations

from dataclasses import replace

from mvserver import sqlstates
from mvserver.compiler.changelogs import over_changelog
from mvserver.compiler.plans import PLAIN, TIMED, Aggregation, ContinuousPlan, Groups
from mvserver.compiler.source_properties import STATE_TTL
from mvserver.compiler.windows import WINDOW_END, WINDOW_START, Window, WindowKind
from mvserver.errors import SqlError


def state_ttl(plan: ContinuousPlan) -> int | None:
    """After how many milliseconds its groups are forgotten; None: never."""
    if not isinstance(plan, Aggregation) or not plan.forgetting or plan.scan.window is None:
        return None
    return plan.scan.window.size_ms


def with_state_ttl(plan: ContinuousPlan, ttl_ms: int, given_as: str = STATE_TTL) -> ContinuousPlan:
    """The plan with groups that are forgotten; 0 is for ever. ``given_as`` is the property that says so."""
    if isinstance(plan, Aggregation):
        return forgetting(plan, ttl_ms, given_as)
    if ttl_ms:
        _check_scan(plan, given_as)
        raise _without_groups(given_as)
    return plan


def forgetting(plan: Aggregation, ttl_ms: int, given_as: str = STATE_TTL) -> Aggregation:
    known = state_ttl(plan)
    if known is not None and known != ttl_ms:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f'property "{given_as}" is {ttl_ms}, but the groups are forgotten after {known} ms already',
            hint="Give the time once.",
        )
    if known is not None or ttl_ms == 0:
        return plan
    _check_scan(plan, given_as)
    _check_groups(plan, given_as)
    return replace(plan, scan=replace(plan.scan, window=Window(WindowKind.SESSION, ttl_ms)), forgetting=True)


def _check_scan(plan: ContinuousPlan, given_as: str) -> None:
    scan = plan.scan
    if scan.window is not None:
        raise _unsupported(
            given_as, "over a window", "The end of a window says when it goes.", "Give 'retention.millis' instead."
        )
    if isinstance(scan.derived, Groups):
        raise _unsupported(
            given_as,
            "over groups",
            "What they give counts until they change or are forgotten.",
            "Give it to the view whose groups these are.",
        )
    if over_changelog(plan):
        raise _unsupported(
            given_as, "over a changelog", "Its rows count until they are replaced or deleted.", "Group a stream."
        )
    if scan.derived is not None:
        raise _unsupported(
            given_as,
            "over a join or UNION ALL",
            "Which of its rows come late would depend on how its sources are read beside each other.",
            "Write it to a stream with CREATE STREAM ... AS, and read that.",
        )
    taken = next((each.name for each in scan.columns if each.name in (WINDOW_START, WINDOW_END)), None)
    if taken is not None:
        raise SqlError(
            sqlstates.DUPLICATE_COLUMN,
            f'the stream has a column "{taken}" already, as the bounds of a group in time are called',
            hint="Declare a stream over the same entity without it.",
        )


def _check_groups(plan: Aggregation, given_as: str) -> None:
    if not plan.keys:
        raise _without_groups(given_as)
    if plan.grouping_sets:
        raise _unsupported(
            given_as, "over grouping sets", "Each of the sets would have times of its own.", "Create a view for each."
        )
    if any(call.distinct or call.function not in PLAIN | TIMED for call in plan.aggregates):
        raise _unsupported(
            given_as,
            "with DISTINCT in an aggregate, or aggregates that keep their values",
            None,
            "Use TUMBLE, HOP or CUMULATE, or keep the records in a view and aggregate where you read it.",
        )


def _without_groups(given_as: str) -> SqlError:
    return SqlError(
        sqlstates.FEATURE_NOT_SUPPORTED,
        f'property "{given_as}" needs GROUP BY or DISTINCT',
        detail="It says when a group is forgotten.",
        hint="The rows of a view that does not group have 'retention.millis'.",
    )


def _unsupported(given_as: str, what: str, detail: str | None, hint: str) -> SqlError:
    return SqlError(
        sqlstates.FEATURE_NOT_SUPPORTED, f'property "{given_as}" is not supported {what}', detail=detail, hint=hint
    )
