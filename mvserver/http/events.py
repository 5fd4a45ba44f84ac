"""Events: what a view's rows are, what became of them, as JSON and as frames of a stream. Made once for all readers."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from mvserver.errors import SqlError
from mvserver.front import Field, SnapshotPlace, ViewChanges
from mvserver.http.json_values import Numbers, RowWriter, text
from mvserver.http.status import body_of
from mvserver.types.oids import type_name

SNAPSHOT, CHANGE, RESET, END = b"snapshot", b"change", b"reset", b"end"
HEARTBEAT = b"3\r\n:\n\n\r\n"
_ZONE = "UTC"  # what is made once cannot follow each reader's zone


@dataclass(frozen=True, slots=True)
class Event:
    """``token`` is behind it, ``epoch`` the newest that it has. ``chunk`` is it as a piece of a stream of this view
    alone."""

    kind: bytes
    epoch: int
    token: str
    body: bytes
    chunk: bytes

    def with_id(self, position: str | None) -> bytes:
        """As a piece of a stream of several views."""
        return chunk(self.kind, self.body, position)


def event(kind: bytes, epoch: int, token: str, body: bytes) -> Event:
    return Event(kind, epoch, token, body, chunk(kind, body, token))


def chunk(kind: bytes, body: bytes, position: str | None) -> bytes:
    """An event of a stream, as a chunk of HTTP's."""
    head = b"" if position is None else b"id: " + position.encode() + b"\n"
    frame = b"%bevent: %b\ndata: %b\n\n" % (head, kind, body)
    return b"%x\r\n%b\r\n" % (len(frame), frame)


def reset_body(view: str, reason: SqlError) -> bytes:
    return b'{"view":%b,"reason":%b}' % (text(view), body_of(reason).strip())


def end_body(reason: SqlError) -> bytes:
    return body_of(reason).strip()


class Encoder:
    """Of one view, whose columns stay as they are."""

    def __init__(self, view: str, fields: Sequence[Field], key: Sequence[str]) -> None:
        self._view = text(view)
        self._key = json.dumps(list(key), ensure_ascii=False).encode("utf-8", "replace")
        columns = [{"name": field.name, "type": type_name(field.type_oid)} for field in fields]
        self._columns = json.dumps(columns, ensure_ascii=False).encode("utf-8", "replace")
        self._names = [str(at) for at in range(len(fields))]
        self._rows = RowWriter(fields, _ZONE, Numbers.SAFE, as_arrays=False)

    def rows(self, batch: Any) -> bytes:
        """Some of a snapshot's, separated by commas."""
        return b",".join(self._rows.rows(batch))

    def snapshot(self, place: SnapshotPlace, token: str, rows: Iterable[bytes]) -> Event:
        body = b'{"view":%b,"epoch":%d,"at":%b,"key":%b,"columns":%b,"rows":[%b]}' % (
            self._view, place.shown_epoch, _moment(place.shown_at), self._key, self._columns,
            b",".join(filter(None, rows)),
        )  # fmt: skip
        return event(SNAPSHOT, place.latest_epoch, token, body)

    def changes(self, piece: ViewChanges) -> bytes:
        """Some of an epoch's, separated by commas."""
        parts = []
        for batch in piece.rows.to_batches():
            kinds = batch.column(0).to_pylist()
            rows = self._rows.rows(pa.RecordBatch.from_arrays(batch.columns[1:], names=self._names))
            parts += [b'{"op":"%b","row":%b}' % (kind.encode(), row) for kind, row in zip(kinds, rows, strict=True)]
        return b",".join(parts)

    def change(self, last: ViewChanges, changes: Iterable[bytes]) -> Event:
        """A whole epoch; ``last`` is its last piece."""
        body = b'{"view":%b,"epoch":%d,"at":%b,"changes":[%b]}' % (
            self._view, last.epoch, _moment(last.at), b",".join(filter(None, changes)),
        )  # fmt: skip
        return event(CHANGE, last.epoch, last.last_token, body)


def _moment(at: dt.datetime) -> bytes:
    return b'"' + at.astimezone(dt.UTC).isoformat(timespec="microseconds").encode() + b'"'
