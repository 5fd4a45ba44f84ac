"""Text brought into other forms: shortened, centred, without accents. The functions of the dialect lenses are made of
these, and of those in ``strings``."""

from __future__ import annotations

from collections.abc import Sequence

from mvserver import sqlstates
from mvserver.compiler.capabilities import bounded
from mvserver.compiler.capabilities.build import INTEGER, TEXT, capability, example, fails, on
from mvserver.compiler.capabilities.model import Capability, Lowered
from mvserver.compiler.capabilities.spark_text import guard
from mvserver.sql import types as t
from mvserver.sql.types import SqlType

_DOTS = "..."


def _abbreviate(a: Sequence[Lowered], result: SqlType) -> str:
    text, length = a
    cut = f"concat(left({text}, {length} - {len(_DOTS)}), '{_DOTS}')"
    checked = guard(
        f"{length} <= {len(_DOTS)}",
        sqlstates.INVALID_PARAMETER_VALUE,
        f"an abbreviation has more than {len(_DOTS)} characters",
        cut,
    )
    return f"IF({text} IS NULL OR {length} IS NULL, NULL, IF(char_length({text}) <= {length}, {text}, {checked}))"


def _center(a: Sequence[Lowered], result: SqlType) -> str:
    text, length = a[0], a[1]
    fill = str(a[2]) if len(a) == 3 else "' '"
    half = f"(char_length({text}) + CAST(({length} - char_length({text})) div 2 AS INT))"
    made = bounded.pad(bounded.pad(text, half, fill, left=True), length, fill, left=False)
    return f"IF({fill} IS NULL OR {length} IS NULL, NULL, IF(char_length({text}) >= {length}, {text}, {made}))"


def _slice(a: Sequence[Lowered], result: SqlType) -> str:
    """Indexes start at 0, and count from the end below it."""
    text, size = a[0], f"char_length({a[0]})"

    def place(index: object) -> str:
        return f"least(greatest(IF({index} < 0, {index} + {size}, {index}), 0), {size})"

    start = place(a[1])
    if len(a) == 2:
        return f"IF({a[1]} IS NULL, NULL, substring({text}, {start} + 1))"
    cut = f"substring({text}, {start} + 1, greatest({place(a[2])} - {start}, 0))"
    return f"IF({a[1]} IS NULL OR {a[2]} IS NULL, NULL, {cut})"


CAPABILITIES: tuple[Capability, ...] = (
    capability(
        "abbreviate", "cut to so many characters, of which the last three are dots; a shorter text as it is",
        [on((TEXT, INTEGER), t.VARCHAR, _abbreviate)],
        [
            example("abbreviate('a long text', 8)", "a lon...", postgres=False),
            example("abbreviate('short', 5)", "short", postgres=False),
            fails("abbreviate('short', 3)", "22023", postgres=False),
        ],
    ),
    capability(
        "center", "filled on both sides to so many characters, one more on the right; a longer text as it is",
        [on((TEXT, INTEGER), t.VARCHAR, _center), on((TEXT, INTEGER, TEXT), t.VARCHAR, _center)],
        [
            example("center('ab', 5, 'xyz')", "xabxy", postgres=False),
            example("center('ab', 4)", " ab ", postgres=False), example("center('abc', 2)", "abc", postgres=False),
            fails("center('a', 2000000)", "54000", postgres=False),
        ],
    ),
    capability(
        "text_slice", "the characters from an index (0 is the first) on, or up to before another; from the end below 0",
        [on((TEXT, INTEGER), t.VARCHAR, _slice), on((TEXT, INTEGER, INTEGER), t.VARCHAR, _slice)],
        [
            example("text_slice('hello', 1)", "ello", postgres=False),
            example("text_slice('hello', 1, 3)", "el", postgres=False),
            example("text_slice('hello', -3, -1)", "ll", postgres=False),
            example("text_slice('hello', 3, 99)", "lo", postgres=False),
            example("text_slice('hello', 4, 2)", "", postgres=False),
            example("text_slice('hello', 2147483647)", "", postgres=False),
        ],
    ),
    capability(
        "swapcase", "capitals small and small letters capital",
        [on((TEXT,), t.VARCHAR, f"{bounded.SWAPPED_CASE}({{0}})")],
        [example("swapcase('aBcÉ1')", "AbCé1", postgres=False), example("swapcase('')", "", postgres=False)],
    ),
    capability(
        "strip_accents", "letters without the marks over and under them",
        [on((TEXT,), t.VARCHAR, f"{bounded.WITHOUT_ACCENTS}({{0}})")],
        [
            example("strip_accents('Éclair à la crème')", "Eclair a la creme", postgres=False),
            example("strip_accents('Łódź')", "Lodz", postgres=False),
        ],
    ),
)  # fmt: skip
