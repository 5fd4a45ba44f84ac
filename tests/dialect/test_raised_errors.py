"""What a view's own expressions raise in DuckDB, when it finishes the columns, has the SQLSTATE that they say."""

from __future__ import annotations

import duckdb
import pytest

from mvserver.compiler.capabilities.duckdb_decimals import failure
from mvserver.dialect.errors.duck_errors import translate


def test_an_expression_says_its_sqlstate_itself() -> None:
    with duckdb.connect() as connection, pytest.raises(duckdb.Error) as caught:
        connection.execute(f"SELECT {failure('22012', 'division by zero')}")
    error = translate(caught.value)
    assert (error.sqlstate, error.message) == ("22012", "division by zero")


def test_too_many_grouping_sets() -> None:
    items = ", ".join(f"g + {number}" for number in range(20))
    with duckdb.connect() as connection, pytest.raises(duckdb.Error) as caught:
        connection.execute(f"SELECT count(*) FROM range(3) r(g) GROUP BY CUBE ({items})")
    error = translate(caught.value)
    assert (error.sqlstate, error.message) == ("54001", "too many grouping sets present (maximum 65535)")


_FULL = 'Could not write file "/d/views.duckdb.wal": No space left on device'
_READ_ONLY = 'Could not write file "/d/views.duckdb.wal": Read-only file system'  # as DuckDB has it on ext4


@pytest.mark.parametrize(
    ("error", "sqlstate"),
    [
        (duckdb.TransactionException(f"TransactionContext Error: Failed to commit: {_FULL}"), "53100"),
        (duckdb.IOException(f"IO Error: {_FULL}"), "53100"),
        (OSError(f"IO Error: {_FULL.replace('No space left on device', 'Disk quota exceeded')}"), "53100"),
        (duckdb.ConversionException(f"Conversion Error: Could not convert string '{_FULL}' to INT32"), "22P02"),
        (duckdb.TransactionException(f"TransactionContext Error: Failed to commit: {_READ_ONLY}"), "58030"),
        (duckdb.IOException(f"IO Error: {_READ_ONLY.replace('Read-only file system', 'Input/output error')}"), "58030"),
        (duckdb.TransactionException("TransactionContext Error: cannot commit - no transaction is active"), "25P02"),
        (duckdb.IOException('IO Error: Could not read from file "/d/views.duckdb": Input/output error'), "58030"),
    ],
)
def test_a_disk_that_takes_nothing_is_told_from_other_errors(error: Exception, sqlstate: str) -> None:
    assert translate(error).sqlstate == sqlstate
