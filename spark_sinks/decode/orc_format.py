"""Rows of ORC files, which are typed as those of Parquet files are."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.base import DeclaredColumn
from spark_sinks.decode.format import Format
from spark_sinks.decode.parquet_format import decode_parquet

_TIME = re.compile(r"(?<![\w\"])TIME(?![\w\"])")  # the type, by itself or inside another one


def _check(columns: Sequence[DeclaredColumn]) -> None:
    for column in columns:
        if _TIME.search(column.type):
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f'column "{column.name}" of type {column.type} is not supported in value.format "orc"',
                hint="ORC has no times of day: declare the type that the files have.",
            )


ORC = Format("orc", decode_parquet, typed_by_spark=True, check=_check)
