"""The server's own rows, which a query reads of another's: they are typed, and of their declared types."""

from __future__ import annotations

from collections.abc import Sequence

from spark_sinks.decode.columns import DecodeColumn, Decoded, first_reason, null_reason, parquet_column
from spark_sinks.decode.format import Format


def decode_rows(columns: Sequence[DecodeColumn], value: str, prefix: str) -> Decoded:
    reason = f"{prefix}w"
    tests = [f"WHEN {parquet_column(c.name)} IS NULL THEN {null_reason(c)}" for c in columns if c.not_null]
    return Decoded(
        stages=((f"{first_reason(tests)} AS {reason}",),),
        columns=tuple((c.name, parquet_column(c.name)) for c in columns),
        good=f"({reason} IS NULL)",
        reason=reason,
    )


ROWS = Format("rows", decode_rows, typed_by_spark=True, declared=False)
