"""Where a query begins: the words of ``starting.position``."""

from __future__ import annotations

import pytest

from mvserver.compiler.source_properties import _starting
from mvserver.errors import SqlError
from mvserver.sql.statements.base import Properties, Property


def starting(value: object) -> str:
    return _starting(Properties((Property("starting.position", value, 9),)), "earliest")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("latest", "latest"),
        ("EARLIEST", "earliest"),
        ("1715947200000", "1715947200000"),
        (1715947200000, "1715947200000"),
        ("2024-05-17T12:00:00Z", "1715947200000"),
        ("2024-05-17 14:00:00.5+02:00", "1715947200500"),
    ],
)
def test_words_and_moments(given: object, read: str) -> None:
    assert starting(given) == read


WRONG = (
    "middle",
    "",
    "2024-05-17T12:00:00",
    "2024-05-17",
    "-1",
    "0",
    "99999999999999999",
    True,
    "1e3",
    "1969-01-01T00:00Z",
)


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_neither(wrong: object) -> None:
    with pytest.raises(SqlError) as refused:
        starting(wrong)
    assert (refused.value.sqlstate, refused.value.position) == ("22023", 9)
