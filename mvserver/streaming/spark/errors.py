"""Spark's errors in PostgreSQL's terms."""

from __future__ import annotations

import re

from pyspark.errors import PySparkException

from mvserver import sqlstates
from mvserver.compiler.failures import raised, translate
from mvserver.errors import SqlError, words_of
from mvserver.streaming.spark.batch_watch import BatchOverran


def sql_error(error: BaseException) -> SqlError:
    """The user's error behind an exception of pyspark or py4j; XX000 with its first line for what is not a user's."""
    if isinstance(error, SqlError):
        return error
    found = translate(_condition(error), words_of(error))
    if found is not None:
        return found
    return SqlError(sqlstates.INTERNAL_ERROR, "evaluation failed", detail=error_line(error))


def _condition(error: BaseException) -> str | None:
    """Spark's name for it; None where it has none, or the JVM that knows it has ended."""
    if not isinstance(error, PySparkException):
        return None
    try:
        return error.getCondition()
    except Exception:  # noqa: BLE001 - py4j and PySpark have many for a JVM that does not answer
        return None


def error_line(error: BaseException) -> str:
    """Its first line, at most 500 characters of it."""
    first = next((line for line in words_of(error).splitlines() if line.strip()), type(error).__name__)
    return first.strip()[:500]


def unwritten(error: BaseException) -> SqlError | None:
    """Where a disk took nothing of what Spark keeps (checkpoints, shuffled rows): no source or query is to blame."""
    if isinstance(error, SqlError):
        return None
    words = words_of(error)
    found = None if _REMOTE in words else _UNWRITTEN.search(words)
    if found is None:
        return None
    full = found[1] in _FULL
    return SqlError(
        sqlstates.DISK_FULL if full else sqlstates.IO_ERROR,
        "the files of Spark cannot be written",
        detail=f"{found[1]}.",
        hint=f"{'Free space on' if full else 'Look after'} the disk of the data directory. The queries go on when it "
        "takes what is written.",
    )


_FULL = ("No space left on device", "Disk quota exceeded")
_REMOTE = "RemoteException"  # Hadoop's, of what happened to another machine
# What the JVM raises of a file of its own, and not what a database or a store told of theirs.
_UNWRITTEN = re.compile(
    r"""
    ^ (?: (?: [^\n]*? (?: Caused[ ]by | terminated[ ]with[ ]exception | executor[ ]\S+\)
      | serialization[ ]failed ) )? :[ ] )?
    (?: (?: java\.io\.(?: IO | UncheckedIO | FileNotFound ) Exception
      | java\.nio\.file\.FileSystemException
      | org\.apache\.hadoop\.fs\.FSError ) :[ ] )+
    (?: (?! (?: Exception | Error ) :[ ] ) [^\n] )*?
    ( No[ ]space[ ]left[ ]on[ ]device | Disk[ ]quota[ ]exceeded | Read-only[ ]file[ ]system )
    """,
    re.MULTILINE | re.VERBOSE,
)


def is_too_large(error: BaseException) -> bool:
    """True where the rows of a batch came to more bytes than the driver takes (``spark.driver.maxResultSize``)."""
    return "spark.driver.maxResultSize" in words_of(error)


def is_data_error(error: BaseException) -> bool:
    """True where a record's value and a query's expression are to blame, not the source or Spark: what an expression
    raises by itself is its own doing, whatever its SQLSTATE."""
    return raised(words_of(error)) is not None or sql_error(error).sqlstate[:2] in ("22", "54")


def blame(error: BaseException) -> SqlError | None:
    """What a view fails with that was evaluated alone and met this; None where it is not the view's doing."""
    if isinstance(error, BatchOverran):
        return SqlError(
            sqlstates.QUERY_CANCELED,
            f"evaluating about {error.records} records took longer than {error.limit_s:g} s",
            hint="Make the query's expressions simpler, or raise the server's setting batch_timeout.",
        )
    if is_too_large(error):
        return SqlError(
            sqlstates.PROGRAM_LIMIT_EXCEEDED,
            "the rows of a batch come to more bytes than Spark may send",
            detail="The batch could not be made smaller: it is one file, or one record.",
            hint="Let the query keep less of each record, or divide the source's files.",
        )
    return sql_error(error) if is_data_error(error) else None
