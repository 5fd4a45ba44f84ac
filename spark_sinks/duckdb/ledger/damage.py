"""Signs in DuckDB's errors that its file is damaged, or that it must be opened anew.

Each block of the file and each entry of the write-ahead log has a checksum, which DuckDB compares whenever it reads
one: so damage is an error with a known text, at the start or later. A full disk, want of memory and a lock that another
process holds have other texts and are no signs.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path

from mvserver import sqlstates
from mvserver.errors import SqlError, words_of

_log = logging.getLogger(__name__)

_KIND = r"(?:(?:IO|FATAL|INTERNAL|TransactionContext|Invalid) Error: )*"
_WHERE = r"(?:Failed to (?:commit|rollback|checkpoint)[^:]{0,80}: |Failure while replaying WAL file \"[^\"]*\": )*"
# From the text's beginning: a statement's own words are quoted further on in DuckDB's messages.
_DAMAGED = re.compile(
    rf"{_KIND}{_WHERE}{_KIND}(?:"
    r"Corrupt (?:database|WAL) file: |"
    r'The file "[^"]*" exists, but it is not a valid DuckDB database file|'
    r'Could not read enough bytes from file "[^"]*\.duckdb(?:\.wal)?":)'
)
_INVALIDATED = re.compile(rf"{_KIND}Failed: database has been invalidated because of a previous fatal error")
_ORIGINAL = re.compile(r"Original error: \"?(.*)", re.S)
_CAUSES_MAX = 16


class Sign(Enum):
    DAMAGED = "the file is damaged"
    INVALIDATED = "DuckDB has stopped working and must be opened anew"


class DamagedViewsError(SqlError):
    """What a statement gets that met the damage."""

    def __init__(self, detail: str) -> None:
        super().__init__(
            sqlstates.DATA_CORRUPTED,
            "the file of the views is damaged",
            detail=f"{detail}.",
            hint="The server sets the file aside, starts itself anew and rebuilds the views from their sources. Try "
            "again in some seconds; a view that is not rebuilt yet fails with 55000.",
        )


class ViewsUnusableError(SqlError):
    """What statements get after an error that ends all work of DuckDB."""

    def __init__(self, detail: str) -> None:
        super().__init__(
            sqlstates.IO_ERROR,
            "the file of the views cannot be used at the moment",
            detail=f"{detail}.",
            hint="The server starts itself anew. Try again in some seconds.",
        )


def sign_in(text: str) -> Sign | None:
    """What the text of one error of DuckDB tells of the file."""
    if _DAMAGED.match(text):
        return Sign.DAMAGED
    if not _INVALIDATED.match(text):
        return None
    original = _ORIGINAL.search(text)
    return Sign.DAMAGED if original is not None and _DAMAGED.match(original[1]) else Sign.INVALIDATED


def error_of(text: str) -> SqlError | None:
    """The user's error for the text of one of DuckDB's; None where it is no sign."""
    sign = sign_in(text)
    if sign is None:
        return None
    first = _first_line(text)
    return DamagedViewsError(first) if sign is Sign.DAMAGED else ViewsUnusableError(first)


def _first_line(text: str) -> str:
    return text.strip().split("\n", 1)[0].rstrip(". ")


def sign_of(error: BaseException) -> tuple[Sign, str] | None:
    """The sign in an error or in what caused it, with DuckDB's text."""
    for each in _chain(error):
        if isinstance(each, DamagedViewsError):
            return Sign.DAMAGED, (each.detail or each.message).rstrip(". ")
        if isinstance(each, ViewsUnusableError):
            return Sign.INVALIDATED, (each.detail or each.message).rstrip(". ")
        if not isinstance(each, SqlError):
            text = words_of(each)
            sign = sign_in(text)
            if sign is not None:
                return sign, _first_line(text)
    return None


def user_error(error: BaseException) -> SqlError | None:
    """What a user is told of an error that is a sign, or that one caused; None for all others."""
    found = sign_of(error)
    if found is None:
        return None
    return DamagedViewsError(found[1]) if found[0] is Sign.DAMAGED else ViewsUnusableError(found[1])


def _chain(error: BaseException) -> Iterator[BaseException]:
    each: BaseException | None = error
    for _ in range(_CAUSES_MAX):
        if each is None:
            return
        yield each
        each = each.__cause__ or each.__context__


def is_marked(path: Path, marker: Path) -> bool:
    """Whether the note is of this very file, and not of one that a backup has taken the place of since."""
    if not marker.exists() or not path.exists():
        return False
    return marker.read_text(errors="replace").partition(" ")[0] == str(path.stat().st_ino)


class DamageWatch:
    """Whoever meets an error of DuckDB tells it here; the first sign is acted upon, once.

    ``mark`` makes a note of damage that the next opening of the file finds. The listener is then told the reason, and
    sees to it that the file is opened anew.
    """

    def __init__(self, mark: Callable[[str], None] = lambda reason: None) -> None:
        self._mark = mark
        self._lock = threading.Lock()
        self._reason: str | None = None
        self._marked = False
        self._listener: Callable[[str], None] | None = None

    @classmethod
    def of_file(cls, path: Path, marker: Path) -> DamageWatch:
        """The note about the file ``path`` is the file ``marker``."""

        def mark(reason: str) -> None:
            try:
                marker.write_text(f"{path.stat().st_ino} {reason}\n")
            except OSError as error:  # the damage is then met again
                _log.warning("damage could not be noted in %s: %s", marker, error)

        return cls(mark)

    @property
    def reason(self) -> str | None:
        """What was noticed first, None as long as all is well."""
        return self._reason

    def notice(self, error: BaseException) -> bool:
        """Whether the error is a sign."""
        found = sign_of(error)
        if found is None:
            return False
        sign, text = found
        with self._lock:
            if sign is Sign.DAMAGED and not self._marked:
                self._marked = True
                self._mark(text)
            first, listener = self._reason is None, self._listener
            self._reason = self._reason or text
        if first:
            _log.error("the file of the views: %s (%s)", sign.value, text)
            if listener is not None:
                listener(text)
        return True

    def subscribe(self, listener: Callable[[str], None]) -> None:
        """``listener(reason)`` is called once, at once where something has been noticed already."""
        with self._lock:
            self._listener, reason = listener, self._reason
        if reason is not None:
            listener(reason)
