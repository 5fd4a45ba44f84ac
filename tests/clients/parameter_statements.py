"""Statements over the rows of ``dialect_rows`` with parameters whose types the client leaves out."""

from __future__ import annotations

import re
from pathlib import Path

_FOLDER = Path(__file__).parent

_X = re.compile(r"\bx\b")
_NUMBERS = ("id", "small", "big", "amount", "ratio", "ratio::real", "1", "2.5", "9000000000")
_ARITHMETIC = ("x + $1", "$1 + x", "x - $1", "$1 - x", "x * $1", "$1 * x", "x / $1", "$1 / x")
_INTEGERS = ("id", "small", "big", "amount")
_REMAINDERS = ("x % $1", "$1 % x")
_OPERANDS = ("id", "small", "big", "amount", "ratio", "name", "day", "moment", "instant", "flag", "(amount * 2)")
_COMPARISONS = (
    "x = $1", "$1 < x", "x between $1 and $2", "x is distinct from $1", "nullif(x, $1)", "coalesce(x, $1)",
    "coalesce($1, x)", "greatest(x, $1)", "case when flag then x else $1 end", "case x when $1 then 1 end",
)  # fmt: skip

_GENERATED = [
    f"SELECT {_X.sub(operand, form)} FROM shop"
    for forms, operands in ((_ARITHMETIC, _NUMBERS), (_REMAINDERS, _INTEGERS), (_COMPARISONS, _OPERANDS))
    for form in forms
    for operand in operands
]


def _lines(name: str) -> list[str]:
    return (_FOLDER / name).read_text(encoding="utf-8").splitlines()


DESCRIBED = (*_GENERATED, *_lines("parameter_statements.txt"))
"""What is compared are the types that Describe gives for the parameters and the columns."""

ASKED = tuple((text, tuple(None if value == "NULL" else value for value in values))
              for text, *values in (line.split(" ;; ") for line in _lines("parameter_values.txt")))  # fmt: skip
"""Statements with their parameters' values, whose rows are compared."""
