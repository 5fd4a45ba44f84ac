"""A push query's text: the SELECT of a continuous query, and how many rows it is to send."""

from __future__ import annotations

import pytest
from sqlglot import exp

from mvserver.errors import SqlError
from mvserver.sql.push import push_query


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("SELECT a FROM s", None),
        ("SELECT a FROM s LIMIT 5", 5),
        ("select a from s limit 0;", 0),
        ("SELECT a FROM s WHERE b > 1 LIMIT ALL", None),
        ("SELECT a FROM s LIMIT NULL", None),
        ("SELECT a FROM s FETCH FIRST 7 ROWS ONLY", 7),
        ("SELECT a FROM s FETCH NEXT ROW ONLY", 1),
        ("SELECT a FROM s WITH ('starting.position' = 'earliest') WHERE a > 1 LIMIT 2", 2),
        ('SELECT "limit" FROM s LIMIT 3', 3),
        ("SELECT coalesce(a, 'limit 1') FROM s", None),
    ],
)
def test_limit(text: str, limit: int | None) -> None:
    query = push_query(text)
    assert query.limit == limit
    assert isinstance(query.select, exp.Select)
    assert query.select.args["from_"].this.name == "s"
    assert query.text == text


@pytest.mark.parametrize(
    ("text", "sqlstate", "message", "position"),
    [
        ("SELECT a FROM s LIMIT b", "0A000", "the LIMIT of a push query must be a number", 23),
        ("SELECT a FROM s LIMIT 1 + 1", "42601", 'syntax error at or near "+"', 25),
        ("SELECT a FROM s LIMIT 5 OFFSET 2", "0A000", "OFFSET is not supported in a push query", 25),
        ("SELECT a FROM s OFFSET 2", "0A000", "OFFSET is not supported in continuous queries", 17),
        ("SELECT a FROM s ORDER BY a LIMIT 2", "0A000", "ORDER BY is not supported in continuous queries", 17),
        ("SELECT a FROM s FETCH FIRST 2 ROWS WITH TIES", "42601", 'syntax error at or near "WITH"', 36),
        ("SELECT a FROM s LIMIT 9999999999999999999", "22003", None, 23),
    ],
)
def test_wrong(text: str, sqlstate: str, message: str | None, position: int) -> None:
    with pytest.raises(SqlError) as caught:
        push_query(text)
    assert (caught.value.sqlstate, caught.value.position) == (sqlstate, position)
    assert message is None or caught.value.message == message
