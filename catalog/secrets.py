"""Which property values are secrets, and how they are shown: a password is never printed, logged or explained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

MASK = "********"

_MARKS = ("password", "secret", "passphrase", "token", "jaas")
_ENDINGS = (".key", "_key", "key_id")
_NOT_SECRET = frozenset({"key.format", "key.type", "key.columns"})


def is_secret(key: str) -> bool:
    """By the property's name, since kinds of stores come and go; rather one too many than one too few."""
    name = key.lower()
    if name in _NOT_SECRET:
        return False
    return any(mark in name for mark in _MARKS) or name.endswith(_ENDINGS)


def masked(properties: Mapping[str, str] | Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The properties in their order, secrets replaced."""
    pairs = properties.items() if isinstance(properties, Mapping) else properties
    return tuple((key, MASK if is_secret(key) else value) for key, value in pairs)
