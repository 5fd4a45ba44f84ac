"""The patterns of to_char, to_date and to_timestamp for dates and times, taken apart as PostgreSQL does it.

``DD``, ``dd`` and ``Day`` are different tokens, ``FM`` and ``TH`` belong to one of them, text in double quotes and
whatever is no token stands for itself.
"""

from __future__ import annotations

from dataclasses import dataclass

_NUMERIC = (
    "CC", "DDD", "DD", "D", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6", "FX", "HH24", "HH12", "HH", "IDDD", "ID", "IW",
    "IYYY", "IYY", "IY", "I", "J", "MI", "MM", "MS", "OF", "Q", "SSSSS", "SSSS", "SS", "TZH", "TZM", "US", "WW",
    "W", "Y,YYY", "YYYY", "YYY", "YY", "Y",
)  # fmt: skip
_WORDS = ("A.D.", "A.M.", "AD", "AM", "B.C.", "BC", "P.M.", "PM", "RM", "TZ")
_NAMES = ("MONTH", "Month", "month", "MON", "Mon", "mon", "DAY", "Day", "day", "DY", "Dy", "dy")

_TOKENS: dict[str, str] = {
    **{token: token for token in _NUMERIC}, **{token.lower(): token for token in _NUMERIC},
    **{token: token for token in _WORDS}, **{token.lower(): token.lower() for token in _WORDS},
    **{token: token for token in _NAMES},
}  # fmt: skip
"""As written, to one spelling for those whose case says nothing."""

_BY_LENGTH = sorted(_TOKENS, key=len, reverse=True)
_NO_ORDINAL = frozenset({*_WORDS, *(word.lower() for word in _WORDS), *_NAMES})


@dataclass(frozen=True)
class Token:
    """``text`` is a token's name, or with ``literal`` what stands for itself."""

    text: str
    literal: bool = False
    fill: bool = True  # without FM: padded
    ordinal: str = ""  # TH or th


def tokens(pattern: str) -> list[Token]:
    found: list[Token] = []
    at = 0
    while at < len(pattern):
        if pattern[at] == '"':
            end = pattern.find('"', at + 1)
            end = len(pattern) if end < 0 else end
            found.append(Token(pattern[at + 1 : end], literal=True))
            at = end + 1
            continue
        start = at
        fill, translated = True, False
        while pattern[at : at + 2] in ("FM", "fm", "TM", "tm"):
            translated = translated or pattern[at : at + 2] in ("TM", "tm")
            fill = fill and pattern[at : at + 2] in ("TM", "tm")
            at += 2
        name = next((token for token in _BY_LENGTH if pattern.startswith(token, at)), None)
        if name is None:
            if at == start:
                found.append(Token(pattern[at], literal=True))
                at += 1
            continue
        at += len(name)
        fill = fill and not (translated and name.upper() in ("MONTH", "DAY"))  # names in words of one's own are bare
        ordinal = ""
        if pattern[at : at + 2] in ("TH", "th") and _TOKENS[name] not in _NO_ORDINAL:
            ordinal = pattern[at : at + 2]
            at += 2
        if _TOKENS[name] != "FX":
            found.append(Token(_TOKENS[name], fill=fill, ordinal=ordinal))
    return found
