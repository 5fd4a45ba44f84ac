"""Functions that are known and refused: those whose value is not settled by the row, and those that come later."""

from __future__ import annotations

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.sql.calls import FUNCTIONS_HINT

_UNSETTLED = frozenset(
    [
        "current_time",
        "timeofday",
        "rand_integer",
        "proctime",
        "unix_timestamp",
        "current_user",
        "session_user",
        "user",
        "current_database",
        "current_schema",
        "txid_current",
        "setseed",
    ]
)
_WITHOUT_ARGUMENTS = frozenset(["current_timestamp", "localtime", "localtimestamp", "rand", "random"])
_LATER_AGGREGATES = frozenset(
    [
        "collect",
        "json_agg",
        "jsonb_agg",
        "json_object_agg",
        "jsonb_object_agg",
        "json_arrayagg",
        "json_objectagg",
        "any_value",
        "bit_and",
        "bit_or",
        "bit_xor",
        "corr",
        "covar_pop",
        "covar_samp",
        "regr_count",
        "regr_slope",
        "regr_intercept",
        "regr_r2",
        "regr_avgx",
        "regr_avgy",
        "regr_sxx",
        "regr_syy",
        "regr_sxy",
    ]
)
_LATER_WINDOWS = frozenset(
    [
        "row_number",
        "rank",
        "dense_rank",
        "percent_rank",
        "cume_dist",
        "ntile",
        "lag",
        "lead",
        "nth_value",
    ]
)
# Those of a GROUP BY, as Flink once had them and ksqlDB has.
_GROUP_WINDOWS = frozenset(["tumble", "hop", "cumulate", "session", "window_start", "window_end"])
_LATER = frozenset(
    [
        "match_rowtime",
        "unnest",
        "generate_series",
        "jsonb_path_query",
        "age",
        "xmlelement",
        "json_each",
        "jsonb_each",
        "regexp_matches",
        "regexp_split_to_table",
        "justify_days",
        "justify_hours",
        "justify_interval",
    ]
)


def needs_constant(what: str, position: int | None = None) -> SqlError:
    return SqlError(
        sqlstates.FEATURE_NOT_SUPPORTED,
        f"{what} must be a constant",
        hint="It is prepared once, when the query is made, and not for each record.",
        position=position,
    )


def refusal(name: str, position: int | None) -> SqlError | None:
    """The error for a known name that is not in the table, None for a name that is not known at all."""
    if name in _UNSETTLED:
        return SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"function {name}() is not supported in a continuous query",
            detail="Its value depends on when and where a row is computed, so that a row computed again would differ.",
            hint="Use a column of the record, or call it in the SELECT that reads the view. now() and random() may be "
            "in queries that write a stream.",
            position=position,
        )
    if name in _WITHOUT_ARGUMENTS:
        return SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"{name} with arguments is not supported in a continuous query",
            hint="There is no seed; of integers from 1 to 10 it is 1 + CAST(floor(random() * 10) AS INTEGER)."
            if name in ("rand", "random")
            else "Cut it yourself, as in CAST(date_trunc('milliseconds', now()) AS TIME).",
            position=position,
        )
    if name in _LATER_AGGREGATES:
        return SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"aggregate function {name} is not supported in a continuous query",
            hint="The aggregates of continuous queries are listed in docs/sql/functions.md; the SELECT over a view "
            "has more.",
            position=position,
        )
    if name in _LATER_WINDOWS:
        return SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"window function {name} is not supported in a continuous query",
            hint="Use it in the SELECT that reads the view.",
            position=position,
        )
    if name in _GROUP_WINDOWS:
        return SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"{name} is not a function of rows in a continuous query",
            hint="A window stands in FROM: FROM TUMBLE(stream, SIZE n unit) ... GROUP BY window_start, window_end.",
            position=position,
        )
    if name in _LATER:
        return SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"function {name} is not supported in a continuous query",
            hint=FUNCTIONS_HINT,
            position=position,
        )
    return None
