"""The end of the server's process, and its beginning again."""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import os
import signal
import sys
import time
from typing import NoReturn

from mvserver import limits

_ANEW_VARIABLE = "_MVSERVER_STARTED_ANEW"  # when the process began again for the last time
START_ANEW = -1
"""In place of an exit code, when the process is to begin again."""


def tell_of_crashes() -> None:
    """A library that crashes ends the process; where each thread was is then in the log, without values."""
    faulthandler.enable(2)


def end_at_once(code: int) -> NoReturn:
    """Ends the process without a word to whatever still runs in it; with START_ANEW its program begins again."""
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):  # nobody reads it, or its disk is full: the end is the same
            stream.flush()
    if code == START_ANEW:
        for number in (signal.SIGTERM, signal.SIGINT):  # an event loop that stands still would not hear them
            signal.signal(number, signal.SIG_DFL)
        now = time.time()
        if now - float(os.environ.get(_ANEW_VARIABLE, "0")) < limits.START_ANEW_SOON_S:
            time.sleep(limits.START_ANEW_PAUSE_S)
        os.environ[_ANEW_VARIABLE] = str(now)
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - the program that runs already
    os._exit(code)
