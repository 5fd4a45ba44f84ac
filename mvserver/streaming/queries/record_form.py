"""Rows as records of a stream or changelog: a key, and a JSON object as value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from mvserver import sqlstates
from mvserver.compiler.plans import Projection
from mvserver.errors import SqlError
from mvserver.record_keys import field_of_key
from mvserver.sql.types import SqlType
from mvserver.streaming.batch.program import ViewInput
from mvserver.streaming.batch.record_encoding import RecordEncoder
from mvserver.streaming.queries.json_form import INSTANT_FORMAT, MOMENT_FORMAT, OF_RECORDS, json_value
from mvserver.streaming.queries.outgoing import AT_ONCE, OfSink, Pace, outbox_position
from spark_sinks.base import Position, SinkRecords, TransactionalSink
from spark_sinks.decode.columns import text
from spark_sinks.decode.partitions import folder_of
from spark_sinks.duckdb.changes.outbox import Pending

_JSON_OPTIONS = (
    f"map('ignoreNullFields', 'false', 'timestampFormat', '{INSTANT_FORMAT}', 'timestampNTZFormat', '{MOMENT_FORMAT}')"
)


@dataclass(frozen=True)
class RecordForm:
    """A :class:`Form`. ``encoder`` is for the rows of an outbox; Spark makes the values of the others."""

    open_sink: Callable[[], TransactionalSink]
    encoder: RecordEncoder
    pace: Pace = AT_ONCE

    def selected(self, view: ViewInput, plan: Projection) -> Sequence[str]:
        columns = {output.name: (name, output.type) for output, name in zip(plan.outputs, view.outputs, strict=True)}
        in_value = {name: columns[name] for name in self.encoder.in_value}
        folders = ", ".join(f"cast({columns[name][0]} as string)" for name in self.encoder.folders)
        return (
            f"{self._key(view, columns)} AS sink_key",
            f"CASE WHEN {view.flag} THEN {_object(in_value)} END AS sink_value",
            *([f"CASE WHEN {view.flag} THEN array({folders}) END AS sink_folder"] if folders else []),
            "unix_millis(record_time) AS sink_time",
            "position AS sink_place",
        )

    def _key(self, view: ViewInput, columns: Mapping[str, tuple[str, SqlType]]) -> str:
        """As :class:`RecordEncoder` makes it; a record without columns for it keeps the key that it came with."""
        names = self.encoder.key
        if not names:
            return "key"
        if self.encoder.key_is_plain:
            chosen = _primitive(columns[names[0]][0], self.encoder.key_bytes)
        else:
            chosen = _object({field_of_key(name): columns[name] for name in names})
            if self.encoder.key_may_lack:
                known = ", ".join(f"cast({columns[name][0]} as string)" for name in names)
                chosen = f"CASE WHEN coalesce({known}) IS NOT NULL THEN {chosen} END"
        return f"CASE WHEN {view.flag} THEN {chosen} END"

    def open(self, stopped: Callable[[], bool]) -> WritingRecords:
        return WritingRecords(self.open_sink(), self.encoder)


class WritingRecords(OfSink):
    """A :class:`Writing`."""

    def __init__(self, sink: TransactionalSink, encoder: RecordEncoder) -> None:
        super().__init__(sink)
        self._sink = sink
        self._encoder = encoder

    def write(self, table: pa.Table, position: Position) -> None:
        records = SinkRecords(
            table.column("sink_key").to_pylist(),
            table.column("sink_value").to_pylist(),
            table.column("sink_time").to_pylist(),
            _numbered(table.column("sink_place").to_pylist()),
            self._folders(table.column("sink_folder").to_pylist()) if self._encoder.folders else (),
        )
        self._sink.write(records, position)

    def send(self, pending: Pending, incarnation: str) -> None:
        rows = _rows(pending)
        keys: Sequence[bytes | None] = [self._encoder.key_of(row) for row in rows]
        values = [
            None if deleted else self._encoder.value_of(row) for deleted, row in zip(pending.deleted, rows, strict=True)
        ]
        places = [f"{incarnation}/{number}" for number in pending.numbers]
        folders = self._folders([self._encoder.folder_of(row) for row in rows]) if self._encoder.folders else ()
        records = SinkRecords(keys, values, [None] * len(rows), places, folders)
        self._sink.write(records, outbox_position(incarnation, pending.last))

    def _folders(self, values: Sequence[Sequence[str | None]]) -> Sequence[str]:
        return [folder_of(self._encoder.folders, each) for each in values]


def _rows(pending: Pending) -> list[dict[str, Any]]:
    try:
        rows: list[dict[str, Any]] = pending.rows.to_pylist()
    except (ValueError, OverflowError) as error:  # Python has no other years
        raise SqlError(sqlstates.DATETIME_FIELD_OVERFLOW, f"date or timestamp out of range: {OF_RECORDS}") from error
    return rows


def _object(columns: Mapping[str, tuple[str, SqlType]]) -> str:
    fields = ", ".join(f"{text(name)}, {json_value(kind, value)}" for name, (value, kind) in columns.items())
    return f"cast(to_json(named_struct({fields}), {_JSON_OPTIONS}) as binary)"


def _primitive(name: str, size: int | None) -> str:
    """Text as UTF-8, an integer of so many bytes big-endian: the last ones of it as a BIGINT."""
    if size is None:
        return f"cast(cast({name} as string) as binary)"
    return f"unhex(right(lpad(hex(cast({name} as bigint)), 16, '0'), {2 * size}))"


def _numbered(positions: list[str]) -> list[str]:
    """Records of one position (a file, or a record that makes several) are told apart by their order."""
    seen: dict[str, int] = {}
    places = []
    for position in positions:
        number = seen[position] = seen.get(position, -1) + 1
        places.append(f"{position}/{number}" if number else position)
    return places
