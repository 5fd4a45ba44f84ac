"""Notices in PostgreSQL's words."""

from __future__ import annotations

from collections.abc import Sequence

from mvserver import sqlstates
from mvserver.front import Notice
from mvserver.session.context import SessionContext

_LINES_MAX = 100


def skipped(context: SessionContext, sqlstate: str, message: str) -> None:
    """For IF NOT EXISTS."""
    context.notices.append(Notice("NOTICE", sqlstate, f"{message}, skipping"))


def missing(context: SessionContext, message: str) -> None:
    """For IF EXISTS, which has no SQLSTATE of its own."""
    skipped(context, sqlstates.SUCCESSFUL_COMPLETION, message)


def warning(context: SessionContext, message: str) -> None:
    context.notices.append(Notice("WARNING", sqlstates.WARNING, message))


def cascades(context: SessionContext, objects: Sequence[str]) -> None:
    """``objects`` are what falls with the object that was named, e.g. ``materialized view v``."""
    if len(objects) == 1:
        context.notice(f"drop cascades to {objects[0]}")
    elif objects:
        shown = [f"drop cascades to {name}" for name in objects[:_LINES_MAX]]
        if len(objects) > _LINES_MAX:
            shown.append(f"and {len(objects) - _LINES_MAX} other objects (see server log for list)")
        context.notice(f"drop cascades to {len(objects)} other objects", detail="\n".join(shown))
