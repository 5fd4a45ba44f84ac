"""A thread that could not be started when it was first needed is started the next time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from mvserver.failures import as_sql_error
from mvserver.serving.engine.memory_watch import MemoryWatch
from mvserver.session.deadlines import Deadlines
from mvserver.session.reads.watchdog import Watchdog


def _time_out(deadlines: Deadlines) -> None:
    deadlines.after(60.0, lambda: None)


def _run_at_once(watchdog: Watchdog) -> None:
    with watchdog.watching(lambda: None):
        assert watchdog._held is not None


def _measure(watch: MemoryWatch) -> None:
    watch.ended(watch.begin(lambda: None))


@pytest.mark.parametrize(
    ("made", "used"),
    [
        (Deadlines(), _time_out),
        (Watchdog(), _run_at_once),
        (MemoryWatch(lambda: None, 1), _measure),
    ],
    ids=["statement_timeout", "the event loop", "query_memory_limit"],
)
def test_a_thread_is_tried_again(made: Any, used: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a container allows no more threads for a moment: statement_timeout ended no statement any more."""

    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refused)
        with pytest.raises(RuntimeError):
            used(made)
    used(made)
    assert made._thread.is_alive()
    if isinstance(made, Watchdog):
        assert made._held is None
    else:
        made.close()


def test_want_of_files_and_threads_is_told() -> None:
    told = [
        as_sql_error(error) for error in (OSError(24, "Too many open files"), RuntimeError("can't start new thread"))
    ]
    assert [(error.sqlstate, error.message) for error in told] == [
        ("53000", "the server cannot open more files at the moment"),
        ("53000", "the server cannot start more threads at the moment"),
    ]
    assert as_sql_error(OSError(5, "Input/output error")).sqlstate == "XX000"
