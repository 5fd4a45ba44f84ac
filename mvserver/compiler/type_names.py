"""Types as PostgreSQL's error messages spell them."""

from __future__ import annotations

from mvserver.sql.types import Kind, SqlType


def postgres_name(type_: SqlType) -> str:
    if type_.kind is Kind.ARRAY and type_.element is not None:
        return f"{postgres_name(type_.element)}[]"
    if type_.kind is Kind.VARCHAR and type_.length is not None:
        return "character varying"
    return type_.kind.row.name or str(type_).lower()
