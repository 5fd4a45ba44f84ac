"""Reading a WITH list: each property taken once by name, its type checked; what is left over is refused by name."""

from __future__ import annotations

from collections.abc import Sequence

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.sql.statements.base import Properties, Value


class PropertyReader:
    """``what`` names the statement or object for messages, e.g. ``a stream``."""

    def __init__(self, properties: Properties, what: str) -> None:
        self._properties = properties
        self._what = what
        self._left = dict(properties)

    def error(
        self, key: str, message: str, *, hint: str | None = None, sqlstate: str | None = None, detail: str | None = None
    ) -> SqlError:
        return SqlError(
            sqlstate or sqlstates.INVALID_PARAMETER_VALUE,
            message,
            detail=detail,
            hint=hint,
            position=self._properties.position(key),
        )

    def has(self, key: str) -> bool:
        return key in self._left

    def take(self, key: str) -> Value:
        """The value as written, None when it is not there; one without a value is refused."""
        if key not in self._left:
            return None
        value = self._left.pop(key)
        if value is None:
            raise self.error(key, f'property "{key}" needs a value')
        return value

    def text(self, key: str, default: str | None = None) -> str | None:
        value = self.take(key)
        if value is None:
            return default
        if not isinstance(value, str) or not value.strip():
            raise self.error(key, f'property "{key}" must be a text')
        return value.strip()

    def names(self, key: str) -> list[str] | None:
        """Of columns, with commas between them; each once."""
        text = self.text(key)
        if text is None:
            return None
        return list(dict.fromkeys(name for name in (part.strip().strip('"') for part in text.split(",")) if name))

    def choice(self, key: str, allowed: Sequence[str], default: str | None = None) -> str | None:
        """One of ``allowed``, compared without regard to case."""
        value = self.text(key)
        if value is None:
            return default
        found = next((word for word in allowed if word.lower() == value.lower()), None)
        if found is None:
            raise self.error(key, f'property "{key}" cannot be "{value}"', hint=f"It is one of {', '.join(allowed)}.")
        return found

    def count(self, key: str) -> int | None:
        value = self.take(key)
        if value is None:
            return None
        if isinstance(value, str) and value.isascii() and value.isdigit():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise self.error(key, f'property "{key}" must be a whole number of 1 or more')
        return value

    def flag(self, key: str) -> bool:
        """True, also where the key has no value; False where it is not there."""
        if key not in self._left:
            return False
        value = self._left.pop(key)
        if value is None or str(value).lower() == "true":
            return True
        if str(value).lower() == "false":
            return False
        raise self.error(key, f'property "{key}" must be true or false')

    def take_prefixed(self, prefix: str) -> dict[str, Value]:
        return {key: self.take(key) for key in list(self._left) if key.startswith(prefix)}

    def refuse(self, key: str, hint: str) -> None:
        """For what is known and not supported."""
        if key in self._left:
            raise self.error(
                key, f'property "{key}" is not supported', hint=hint, sqlstate=sqlstates.FEATURE_NOT_SUPPORTED
            )

    def end(self, known: Sequence[str]) -> None:
        for key in self._left:
            raise self.error(
                key,
                f'property "{key}" is not known for {self._what}',
                hint="Known are " + ", ".join(f"'{name}'" for name in known) + "."
                if known
                else "It has no properties.",
            )


def text_of(value: Value) -> str:
    """A property's value as the catalog keeps it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
