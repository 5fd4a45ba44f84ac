"""What aggregates keep instead of values: a bucket that stands for one, a mark of its hash, several in one text.

All are counted like values of an exact aggregate, so that they merge, and are taken back, like them.
"""

from __future__ import annotations

from collections.abc import Sequence

from mvserver.compiler.capabilities.build import (
    AS_TEXT,
    BINARY,
    DATE,
    DECIMAL,
    DOUBLE,
    FLOAT,
    INSTANT,
    INTEGERS,
    TEXT,
    TIME,
    TIMESTAMP,
    capability,
    on,
)
from mvserver.compiler.capabilities.build import BOOLEAN as LOGICAL
from mvserver.compiler.capabilities.model import Capability, Lowered, Nulls
from mvserver.sql.types import DOUBLE as DOUBLE_TYPE
from mvserver.sql.types import INTEGER as INTEGER_TYPE
from mvserver.sql.types import VARCHAR, SqlType

RELATIVE_ERROR = 0.01  # of a bucket's number against the values in it
REGISTER_BITS = 12  # 4,096 registers: a standard error of 1.6 %

_GAMMA = (1 + RELATIVE_ERROR) / (1 - RELATIVE_ERROR)
_MOST = "1.7976931348623157E308D"  # the bucket of the greatest numbers would reach beyond them


def _bucket(arguments: Sequence[Lowered], result: SqlType) -> str:
    """Logarithmic buckets: Masson, Rim and Lee, DDSketch (2019)."""
    x = f"({arguments[0]})"
    power = f"power({_GAMMA!r}D, ceil(ln(abs({x})) / ln({_GAMMA!r}D)))"
    number = f"signum({x}) * least(2D * ({power} / {_GAMMA + 1!r}D), {_MOST})"
    return f"(CASE WHEN {x} = 0 OR isnan({x}) OR abs({x}) = CAST('Infinity' AS DOUBLE) THEN {x} ELSE {number} END)"


def _sketch(arguments: Sequence[Lowered], result: SqlType) -> str:
    """Register and rank: Flajolet, Fusy, Gandouet and Meunier, HyperLogLog (2007), over a 64-bit hash."""
    x = f"({arguments[0]})"
    register = f"(xxhash64({x}) & {2**REGISTER_BITS - 1}L) * 64L"
    rank = f"{64 - REGISTER_BITS + 1} - length(bin(shiftrightunsigned(xxhash64({x}), {REGISTER_BITS})))"
    return f"CASE WHEN {x} IS NOT NULL THEN CAST({register} + {rank} AS INT) END"  # the hash of NULL is a number


def _packed(arguments: Sequence[Lowered], result: SqlType) -> str:
    """A list of texts in JSON. NULLs are in it, so that it never is NULL."""
    return f"to_json(array({', '.join(map(str, arguments))}))"


_HASHED = (LOGICAL, *INTEGERS, FLOAT, DOUBLE, DECIMAL, TEXT, BINARY, DATE, TIME, TIMESTAMP, INSTANT)

CAPABILITIES: tuple[Capability, ...] = (
    capability(
        "relative bucket", "a number that stands for all within 1 % of it",
        [on((DOUBLE,), DOUBLE_TYPE, _bucket)], (), operator=True, internal=True,
    ),
    capability(
        "sketch value", "register and rank of a value's hash, as register * 64 + rank",
        [on((p,), INTEGER_TYPE, _sketch) for p in _HASHED], (), operator=True, internal=True,
    ),
    capability(
        "packed values", "the texts of several values in one",
        [on((AS_TEXT, AS_TEXT), VARCHAR, _packed, variadic=True)], (), operator=True, internal=True,
        nulls=Nulls.SPECIAL,
    ),
)  # fmt: skip
