"""Why a live lane ends."""

from __future__ import annotations


class LaneEnded(Exception):  # noqa: N818 - not an error: the batch lane goes on from the ledger
    """``at_once``: the lane may be tried again without delay."""

    def __init__(self, reason: str, *, at_once: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.at_once = at_once


class TaskGone(LaneEnded):
    """The connection to a task of Spark's broke: Spark may know more."""


class LiveRefused(LaneEnded):
    """Spark does not run these queries live."""
