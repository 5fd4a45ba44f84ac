"""Date patterns: PostgreSQL's (to_char, to_date, to_timestamp) and Java's (DATE_FORMAT and other Flink functions).

Only the parts whose meaning is the same in both engines are taken; a part that is not listed is refused by name.
"""

from __future__ import annotations

from mvserver import sqlstates
from mvserver.errors import SqlError

# Longest first: PostgreSQL reads greedily.
_POSTGRES = {
    "YYYY": "yyyy", "YY": "yy", "MM": "MM", "DD": "dd", "DDD": "DDD", "HH24": "HH", "HH12": "hh", "HH": "hh",
    "MI": "mm",
    "SS": "ss", "MS": "SSS", "US": "SSSSSS", "AM": "a", "PM": "a", "Mon": "MMM", "Dy": "EEE", "FMMonth": "MMMM",
    "FMDay": "EEEE", "FMMM": "M", "FMDD": "d", "FMHH24": "H", "FMHH12": "h", "FMHH": "h", "FMMI": "m", "FMSS": "s",
    "Q": "q",
}  # fmt: skip
_FOLDED = frozenset({"YYYY", "YY", "MM", "DD", "DDD", "HH24", "HH12", "HH", "MI", "SS", "MS", "US", "Q"})
_PARSED = frozenset({"YYYY", "MM", "DD", "HH24", "HH12", "HH", "MI", "SS", "MS", "US", "AM", "PM", "Mon"})
_JAVA_LETTERS = {"y": 4, "M": 4, "d": 2, "H": 2, "h": 2, "m": 2, "s": 2, "S": 9, "E": 4, "a": 1}


def from_postgres(pattern: str, *, parsing: bool = False) -> str:
    """The Java pattern of a PostgreSQL pattern; 0A000 for a part that is not supported."""
    out: list[str] = []
    at = 0
    while at < len(pattern):
        if pattern[at] == '"':
            end = pattern.find('"', at + 1)
            end = len(pattern) if end < 0 else end
            out.append(_quoted(pattern[at + 1 : end]))
            at = end + 1
            continue
        part = _part(pattern, at)
        if part is not None and (not parsing or part in _PARSED):
            out.append(_POSTGRES[part])
            at += len(part)
        elif pattern[at].isalnum() and pattern[at] not in "TZ":
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f'date pattern "{pattern}" is not supported at "{pattern[at:]}"',
                hint="The parts are YYYY, YY, MM, Mon, FMMonth, DD, DDD, Dy, FMDay, Q, HH24, HH12, MI, SS, MS, US, AM "
                'and PM; put other letters in double quotes, as in YYYY-MM-DD"T"HH24:MI:SS.',
            )
        else:
            out.append(_quoted(pattern[at]))
            at += 1
    return "".join(out)


def _part(pattern: str, at: int) -> str | None:
    for length in range(7, 0, -1):
        piece = pattern[at : at + length]
        if piece in _POSTGRES:
            return piece
        if piece.upper() in _FOLDED and piece == piece.lower() and len(piece) == length:
            return piece.upper()
    return None


def _quoted(text: str) -> str:
    if not text:
        return ""
    doubled = text.replace("'", "''")
    plain = all(char in " -/.,:;" for char in text)
    return doubled if plain else f"'{doubled}'"


def from_java(pattern: str) -> str:
    """The pattern itself, once every letter in it is one that we know."""
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "'":
            end = pattern.find("'", at + 1)
            if end < 0:
                raise SqlError(sqlstates.INVALID_PARAMETER_VALUE, f'unterminated quote in date pattern "{pattern}"')
            at = end + 1
            continue
        end = at
        while end < len(pattern) and pattern[end] == char:
            end += 1
        if (char.isalpha() and end - at > _JAVA_LETTERS.get(char, 0)) or char in "{}[]#":
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f'date pattern "{pattern}" is not supported at "{pattern[at:]}"',
                hint="The letters are y, M, d, H, h, m, s, S, E and a; put other text in single quotes.",
            )
        at = end
    return pattern
