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
