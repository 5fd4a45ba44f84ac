"""What keeps a query from going on, from the failure of an attempt until the query gets on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from mvserver.streaming.pipeline.attempts import LASTED_S


@dataclass(frozen=True)
class _Met:
    cause: str
    is_silence: bool
    at: float = 0.0  # by time.monotonic


class Stall:
    """Of what reads one source, attempt by attempt; each of its threads tells what it sees.

    A cause stands until something is committed. A look at a source that is well takes it away where the source was
    silent, where nothing is left to be read, or where an attempt has had nothing to do for long: so it is of a source
    whose end moves without records. All three hold only while an attempt reads: what ended the former one may end it
    too.
    """

    def __init__(self) -> None:
        self._met: _Met | None = None
        self._since: float | None = None  # when the present attempt began to read
        self._at_work: list[None] = []  # one for each who is; adding and taking are atomic

    @property
    def cause(self) -> str | None:
        met = self._met
        return None if met is None else met.cause

    @property
    def is_silence(self) -> bool:
        """Whether the cause is what the source says of itself: it does not answer."""
        met = self._met
        return met is not None and met.is_silence

    @property
    def running(self) -> bool:
        """Whether an attempt reads the source."""
        return self._since is not None

    @running.setter
    def running(self, running: bool) -> None:
        if running != self.running:
            self._since = time.monotonic() if running else None

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """As long as something is evaluated or written: whether it succeeds is not known before its end."""
        self._at_work.append(None)
        try:
            yield
        finally:
            self._at_work.pop()

    def failed(self, cause: str) -> None:
        self._met = _Met(cause, is_silence=False, at=time.monotonic())

    def silent(self, cause: str) -> None:
        """The source does not answer."""
        self._met = _Met(cause, is_silence=True, at=time.monotonic())

    def committed(self) -> None:
        self._met = None

    def seen_well(self, left: Callable[[], int | None]) -> None:
        """The source is well. ``left`` counts what is left to be read, None where that is not known; it is asked only
        where that matters."""
        met, since = self._met, self._since
        if met is None or since is None:
            return
        is_over = met.is_silence or self._is_idle_since(max(since, met.at)) or _is_none(left())
        if is_over and self._met is met:  # else another one was met since
            self._met = None

    def _is_idle_since(self, moment: float) -> bool:
        return not self._at_work and time.monotonic() - moment >= LASTED_S


def _is_none(left: int | None) -> bool:
    return left is not None and left <= 0
