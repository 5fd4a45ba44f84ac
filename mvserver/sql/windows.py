"""The windows of FROM: ``TUMBLE(stream, SIZE 5 MINUTES)`` and its like, read into one frozen value.

The lengths are fixed: months and years differ in length, so that a window of them could not be found by division.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.sql.cursor import Cursor
from mvserver.sql.expressions import ExpressionParser
from mvserver.sql.lexer import NUMBER, STRING, WORD, Token
from mvserver.sql.names import identifier

WINDOWS = ("tumble", "hop", "cumulate", "session")
_UNITS_MS = {
    "MILLISECOND": 1,
    "SECOND": 1_000,
    "MINUTE": 60_000,
    "HOUR": 3_600_000,
    "DAY": 86_400_000,
    "WEEK": 604_800_000,
}
_LENGTH_MS_MAX = 36_600 * 86_400_000  # a hundred years
_AMOUNT_AND_UNIT = re.compile(r"\s*(\d+)\s*([a-z]*)\s*", re.IGNORECASE)


@dataclass(frozen=True)
class WindowText:
    """A window as it was written. ``size_ms`` is the GAP of a session; ``step_ms`` is HOP's ADVANCE BY and CUMULATE's
    STEP, 0 for the others."""

    kind: str  # of WINDOWS
    size_ms: int
    step_ms: int = 0
    partition_by: tuple[tuple[str, int], ...] = ()  # column and position
    position: int | None = None


def at_window(cursor: Cursor) -> bool:
    token = cursor.current
    return token.kind is WORD and token.text in WINDOWS and cursor.peek().text == "("


def window_table(cursor: Cursor, expressions: ExpressionParser, source: Callable[[], exp.Expression]) -> exp.Expression:
    """The table or sub-query that the window is over, with the window in its ``meta``."""
    token = cursor.advance()
    cursor.expect_operator("(")
    if cursor.at_any({"select", "with"}):
        raise cursor.syntax_error(hint=f"Write {token.text.upper()}((SELECT ...), ...), with brackets of its own.")
    if cursor.at_word("table"):
        raise cursor.syntax_error(hint=f"Write {_SHAPES[token.text]}.")
    read = source()
    partition_by = _partition_by(cursor, token)
    cursor.expect_operator(",")
    lengths = [_length(cursor, expressions, word, token) for word in _LENGTHS[token.text][:1]]
    for word in _LENGTHS[token.text][1:]:
        cursor.expect_operator(",")
        lengths.append(_length(cursor, expressions, word, token))
    cursor.expect_operator(")")
    read.meta["window"] = WindowText(
        token.text, lengths[0], lengths[1] if len(lengths) > 1 else 0, partition_by, token.position
    )
    return read


_LENGTHS: dict[str, tuple[tuple[str, ...], ...]] = {
    "tumble": (("size",),),
    "hop": (("size",), ("advance", "by")),
    "cumulate": (("size",), ("step",)),
    "session": (("gap",),),
}
_SHAPES = {
    "tumble": "TUMBLE(stream, SIZE n unit)",
    "hop": "HOP(stream, SIZE n unit, ADVANCE BY n unit)",
    "cumulate": "CUMULATE(stream, SIZE n unit, STEP n unit)",
    "session": "SESSION(stream [PARTITION BY column, ...], GAP n unit)",
}


def _partition_by(cursor: Cursor, window: Token) -> tuple[tuple[str, int], ...]:
    if not cursor.at_word("partition", "by"):
        return ()
    if window.text != "session":
        raise cursor.syntax_error(hint="Only SESSION has PARTITION BY; the others are grouped by GROUP BY alone.")
    cursor.advance()
    cursor.advance()
    columns: list[tuple[str, int]] = []
    while True:
        token = cursor.current
        columns.append((identifier(cursor), token.position))
        # The length follows the next comma.
        if not (cursor.at_operator(",") and not _at_length(cursor)):
            return tuple(columns)
        cursor.advance()


def _at_length(cursor: Cursor) -> bool:
    """Whether ``, GAP 5`` follows rather than a column that is called gap."""
    return cursor.peek().text == "gap" and cursor.peek(2).text not in (",", ")", ".")


def _length(cursor: Cursor, expressions: ExpressionParser, words: tuple[str, ...], window: Token) -> int:
    """``SIZE 5 MINUTES``, also ``SIZE INTERVAL '5' MINUTE``, in milliseconds."""
    if not cursor.at_word(*words):
        raise cursor.syntax_error(hint=f"Write {_SHAPES[window.text]}.")
    for _ in words:
        cursor.advance()
    is_interval = cursor.accept_word("interval")
    token = cursor.current
    if token.kind is not NUMBER and not (is_interval and token.kind is STRING):
        raise cursor.syntax_error(hint=f"Write {_SHAPES[window.text]}.")
    cursor.advance()
    written = _AMOUNT_AND_UNIT.fullmatch(token.text)
    unit = expressions.unit()
    if written is None or bool(unit) == bool(written[2]):
        raise SqlError(
            sqlstates.SYNTAX_ERROR,
            f"the length of a window must be a whole number and a unit, not {token.text}",
            hint=f"Write {_SHAPES[window.text]}.",
            position=token.position,
        )
    unit = unit or written[2].upper().removesuffix("S")
    if unit not in _UNITS_MS:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"windows of {unit.lower()}s are not supported",
            hint="A window is measured in milliseconds, seconds, minutes, hours, days or weeks.",
            position=token.position,
        )
    length = int(written[1][:20]) * _UNITS_MS[unit]
    if not 0 < length <= _LENGTH_MS_MAX:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f"the length of a window must be between 1 millisecond and {_LENGTH_MS_MAX // 86_400_000} days",
            position=token.position,
        )
    return length
