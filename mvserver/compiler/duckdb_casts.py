"""The casts that finishing expressions may use: between numbers, with the meaning that ``casts`` gives Spark."""

from __future__ import annotations

from mvserver.compiler.duckdb_types import duckdb_type
from mvserver.sql.types import Kind, SqlType


def can_cast(source: SqlType, target: SqlType, *, safe: bool) -> bool:
    if not source.is_numeric or not target.is_numeric:
        return source == target
    return not (target.kind is Kind.DECIMAL and source.is_approximate)


def cast_text(text: str, source: SqlType, target: SqlType, *, safe: bool) -> str:
    """DuckDB rounds decimals half away from zero and doubles half to even on their way to integers, as we do."""
    return f"{'TRY_CAST' if safe else 'CAST'}({text} AS {duckdb_type(target)})"
