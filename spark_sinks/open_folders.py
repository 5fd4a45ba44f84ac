"""Places on this machine that stores may use: under folders that the server's configuration opens, links followed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from mvserver import sqlstates
from mvserver.errors import SqlError

LOCAL_SCHEMES = ("", "file")


def open_path(text: str, roots: Sequence[Path]) -> Path:
    """A relative one is under the first root; 42501 where the path is not open."""
    if not roots:
        raise _closed(text, roots)
    path = (Path(text) if Path(text).is_absolute() else roots[0] / text).resolve()
    if not _is_open(path, roots):
        raise _closed(text, roots)
    return path


def check_location(location: str, roots: Sequence[Path]) -> None:
    """42501 for what lies on this machine, but under no root: a catalog may name any place."""
    parts = urlsplit(location)
    if parts.scheme in LOCAL_SCHEMES and not _is_open(Path(unquote(parts.path)).resolve(), roots):
        raise _closed(location, roots)


def _is_open(path: Path, roots: Sequence[Path]) -> bool:
    return any(path.is_relative_to(root) for root in roots)


def _closed(place: str, roots: Sequence[Path]) -> SqlError:
    return SqlError(
        sqlstates.INSUFFICIENT_PRIVILEGE,
        f"{place} is not under a configured root",
        detail=f"What stores have on this machine lies under {os.pathsep.join(map(str, roots)) or 'no folder'}.",
        hint="Links are followed before the comparison. The server's setting file_roots can name more directories.",
    )
