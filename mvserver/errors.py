"""The one error type that crosses rooms.

An error is typed where it arises (SQLSTATE, message, detail, hint, position) and formatted once, at the wire.
Message style is PostgreSQL's: a lower-case primary message without a full stop; detail and hint are sentences.
Every room may import this module; it imports none of them.
"""

from __future__ import annotations

from typing import NoReturn, Self


class SqlError(Exception):
    """An error that a user is meant to read.

    ``position`` is the 1-based character offset into the statement text, as in PostgreSQL's ErrorResponse field P;
    ``context`` says where it happened in what the statement was reading (field W).
    """

    def __init__(
        self,
        sqlstate: str,
        message: str,
        *,
        detail: str | None = None,
        hint: str | None = None,
        position: int | None = None,
        severity: str = "ERROR",
        context: str | None = None,
    ) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate
        self.message = message
        self.detail = detail
        self.hint = hint
        self.position = position
        self.severity = severity
        self.context = context

    def at(self, position: int | None) -> Self:
        self.position = position
        return self

    def __str__(self) -> str:
        parts = [f"{self.sqlstate}: {self.message}"]
        if self.detail:
            parts.append(f"DETAIL: {self.detail}")
        if self.hint:
            parts.append(f"HINT: {self.hint}")
        if self.context:
            parts.append(f"CONTEXT: {self.context}")
        return " ".join(parts)


def words_of(error: BaseException) -> str:
    """The text of any error. This never raises.

    PySpark's and py4j's errors ask the JVM for their text, and raise where it has ended. Then it is what they know
    themselves, or the name of their type.
    """
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - whatever hinders it, the error has to be shown
        known = [getattr(error, name, None) for name in ("_desc", "_stackTrace", "errmsg")]
        return "\n".join(text for text in known if isinstance(text, str) and text) or type(error).__name__


def fatal(sqlstate: str, message: str, *, detail: str | None = None, hint: str | None = None) -> SqlError:
    """An error that ends the connection."""
    return SqlError(sqlstate, message, detail=detail, hint=hint, severity="FATAL")


def raise_instead(failure: Exception, error: Exception) -> NoReturn:
    """Raises ``failure`` because of ``error``, which may be the same one.

    An error knows the frames that it went through: where one of them has a name for it, that is a cycle, with all that
    the frames hold. Who calls this with what a call returns has none, and neither has this.
    """
    try:
        if failure is error:
            raise failure
        raise failure from error
    finally:
        del failure, error
