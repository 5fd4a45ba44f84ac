"""The casts that finishing expressions may use: between numbers, with the meaning that ``casts`` gives Spark."""

from __future__ import annotations

from mvserver import sqlstates
from mvserver.compiler.capabilities.duckdb_decimals import failure
from mvserver.compiler.duckdb_types import duckdb_type
from mvserver.sql.types import Kind, SqlType


def can_cast(source: SqlType, target: SqlType, *, safe: bool) -> bool:
    if not source.is_numeric or not target.is_numeric:
        return source == target
    return not (target.kind is Kind.DECIMAL and source.is_approximate)


def cast_text(text: str, source: SqlType, target: SqlType, *, safe: bool) -> str:
    """DuckDB rounds decimals half away from zero and doubles half to even on their way to integers, as we do."""
    cast = "TRY_CAST" if safe else "CAST"
    if target.kind is Kind.FLOAT and source.kind in (Kind.DOUBLE, Kind.DECIMAL):
        real = f"{cast}(mv_wide AS FLOAT)"
        failed = "NULL" if safe else failure(sqlstates.NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: underflow")
        checked = f"CASE WHEN {real} = 0 AND mv_wide <> 0 THEN {failed} ELSE {real} END"
        return f"list_transform([{text}], lambda mv_wide: {checked})[1]"
    return f"{cast}({text} AS {duckdb_type(target)})"
