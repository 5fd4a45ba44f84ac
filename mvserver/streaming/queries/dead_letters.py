"""Dead letters: the records of a relation that cannot be decoded, written as they were to a topic of their own.

A query of its own reads the relation's source and writes what is rejected. So each record is there exactly once,
however many queries reject it, and its topic is written as those of other queries are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from mvserver.compiler.plans import Scan
from mvserver.streaming.batch.program import Program, rejected_column
from mvserver.streaming.batch.scan_decoding import decode_scan
from mvserver.streaming.queries.outgoing import AT_ONCE, OfSink, Pace
from spark_sinks.base import METADATA, RECORD_HEADERS, Header, Position, SinkRecords, TransactionalSink
from spark_sinks.oversize import unmarked
from spark_sinks.schema_registry.base import NO_SCHEMAS, KnownSchemas

_REJECTED = "x0"


@dataclass(frozen=True)
class DeadLetters:
    """Both what is evaluated of the records of ``scan``, and the form in which it is written."""

    scan: Scan
    open_sink: Callable[[], TransactionalSink]
    pace: Pace = AT_ONCE

    def program(self, schemas: KnownSchemas = NO_SCHEMAS) -> Program:
        decoded = decode_scan(self.scan, "r0_", trial=False, schemas=schemas)
        assert decoded.reason is not None  # noqa: S101 - this is no trial
        return Program(
            stages=decoded.stages,
            flags=(),
            columns=(
                rejected_column(self.scan, decoded.reason, _REJECTED),
                *(f"{name} AS letter_{name}" for name in ("value", METADATA, RECORD_HEADERS)),
            ),
            rejected=((self.scan.relation_id, _REJECTED),),
            group_columns=(),
            partial_columns=(),
            views=(),
            keep=f"NOT {decoded.known}",
            functions=decoded.functions,
        )

    def selected(self, program: Program) -> Sequence[str]:
        return (
            f"{_REJECTED} IS NOT NULL AS passing",
            "key AS sink_key",
            "letter_value AS sink_value",
            f"{_REJECTED}.reason AS reason",
            "position AS sink_place",
            f"letter_{RECORD_HEADERS} AS headers",
            *(f"letter_{METADATA}.{field} AS {field}" for field in ("topic", "partition", "offset", "timestamp")),
        )

    def open(self, stopped: Callable[[], bool]) -> WritingDeadLetters:
        return WritingDeadLetters(self.open_sink())


class WritingDeadLetters(OfSink):
    """A :class:`WritingBatches`. The time of a letter is that of its writing, so that the topic keeps it."""

    def __init__(self, sink: TransactionalSink) -> None:
        super().__init__(sink)
        self._sink = sink

    def write(self, table: pa.Table, position: Position) -> None:
        rows = table.to_pylist()
        keys, values = ([_original(row[part]) for row in rows] for part in ("sink_key", "sink_value"))
        headers = [_headers(row) for row in rows]
        places = [row["sink_place"] for row in rows]
        self._sink.write(SinkRecords(keys, values, [None] * len(rows), places, headers=headers), position)


def _original(part: bytes | None) -> bytes | None:
    """Of what is too large to be read there is its beginning."""
    too_large = unmarked(part)
    return part if too_large is None else too_large[0]


def _headers(row: dict[str, Any]) -> Sequence[Header]:
    """Those of the record, and behind them where it was and why it is here."""
    too_large = unmarked(row["sink_value"]) or unmarked(row["sink_key"])
    told: dict[str, Any] = {f"error.{name}": row[name] for name in ("topic", "partition", "offset", "timestamp")}
    told["error.reason"] = row["reason"] if too_large is None else too_large[2]
    if too_large is not None:
        told["error.truncated"] = too_large[1]
    own = [(each["key"], each["value"]) for each in row["headers"] or ()]
    return [*own, *((name, str(value).encode()) for name, value in told.items() if value is not None)]
