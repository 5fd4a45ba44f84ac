"""The requests of the protocol engine to the code that drives it."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


class Signal(enum.Enum):
    NEED_INPUT = enum.auto()  # feed bytes, then advance
    FLUSH = enum.auto()  # much output waits: send it, then advance when the client has taken some
    START_TLS = enum.auto()  # send the output, shake hands, then advance; nothing that came in clear may be fed
    DONE = enum.auto()  # send the output and hang up


@dataclass(frozen=True, slots=True)
class BlockingCall:
    """A call that may block: run it where blocking is allowed and hand its outcome to ``finish`` or ``fail``."""

    call: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class CancelOther:
    """The client of another connection wants its statement stopped; this one is DONE after that."""

    process: int
    key: bytes


Action = Signal | BlockingCall | CancelOther
