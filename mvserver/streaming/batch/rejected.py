"""Rejected records as Spark delivered them, made rows of the rejected-rows table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spark_sinks.base import SourceReader
from spark_sinks.duckdb.ledger.ledger import RejectedRow
from spark_sinks.oversize import unmarked


def rejected_rows(
    table: pa.Table, columns: Sequence[tuple[str, str]], reader: SourceReader
) -> tuple[tuple[RejectedRow, ...], Mapping[str, int]]:
    """``columns`` are (relation id, struct column); returns the rows and their number by relation id."""
    rows: list[RejectedRow] = []
    counts: dict[str, int] = {}
    for relation_id, column in columns:
        values = table.column(column)
        records = [] if values.null_count == len(values) else values.filter(pc.is_valid(values)).to_pylist()
        counts[relation_id] = len(records)
        if records:
            places = reader.rejected_positions([(r["position"], r["raw"]) for r in records])
            rows.extend(_row(relation_id, place, record) for place, record in zip(places, records, strict=True))
    return tuple(rows), counts


def _row(relation_id: str, place: str, record: Mapping[str, Any]) -> RejectedRow:
    too_large = unmarked(record["raw"])
    if too_large is None:
        return RejectedRow(relation_id, place, record["raw"], record["raw_bytes"], record["reason"])
    return RejectedRow(relation_id, place, *too_large)
