"""Text functions that could take any time or memory, in forms that cannot: the names that lowered text calls.

Regular expressions and LIKE run in engines without backtracking. A function whose result can be much longer than a
record compares the length with :data:`mvserver.limits.GROWN_TEXT_CHARACTERS_MAX` before it takes the memory, and
raises 54000. Where the arguments show that the result stays short, Spark's own function is used.
"""

from __future__ import annotations

from mvserver.limits import GROWN_TEXT_CHARACTERS_MAX

_UNBOUNDED = 2**31 - 1
MATCHES = "mv_regexp_matches"
COUNT = "mv_regexp_count"
POSITION = "mv_regexp_position"
EXTRACT = "mv_regexp_extract"
REPLACE_MATCHES = "mv_regexp_replace"
LIKE = "mv_like"
REPEAT = "mv_repeat"
PAD = "mv_pad"
REPLACE = "mv_replace"
CONCAT = "mv_concat"
GROUPS = "mv_regexp_groups"
ALL_GROUPS = "mv_regexp_all_groups"
JSON_FIRST = "mv_json_path_first"
JSON_ALL = "mv_json_path_all"
WITHOUT_ACCENTS = "mv_without_accents"
SWAPPED_CASE = "mv_swapped_case"
FITS = "mv_fits"


def repeat(text: object, times: object) -> str:
    return f"{REPEAT}({text}, {times}, {GROWN_TEXT_CHARACTERS_MAX})"


def pad(text: object, length: object, fill: object, *, left: bool) -> str:
    return f"{PAD}({text}, {length}, {fill}, {str(left).lower()}, {GROWN_TEXT_CHARACTERS_MAX})"


def replace(text: object, old: object, new: object) -> str:
    return f"{REPLACE}({text}, {old}, {new}, {GROWN_TEXT_CHARACTERS_MAX})"


def concat(left: object, right: object) -> str:
    return f"{CONCAT}({left}, {right}, {GROWN_TEXT_CHARACTERS_MAX})"


def replace_matches(
    text: object, pattern: str, replacement: str, *, everywhere: bool, most: int | None = GROWN_TEXT_CHARACTERS_MAX
) -> str:
    """``most`` is None where the arguments show that the result stays short."""
    bound = _UNBOUNDED if most is None else most
    return f"{REPLACE_MATCHES}({text}, {pattern}, {replacement}, {str(everywhere).lower()}, {bound})"
