"""Ctrl-C and SIGTERM as one event that the demos wait on."""

from __future__ import annotations

import signal
import threading
from types import FrameType


class Stop:
    """Install it from the main thread. A second signal interrupts what is still going on."""

    def __init__(self) -> None:
        self._event = threading.Event()
        signal.signal(signal.SIGINT, self._on_signal)
        signal.signal(signal.SIGTERM, self._on_signal)

    def wait(self, seconds: float) -> bool:
        return self._event.wait(seconds)

    def asked(self) -> bool:
        return self._event.is_set()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._event.is_set():
            raise KeyboardInterrupt
        self._event.set()
