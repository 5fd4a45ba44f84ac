"""Wrong SELECTs are refused as by a real PostgreSQL: the same SQLSTATE, message, hint and place."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.clients.wrong_selects import WRONG

pytestmark = pytest.mark.postgres

Connection = psycopg.Connection[Any]

KNOWN = {
    "SELECT date_trunc(id, moment) FROM shop": "the unit must be a constant: its value is what is refused",
    "SELECT lower(name, name) FROM shop": "a wrong number of arguments is found before their types are known",
    "SELECT abs(id, 2), nosuch() FROM shop": "a wrong number of arguments is found before their types are known",
}
"""What differs, with the reason."""


def refusal(connection: Connection, text: str) -> tuple[str | None, str | None, str | None, str | None]:
    """SQLSTATE, message, hint and position."""
    with pytest.raises(psycopg.Error) as caught:
        connection.execute(text)
    told = caught.value.diag
    return told.sqlstate, told.message_primary, told.message_hint, told.statement_position


@pytest.mark.parametrize("text", WRONG)
def test_refused_as_by_postgresql(our_shop: Connection, their_shop: Connection, text: str) -> None:
    assert (refusal(our_shop, text) == refusal(their_shop, text)) is (text not in KNOWN)


RIGHT = (
    "SELECT count(*) FROM shop WHERE flag AND NOT flag OR flag IS NULL",
    "SELECT id FROM shop WHERE small = 3 AND big > 1.5 AND ratio > id AND amount >= small",
    "SELECT id FROM shop WHERE name = '5' OR day = '2024-02-29' OR flag = 't' OR amount > '3' ORDER BY id",
    "SELECT id FROM shop WHERE moment > day AND instant < now() AND day <= moment ORDER BY id",
    "SELECT id AS x FROM shop WHERE id IN (1, 2.5, '3', NULL) GROUP BY x ORDER BY x",
    "SELECT id AS name FROM shop WHERE name LIKE 'T%'",
    "SELECT CASE WHEN flag THEN 1 ELSE 2.5 END, coalesce(small, big, 0), greatest(id, amount) FROM shop ORDER BY id",
    "SELECT id FROM shop UNION SELECT amount FROM shop UNION SELECT NULL ORDER BY 1",
    "SELECT day FROM shop UNION ALL SELECT moment FROM shop ORDER BY 1",
    "SELECT DISTINCT s.id, upper(name) FROM shop s ORDER BY id, upper(s.name)",
    "SELECT DISTINCT id + 1 AS n FROM shop ORDER BY n, id + 1",
    "SELECT small, count(*) AS n FROM shop GROUP BY small HAVING count(*) > 0 AND small > 0 ORDER BY n, 1",
    "SELECT a.id FROM shop a JOIN shop b ON a.id = b.small AND a.flag WHERE a.flag ORDER BY 1",
    "SELECT (SELECT max(b.id) FROM shop b WHERE b.small < a.id AND b.flag) FROM shop a ORDER BY a.id",
    "SELECT id FROM shop a WHERE EXISTS (SELECT 1 FROM shop b WHERE b.id = a.small AND a.flag) ORDER BY 1",
    "SELECT sum(id) > 3, avg(amount) = 1.5, max(day) < '2030-01-01' FROM shop",
    "SELECT x = 'a', n + 1 FROM (VALUES ('a', 1), ('b', 2)) AS v (x, n) ORDER BY 1",
    "SELECT flag = true, flag <> (id = 1), day::timestamp, small::text || name, name::text FROM shop ORDER BY id",
    "WITH w AS (SELECT id, day FROM shop) SELECT id FROM w WHERE day > '2000-01-01' AND id BETWEEN 1 AND '9'",
    "SELECT id FROM shop ORDER BY id LIMIT (SELECT count(*) FROM shop b WHERE b.flag) OFFSET 1",
    "SELECT ARRAY[id, big, 1.5], ARRAY['x', name] FROM shop WHERE id = 1",
)


@pytest.mark.parametrize("text", RIGHT)
def test_what_is_right_is_answered(our_shop: Connection, their_shop: Connection, text: str) -> None:
    rows = our_shop.execute(text).fetchall()
    assert rows == their_shop.execute(text).fetchall()
    assert rows


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("SELECT id FROM shop WHERE id = %s AND name = %s", (1, "Tea")),
        ("SELECT id FROM shop WHERE day = %s AND amount > %s", ("2024-02-29", "1")),
        ("SELECT id FROM shop WHERE id = ANY(%s) AND flag = %s", ([1, 3], True)),
        ("SELECT id FROM shop WHERE id + %s > %s::int AND %s", (1, "1", True)),
    ],
)
def test_parameters_take_the_type_of_the_other_operand(
    our_shop: Connection, their_shop: Connection, text: str, parameters: tuple[object, ...]
) -> None:
    rows = our_shop.execute(text + " ORDER BY id", parameters).fetchall()
    assert rows == their_shop.execute(text + " ORDER BY id", parameters).fetchall()
    assert rows
