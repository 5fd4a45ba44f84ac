"""Times in zones whose clocks change: every statement over them, in a session of such a zone, as PostgreSQL answers."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.corpus.compare import Client
from tests.corpus.generator import ELSEWHERE, GENERATED
from tests.corpus.statements import BY_HAND, KNOWN, different

pytestmark = pytest.mark.postgres

_OVER_TIMES = re.compile(r"\b(shipped|placed|at|instant|moment|timestamptz)\b")
_TIMES_OF_CLOCKS = ("2024-10-27 00:30:20.5+00", "2024-10-27 01:30:20+00", "2024-03-31 00:59+00", "2024-03-31 01:01+00",
                    "2024-11-03 05:30+00", "2024-11-03 06:30+00")  # fmt: skip
_FORMS = (
    "date_trunc('hour', x)", "date_trunc('minutes', x)", "date_trunc('hour', x, 'America/New_York')",
    "date_trunc('day', x)", "date_bin('1 hour', x, '2024-01-01')", "date_bin('1 day', x, '2024-01-01')",
    "x - timestamptz '2024-01-01'", "x - timestamp '2024-01-01'", "timestamp '2024-12-01' - x",
    "age(x, '2024-01-01')", "x + interval '1 day'", "x + interval '24 hours'", "x - interval '1 month 2 hours'",
    "extract(epoch FROM x - timestamptz '2024-01-01')", "x::timestamp", "x::date", "x::time", "x::text",
    "extract(timezone_hour FROM x)", "x AT TIME ZONE 'PST'", "x::timestamp AT TIME ZONE 'BST'",
)  # fmt: skip


@pytest.fixture(params=["Europe/Berlin", "America/New_York"])
def zone(request: pytest.FixtureRequest, ours: Client, theirs: Client) -> Iterator[str]:
    for client in (ours, theirs):
        client.connection.execute(f"SET TimeZone = '{request.param}'")
    yield request.param
    for client in (ours, theirs):
        client.connection.execute("SET TimeZone = 'UTC'")


def test_statements_over_times_are_answered_alike(zone: str, ours: Client, theirs: Client) -> None:
    statements = [each for each in (*BY_HAND, *GENERATED, *ELSEWHERE) if _OVER_TIMES.search(each)]
    assert len(statements) > 100
    found = different(statements, ours, theirs, "text")
    assert {text: what for text, what in found.items() if text not in KNOWN and "TZ" not in text} == {}


def test_clocks_that_change(zone: str, ours: Client, theirs: Client) -> None:
    rows = ", ".join(f"(timestamptz '{each}')" for each in _TIMES_OF_CLOCKS)
    statements = [f"SELECT x AS t, {form} FROM (VALUES {rows}) AS v (x) ORDER BY 1" for form in _FORMS]
    assert different(statements, ours, theirs, "text") == {}
