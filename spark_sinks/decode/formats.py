"""Which formats there are; a Parquet record arrives typed, so only its NOT NULLs are left to check."""

from __future__ import annotations

from collections.abc import Sequence

from spark_sinks.decode.columns import DecodeColumn, Decoded, null_reason, parquet_column
from spark_sinks.decode.csv_format import decode_csv
from spark_sinks.decode.json_format import decode_json, decode_json_trial

_LINE_FORMATS = {"json": decode_json, "csv": decode_csv}


TYPED_FORMATS = ("parquet", "rows")  # records that Spark has as columns already; rows are the server's own


def supported_formats() -> tuple[str, ...]:
    return (*_LINE_FORMATS, "parquet")


def decode(
    value_format: str, columns: Sequence[DecodeColumn], value: str, prefix: str, *, trial: bool = False
) -> Decoded:
    """The stages for one relation; ``prefix`` keeps its columns apart from those of other relations. With ``trial``,
    a cheaper decoder where the format has one: see :class:`Decoded`."""
    if trial and value_format == "json":
        return decode_json_trial(columns, value, prefix)
    if value_format in TYPED_FORMATS:
        return _decode_parquet(columns, prefix)
    return _LINE_FORMATS[value_format](columns, value, prefix)


def _decode_parquet(columns: Sequence[DecodeColumn], prefix: str) -> Decoded:
    reason = f"{prefix}w"
    tests = [f"WHEN {parquet_column(c.name)} IS NULL THEN {null_reason(c)}" for c in columns if c.not_null]
    test = f"CASE {' '.join(tests)} END" if tests else "cast(NULL as string)"
    return Decoded(
        stages=((f"{test} AS {reason}",),),
        columns=tuple((c.name, parquet_column(c.name)) for c in columns),
        good=f"({reason} IS NULL)",
        reason=reason,
    )
