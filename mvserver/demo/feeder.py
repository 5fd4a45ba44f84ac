"""Clicks in many small files, as a live source would leave them, and when each became visible in the views.

A file is written aside and renamed, so no reader sees half of one. The truth is counted before the file appears; the
check is made after the feeder has ended, so that order does not matter to it.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from pathlib import Path

from mvserver.demo.clicks import UNDECODABLE, ClickGenerator, Truth

FILES_PER_S = 5
CLICKS_PER_FILE = 120  # 600 a second
UNDECODABLE_IN_FILE = 4


class Feeder:
    """Writes until stopped, at a steady rate; a late file is followed by the next at once, so the rate holds."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.truth = Truth()
        self.files = 0
        self.undecodable = 0
        self.error: Exception | None = None
        self._directory = directory
        self._generator = ClickGenerator(seed)
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._unseen: deque[tuple[int, int]] = deque()  # (clicks fed up to here, time of the newest, ms)
        self._thread = threading.Thread(target=self._run, name="feeder", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Returns when the last file is in place."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    @property
    def fed(self) -> int:
        with self._lock:
            return self.truth.total

    def became_visible(self, visible: int, now_ms: float) -> list[float]:
        """Given how many clicks the views show now: the age of the newest click of each file that is new in them."""
        ages = []
        with self._lock:
            while self._unseen and self._unseen[0][0] <= visible:
                ages.append(now_ms - self._unseen.popleft()[1])
        return ages

    def _run(self) -> None:
        try:
            begin = time.time()
            while not self._stop.wait(max(0.0, begin + (self.files + 1) / FILES_PER_S - time.time())):
                self._write_file()
        except OSError as error:
            self.error = error

    def _write_file(self) -> None:
        newest = int(time.time() * 1000)
        spread = 1000 / FILES_PER_S / CLICKS_PER_FILE  # the clicks of a file happened since the file before it
        times = [int(newest - spread * (CLICKS_PER_FILE - 1 - number)) for number in range(CLICKS_PER_FILE)]
        clicks = self._generator.clicks(times)
        lines = [click.line() for click in clicks]
        if self.files == UNDECODABLE_IN_FILE:
            lines.insert(CLICKS_PER_FILE // 2, UNDECODABLE + b"\n")
            self.undecodable += 1
        name = f"clicks-{self.files:06d}.json"
        hidden = self._directory / f".{name}"
        hidden.write_bytes(b"".join(lines))
        with self._lock:
            self.truth.add(clicks)
            self._unseen.append((self.truth.total, newest))
            self.files += 1
        hidden.rename(self._directory / name)
