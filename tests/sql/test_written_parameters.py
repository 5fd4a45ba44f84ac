"""Constants in the places of parameters: they are values, whatever is written in them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from mvserver.errors import SqlError
from mvserver.sql.written_parameters import constant, others, with_constants


def test_the_others_are_numbered_anew() -> None:
    text = "SELECT f($3, $1), '$1', \"$1\", $2 -- $1\n WHERE x = $10"
    assert with_constants(text, {1: "'a'", 3: "5"}) == ("SELECT f(5, 'a'), '$1', \"$1\", $1 -- $1\n WHERE x = $2")
    assert others(4, (1, 3)) == [2, 4]


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("it's", "'it''s'"), ("a\\b", "'a\\b'"), (True, "true"), (5, "5"), (-5, "(-5)"), (0.25, "0.25"),
        (Decimal("-1E+2"), "(-100)"), (["a", None, 'b"c', "d\\e"], """'{"a",NULL,"b\\"c","d\\\\e"}'"""),
        ([1, 2], "'{1,2}'"), (None, "NULL"), (dt.date(2024, 2, 29), "'2024-02-29'::date"),
        (dt.datetime(2024, 2, 29, 1), "'2024-02-29 01:00:00'::timestamp"),
    ],
)  # fmt: skip
def test_a_value_is_written(value: Any, written: str) -> None:
    assert constant(1, value) == written


def test_what_cannot_be_written_is_refused() -> None:
    with pytest.raises(SqlError, match=r"0A000: parameter \$2 has a value of this type"):
        constant(2, b"bytes")
