"""The sockets by which results of Spark come: a connection that cannot be had at the moment is tried again.

PySpark gives up where the process has no descriptor left, and then waits for the JVM, which waits for the connection:
for ever, with a place at Spark that others need. It reaches into PySpark's functions, whose version is pinned exactly.
"""

from __future__ import annotations

import errno
import functools
import logging
import time
from collections.abc import Callable
from typing import Any

from pyspark import util
from pyspark.errors import PySparkRuntimeError

_log = logging.getLogger(__name__)

_AGAIN_S = 0.2
_WANTING = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_WORDS = tuple(f"[Errno {number}]" for number in _WANTING)  # as PySpark has them, which drops the error itself


def be_patient() -> None:
    """From now on PySpark's connections for results wait for a descriptor."""
    if not hasattr(util.local_connect_and_auth, "__wrapped__"):
        util.local_connect_and_auth = patient(util.local_connect_and_auth)


def patient(connect: Callable[..., Any]) -> Callable[..., Any]:
    """``connect``, called again for as long as only a descriptor, or memory for a socket, is missing."""

    @functools.wraps(connect)
    def connected(*arguments: Any) -> Any:
        told = False
        while True:
            try:
                return connect(*arguments)
            except (OSError, PySparkRuntimeError) as error:
                if not _is_wanting(error):
                    raise
                if not told:
                    _log.warning("results of Spark cannot be fetched at the moment: %s", error)
                told = True
                time.sleep(_AGAIN_S)

    return connected


def _is_wanting(error: OSError | PySparkRuntimeError) -> bool:
    return error.errno in _WANTING if isinstance(error, OSError) else any(words in str(error) for words in _WORDS)
