"""Spark's errors in PostgreSQL's terms."""

from __future__ import annotations

from pyspark.errors import PySparkException

from mvserver import sqlstates
from mvserver.compiler.failures import translate
from mvserver.errors import SqlError


def sql_error(error: BaseException) -> SqlError:
    """The user's error behind an exception of pyspark or py4j; XX000 with its first line for what is not a user's."""
    if isinstance(error, SqlError):
        return error
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    found = translate(condition, str(error))
    if found is not None:
        return found
    first = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return SqlError(sqlstates.INTERNAL_ERROR, "evaluation failed", detail=first.strip()[:500])


def is_too_large(error: BaseException) -> bool:
    """True where the rows of a batch came to more bytes than the driver takes (``spark.driver.maxResultSize``)."""
    return "spark.driver.maxResultSize" in str(error)


def is_data_error(error: BaseException) -> bool:
    """True where a record's value and a query's expression are to blame, not the source or Spark."""
    return sql_error(error).sqlstate[:2] in ("22", "54")
