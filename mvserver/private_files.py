"""The data directory is its owner's alone: folders 0700, files 0600.

What the process makes from then on is private by its umask, which DuckDB, SQLite and Spark's JVM inherit. What was
there before, from a server that left it readable or from a restored backup, is changed at each start.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mvserver import sqlstates
from mvserver.errors import SqlError

_log = logging.getLogger(__name__)

_UMASK = 0o077
_FOLDER, _FILE = 0o700, 0o600
_OWNERS_OTHERS = stat.S_IRWXG | stat.S_IRWXO


@contextmanager
def refusing_unusable(data_directory: Path) -> Iterator[None]:
    """58030 where the system does not let the directory be used as it must be."""
    try:
        yield
    except OSError as error:
        raise SqlError(
            sqlstates.IO_ERROR,
            f"data directory {data_directory} cannot be used",
            detail=f"{error.strerror}: {error.filename or data_directory}.",
            hint="Mend the cause, or name another by --data-dir.",
        ) from error


def keep_private(data_directory: Path, users_files: Path) -> None:
    """Makes the directory where there is none. ``users_files`` has the records that users put there: these stay as they
    are, since nobody else can enter their folder. Links are not followed. What belongs to somebody else is named in the
    log."""
    os.umask(_UMASK)
    data_directory.mkdir(parents=True, exist_ok=True)
    _make_private(data_directory, _FOLDER)
    for folder, folders, files in os.walk(data_directory):
        here = Path(folder)
        for name in folders:
            _make_private(here / name, _FOLDER)
        folders[:] = [name for name in folders if here / name != users_files]
        for name in files:
            _make_private(here / name, _FILE)


def _make_private(path: Path, mode: int) -> None:
    try:
        found = path.lstat()
        if stat.S_ISLNK(found.st_mode) or not found.st_mode & _OWNERS_OTHERS:
            return
        path.chmod(mode)
    except FileNotFoundError:
        return  # it has gone meanwhile
    except OSError as error:
        _log.warning("%s cannot be made its owner's alone: %s", path, error)
