"""The HTTP front end alone, over a view that changes at a fixed rate: ``python -m tests.bench.event_server RATE``.

Prints its port; ends with its input. Spark, which commits some epochs a second, is none of what is measured.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from mvserver.front import Field, ViewReader
from mvserver.http.server import HttpServer
from tests.wire.toy import ToyBackend, ToySession

_ROWS = 12  # of the view; each epoch changes one
_FIELDS = (Field("page", 25), Field("visits", 20))
CONNECTIONS = 12_000


def _rows(numbers: Sequence[int], visits: int) -> list[Any]:
    return [pa.array([f"/page-{n}" for n in numbers]), pa.array([visits] * len(numbers), pa.int64())]


@dataclass(frozen=True)
class Place:
    latest_epoch: int
    shown_at: dt.datetime

    @property
    def shown_epoch(self) -> int:
        return self.latest_epoch


@dataclass(frozen=True)
class Epoch:
    epoch: int
    at: dt.datetime
    rows: Any
    complete: bool = True

    @property
    def last_token(self) -> str:
        return f"0123456789abcdef-{self.epoch:x}"


class Changing:
    """One reader; epoch n begins at its time, whoever reads."""

    def __init__(self, rate: float, began: float) -> None:
        self._period = 1 / rate if rate else 1e9
        self._began = began
        self._stop = threading.Event()
        self._epoch = self._now()
        self.place: Place | None = Place(self._epoch, dt.datetime.now(dt.UTC))

    def _now(self) -> int:
        return int((time.monotonic() - self._began) / self._period)

    @property
    def token(self) -> str:
        return f"0123456789abcdef-{self._epoch:x}"

    def snapshot(self) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_arrays(_rows(range(_ROWS), self._epoch), names=["page", "visits"])

    def wait(self, seconds: float | None) -> bool:
        due = self._began + (self._epoch + 1) * self._period - time.monotonic()
        self._stop.wait(max(0.0, min(due, 60.0 if seconds is None else seconds)))
        return self._now() > self._epoch

    def take(self) -> Sequence[Epoch]:
        self._epoch += 1
        page = [self._epoch % _ROWS] * 2
        both = pa.table([pa.array(["-U", "+U"]), *_rows(page, self._epoch)], names=["mv_op", "page", "visits"])
        return [Epoch(self._epoch, dt.datetime.now(dt.UTC), both)]

    def interrupt(self) -> None:
        self._stop.set()

    def close(self) -> None:
        """Nothing is held."""


class Views:
    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._began = time.monotonic()

    def is_view(self, database: str, schema: str, name: str) -> bool:
        return True

    def hides_rows(self, database: str, schema: str, name: str, role: str) -> bool:
        return False

    def version(self, database: str, schema: str, name: str) -> str | None:
        return None

    def generation(self) -> int:
        return 1

    def key(self, database: str, schema: str, name: str) -> Sequence[str]:
        return ("page",)

    def visible_rows(self, *asked: object) -> None:
        return None

    def watch(
        self, database: str, schema: str, name: str, since: str | None, *, snapshot: bool, visible: object = None
    ) -> ViewReader:
        return Changing(self._rate, self._began)


class _Session(ToySession):
    def _fields(self, text: str) -> tuple[Field, ...] | None:
        return _FIELDS


class _Backend(ToyBackend):
    def open_session(self, startup: Any) -> ToySession:
        return _Session(self, startup)


class _NoTokens:
    def role_of(self, token: str) -> str | None:
        return None


async def _serve(rate: float) -> None:
    server = HttpServer(
        _Backend(), Views(rate), _NoTokens(), "127.0.0.1", 0, check=None, problem=lambda: None,
        connections_max=CONNECTIONS,
    )  # fmt: skip
    await server.start()
    print(server.port, flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    import uvloop

    uvloop.run(_serve(float(sys.argv[1])))
