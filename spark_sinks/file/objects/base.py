"""A service that keeps objects, as stores of type FILE need it: one protocol, and a module for each service.

An object is visible whole or not at all. Its *version* is what the service tells contents apart by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mvserver import sqlstates
from mvserver.errors import SqlError, words_of
from spark_sinks.property_values import credentials_refused


@dataclass(frozen=True)
class StoredObject:
    key: str
    size: int
    mtime_ns: int
    version: str


class OtherVersion(Exception):  # noqa: N818 - an answer, which the caller makes an error of
    """The object is not, or no longer, as it was said to be."""


class ObjectStore(Protocol):
    """Keys are whole, from the bucket on. Every method raises SqlError: 08006 where the service does not answer, 42501
    where it refuses who asks."""

    def check(self, prefix: str) -> None:
        """The service answers, and lists what is below. It is asked once; other requests are made again."""

    def list(self, prefix: str) -> Iterator[StoredObject]: ...

    def folders(self, prefix: str) -> Iterator[str]:
        """The names that come next below ``prefix``, up to a slash each."""

    def download(self, key: str, version: str, target: Path, stopped: Callable[[], bool]) -> None:
        """Into a new file, which may be cut off where it is ``stopped``. OtherVersion where it is gone or changed."""

    def read(self, key: str) -> tuple[bytes, str] | None:
        """A small object, with its version; None where there is none."""

    def put(self, key: str, content: bytes, replacing: str | None) -> str:
        """The new version. ``replacing`` is the one that must be there, None where none may be; else OtherVersion."""

    def put_file(self, key: str, path: Path) -> None:
        """A new object of any size; OtherVersion where there is one."""

    def delete(self, key: str) -> None:
        """Without effect where there is none."""

    def begin(self, key: str, content: bytes) -> str:
        """Takes a content to the service, where nobody sees it, and returns what :meth:`finish` needs."""

    def finish(self, key: str, begun: str) -> None:
        """Makes it visible. Without effect where that was done, even if the object has been taken away since."""

    def abandon(self, prefix: str, names: str) -> None:
        """Takes away what was begun below, under names that begin so, and never finished."""

    def close(self) -> None: ...


def unreachable(store: str, place: str, error: Exception) -> SqlError:
    return SqlError(sqlstates.CONNECTION_FAILURE, f'store "{store}" does not answer', detail=_said(place, error))


def refused(store: str, place: str, error: Exception, *, credentials: bool) -> SqlError:
    """``credentials``: the service does not know who asks; else it does not let him."""
    if credentials:
        return credentials_refused(store, _said(place, error))
    return SqlError(
        sqlstates.INSUFFICIENT_PRIVILEGE, f'store "{store}" does not allow the request', detail=_said(place, error)
    )


def not_understood(store: str, place: str, error: Exception) -> SqlError:
    return SqlError(
        sqlstates.SYSTEM_ERROR, f'store "{store}" gave an answer that is not understood', detail=_said(place, error)
    )


def _said(place: str, error: Exception) -> str:
    return f"{place}: {(words_of(error).splitlines() or [''])[0].rstrip('.')}."


def joined(*parts: str) -> str:
    """A key."""
    return "/".join(part for part in parts if part)
