"""Which formats there are."""

from __future__ import annotations

from collections.abc import Sequence

from spark_sinks.decode.columns import DecodeColumn, Decoded
from spark_sinks.decode.csv_format import decode_csv
from spark_sinks.decode.json_format import decode_json, decode_json_trial
from spark_sinks.decode.parquet_format import decode_parquet, decode_rows

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
        return (decode_parquet if value_format == "parquet" else decode_rows)(columns, prefix)
    return _LINE_FORMATS[value_format](columns, value, prefix)
