"""Many epochs of a view as one event: what has gone and what has come since, without what was there in between."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.http.events import CHANGE, Event, event

_HEAD = re.compile(r'(\{"view":"(?:[^"\\]|\\.)*","epoch":\d+,"at":"[^"]*","changes":\[)')
_ROW_AT = len('{"op":"+I","row":')
_OP_AT = len('{"op":"')
_ADDED = frozenset({"+I", "+U"})
_DECODER = json.JSONDecoder(parse_float=str, parse_int=str)  # a number is its text


class Coalescer:
    """Of one view. ``key`` are the columns that tell rows apart, if any do. It reads JSON: not for the event loop."""

    def __init__(self, key: Sequence[str]) -> None:
        self._key = key
        self._rows: dict[str, int] = {}  # a row's text, and how many more or fewer there are of it
        self._bytes = 0
        self._read = 0
        self._last: Event | None = None

    def add(self, given: Event) -> None:
        """The next epoch. Raises 72000 where there is too much to be worth more than the rows as they are."""
        self._last = given
        self._read += len(given.body)
        for op, row in _changes(given.body.decode()):
            before = self._rows.get(row, 0)
            now = before + (1 if op in _ADDED else -1)
            self._bytes += (abs(now) - abs(before)) * (_ROW_AT + len(row))
            if now:
                self._rows[row] = now
            else:
                del self._rows[row]
        if self._bytes > limits.HTTP_CHANGES_BYTES_MAX or self._read > limits.HTTP_COALESCED_BYTES_MAX:
            raise SqlError(sqlstates.SNAPSHOT_TOO_OLD, "the changes since then are more than the rows are worth")

    def event(self) -> Event:
        """All that was added as one; at least one event was."""
        last = self._last
        assert last is not None  # noqa: S101 - as the docstring says
        head = _HEAD.match(last.body.decode())
        assert head is not None  # noqa: S101 - as the encoder writes it
        changes = ",".join(f'{{"op":"{op}","row":{row}}}' for op, row in self._net())
        return event(CHANGE, last.epoch, last.token, f"{head[1]}{changes}]}}".encode())

    def _net(self) -> Iterator[tuple[str, str]]:
        """A row that has taken the place of another one stands behind it."""
        by_key: dict[str, tuple[list[str], list[str]]] = {}
        for row, count in self._rows.items():
            gone, come = by_key.setdefault(self._key_of(row), ([], []))
            (come if count > 0 else gone).extend([row] * abs(count))
        for gone, come in by_key.values():
            replaced = len(gone) == len(come) == 1
            yield from (("-U" if replaced else "-D", row) for row in gone)
            yield from (("+U" if replaced else "+I", row) for row in come)

    def _key_of(self, row: str) -> str:
        if not self._key:
            return ""
        values = _DECODER.decode(row)
        return repr([values[name] for name in self._key])


def coalesced(key: Sequence[str], events: Iterable[Event]) -> Event:
    """Some epochs in order as one."""
    made = Coalescer(key)
    for each in events:
        made.add(each)
    return made.event()


def _changes(body: str) -> Iterator[tuple[str, str]]:
    """The kinds and the texts of the rows of an event, as the encoder writes it."""
    head = _HEAD.match(body)
    assert head is not None  # noqa: S101 - as above
    at = head.end()
    while body[at] != "]":
        at += body[at] == ","
        _, end = _DECODER.raw_decode(body, at + _ROW_AT)
        yield body[at + _OP_AT : at + _OP_AT + 2], body[at + _ROW_AT : end]
        at = end + 1
