"""The words in which continuous queries refuse a part of a SELECT: all rooms of the compiler say it alike."""

from __future__ import annotations

from sqlglot import exp

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.sql.nodes import position_of


def refused(what: str, node: exp.Expression, hint: str) -> SqlError:
    return SqlError(
        sqlstates.FEATURE_NOT_SUPPORTED,
        f"{what} is not supported in a continuous query",
        hint=hint,
        position=position_of(node),
    )
