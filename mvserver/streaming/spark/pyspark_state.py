"""PySpark's own memory of its one JVM, forgotten when that has ended, so that another one can be joined.

It reaches into PySpark's classic classes, whose version is pinned exactly.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext, SparkFiles
from pyspark.sql import SparkSession, SQLContext

from mvserver.errors import words_of

_ENDING = (
    "SparkContext was shut down",
    "stopped SparkContext",
    "SparkContext has been shutdown",
    "Shutdown in progress",
)
_FATAL = re.compile(r"\bjava\.lang\.(?:OutOfMemoryError|StackOverflowError|InternalError|UnknownError)\b")


def forget_jvm() -> None:
    """After the JVM has ended: the context, the session, the gateway and what serves its callbacks go."""
    with SparkContext._lock:
        context, gateway = SparkContext._active_spark_context, SparkContext._gateway
        SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None
    SQLContext._instantiatedContext = None
    if context is not None:
        context._jsc = None  # of a session that somebody still holds: its JVM is no more
        server = getattr(context, "_accumulatorServer", None)
        if server is not None:
            server.shutdown()
        _forget_files(context)
    if gateway is not None:
        gateway.shutdown()  # ends the threads that serve callbacks and free objects; the JVM need not answer


def _forget_files(context: SparkContext) -> None:
    """The folder of the context's files, which is not there any more, leaves the path of modules."""
    if SparkFiles._sc is not context:
        return
    folder = SparkFiles._root_directory
    SparkFiles._sc = SparkFiles._root_directory = None
    if folder in sys.path:
        sys.path.remove(folder)


def is_gateway_error(error: BaseException) -> bool:
    """Whether a call did not reach the JVM, or had no whole answer: it may be ending, or may have ended."""
    for each in _chain(error):
        if isinstance(each, (ConnectionError, EOFError)):
            return True
        if isinstance(each, Py4JError) and not isinstance(each, Py4JJavaError):  # the latter was thrown in the JVM
            return True
        if _is_ending(words_of(each)):
            return True
    return False


def is_dying(error: BaseException) -> bool:
    """Whether the JVM is about to end by the error's own words: its context was shut down, or a task met an error
    after which the executor ends the process. The job has failed before the process has ended."""
    texts = map(words_of, _chain(error))
    return any(_is_ending(text) or _FATAL.search(text) is not None for text in texts)


def has_stopped(session: SparkSession) -> bool | None:
    """Whether the context was stopped, as the JVM does when it is told to end. Errors need not say so: a reader of
    Kafka fails by an assertion. None where the JVM does not answer."""
    try:
        context: Any = session.sparkContext._jsc
        return context is not None and bool(context.sc().isStopped())
    except (Py4JError, OSError, EOFError):
        return None


def _is_ending(text: str) -> bool:
    return any(words in text for words in _ENDING)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and its causes, each once: one that is raised from itself is its own cause."""
    known: set[int] = set()
    each: BaseException | None = error
    while each is not None and id(each) not in known:
        known.add(id(each))
        yield each
        each = each.__cause__ or each.__context__
