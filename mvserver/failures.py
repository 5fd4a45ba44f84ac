"""Exceptions as clients see them: an SqlError as it is, anything else as an internal error without its text."""

from __future__ import annotations

import errno
import logging
import secrets

import pyarrow as pa

from mvserver import sqlstates
from mvserver.errors import SqlError

_LOG = logging.getLogger(__name__)

_NO_THREAD = "can't start new thread"  # Python's words, which has no class of errors for it


def as_sql_error(error: Exception) -> SqlError:
    if isinstance(error, SqlError):
        return error
    if isinstance(error, (MemoryError, pa.ArrowMemoryError)):
        _LOG.error("out of memory", exc_info=error)
        return SqlError(sqlstates.OUT_OF_MEMORY, "out of memory")
    wanting = want_of_resources(error)
    if wanting is not None:
        return wanting
    if isinstance(error, RecursionError):
        _LOG.error("a statement is nested too deeply", exc_info=error)
        return SqlError(sqlstates.STATEMENT_TOO_COMPLEX, "stack depth limit exceeded")
    reference = secrets.token_hex(4)
    _LOG.error("internal error %s", reference, exc_info=error)
    return SqlError(
        sqlstates.INTERNAL_ERROR, "internal error", hint=f"The server's log has the details under {reference}."
    )


def want_of_resources(error: Exception) -> SqlError | None:
    """53000 where the process, or the system, has all files, sockets or threads that it may have; else None."""
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        what, limit = "open more files", "ulimit -n"
    elif isinstance(error, RuntimeError) and str(error) == _NO_THREAD:
        what, limit = "start more threads", "ulimit -u, or that of the container"
    else:
        return None
    _LOG.error("the server cannot %s: %s", what, error)
    return SqlError(
        sqlstates.INSUFFICIENT_RESOURCES,
        f"the server cannot {what} at the moment",
        hint=f"Try again when there are fewer clients. The operator may raise the server's limit ({limit}).",
    )
