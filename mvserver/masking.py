"""Secrets are never printed, logged or explained: the one list of keys whose values are secret, and their masks.

A key is known by its name, since kinds of stores come and go; rather one too many than one too few. A store's kind may
declare keys whose names do not tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

MASK = "********"  # in place of a property's value
LOGGED_MASK = "***"  # in a text

MARKS = (
    "password", "passwd", "pwd", "secret", "token", "private{sep}key", "access{sep}key", "api{sep}key", "credential",
    "passphrase", "jaas",
)  # fmt: skip
"""A key is secret that has one of these anywhere; ``{sep}`` is nothing, a dot, a line or a dash."""
ENDINGS = (".key", "_key", "key_id")
"""A property's key is secret that ends so. Names of columns end so too, and are no properties."""

_MARK = "|".join(MARKS).format(sep="[._-]?")
_ENDING = "|".join(map(re.escape, ENDINGS))
_CHARACTERS = r"[\w.\-]{0,64}"
_MARKED_NAME = rf"{_CHARACTERS}(?:{_MARK}){_CHARACTERS}"
_LITERAL = r"""(?:'(?:[^']|'')*(?:'|$)|’[^’']*(?:[’']|$)|\$\$.*?(?:\$\$|$)|"[^"]*(?:"|$))"""
# PASSWORD and a text, in every form that a text may have, whatever blanks and comments are between them
_GAP = r"(?:\s|/\*.{0,256}?\*/|--[^\n]*(?:\n|$))*+"
_PASSWORD_TEXT = rf"""(?:E'(?:[^'\\]|\\.|'')*(?:'|\\?$)|(?:U&|N)?{_LITERAL}|\$(?P<tag>\w*)\$.*?(?:\$(?P=tag)\$|$))"""
_PASSWORD_CLAUSE = re.compile(
    rf"(?<!['’\".\-])(\bPASSWORD{_GAP}){_PASSWORD_TEXT}(?:\s*\n\s*'(?:[^']|'')*(?:'|$))*", re.IGNORECASE | re.DOTALL
)
_URI_PASSWORD = re.compile(
    r"((?<![a-z0-9+.\-])[a-z][a-z0-9+.\-]{0,30}://[^\s:/@'\"]{0,128}:)[^\s/@'\"]{1,1024}(@)", re.IGNORECASE
)


class Masker:
    """The rules of names, and the ``declared`` keys besides, in lower case."""

    def __init__(self, declared: Iterable[str] = ()) -> None:
        self._declared = frozenset(declared)
        self._name = re.compile(rf"(?:{_MARK})|(?:{_ENDING})\Z", re.IGNORECASE)
        exact = "".join(f"|{re.escape(key)}" for key in sorted(self._declared))
        ending = rf"(?<!>)(?<!> )['’](?:{_CHARACTERS}(?:{_ENDING}){exact})['’]"  # not a key of JSON behind an arrow
        name = rf"""['’"]{_MARKED_NAME}['’"]|{ending}|(?<![\w.\-]){_MARKED_NAME}"""
        self._property = re.compile(
            rf"""((?:{name})\s*(?:=|:|\bTO\b)\s*)(?:{_LITERAL}|[^\s,;)'"]+)""", re.IGNORECASE | re.DOTALL
        )

    def is_secret(self, key: str) -> bool:
        """Whether the value of a property is never shown."""
        return key.lower() in self._declared or self._name.search(key) is not None

    def in_text(self, text: str) -> str:
        """The values of properties, settings and clauses whose names say that they are secret become ``***``."""
        text = self._property.sub(lambda match: f"{match[1]}'{LOGGED_MASK}'", text)
        text = _PASSWORD_CLAUSE.sub(lambda match: f"{match[1]}'{LOGGED_MASK}'", text)
        return _URI_PASSWORD.sub(lambda match: f"{match[1]}{LOGGED_MASK}{match[2]}", text)


_masker = Masker()


def declare(keys: Iterable[str]) -> None:
    """The keys that the kinds of stores declare as secret; told once, when the server starts."""
    global _masker
    _masker = Masker(keys)


def is_secret(key: str) -> bool:
    """Whether the value of a property is never shown."""
    return _masker.is_secret(key)


def masked(properties: Mapping[str, str] | Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The properties in their order, secrets replaced."""
    pairs = properties.items() if isinstance(properties, Mapping) else properties
    return tuple((key, MASK if is_secret(key) else value) for key, value in pairs)


def mask_secrets(text: str) -> str:
    """A text as it may be logged: the values of secret keys and clauses become ``***``."""
    return _masker.in_text(text)
