"""The state of Spark at a moment, in the words that queries and statements show, and the error of a lost Spark."""

from __future__ import annotations

from dataclasses import dataclass

from mvserver import sqlstates
from mvserver.errors import SqlError


@dataclass(frozen=True)
class SparkState:
    """At most one of them holds; none while Spark is well."""

    starting: bool = False  # for the first time since the server was started
    interruption: str | None = None  # why it does not compute now; it goes on by itself
    problem: str | None = None  # why it does not compute, and will not before the server is started anew


class SparkLostError(SqlError):
    """Spark ended while something was computed. What was not committed is computed again."""

    def __init__(self, cause: str) -> None:
        super().__init__(
            sqlstates.CANNOT_CONNECT_NOW,
            "Spark ended while it was needed",
            detail=f"{cause}.",
            hint="Try again in a few seconds. Existing views can be read meanwhile.",
        )
