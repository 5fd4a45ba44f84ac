"""The options of a store of TYPE FILE: one directory under a root that the server's configuration allows.

The directory is resolved (symbolic links, ``..``) before it is compared with the roots, so that no spelling of a path
and no link leads a statement to files that the configuration does not open. Roots are the server's to give; a
statement can only choose among what lies under them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.store_kind import REGION

FILES_MAX = "max.files.per.batch"
_ACCEPTED = ("type", "uris", *REGION, FILES_MAX)  # a directory is here, whatever its region is said to be


@dataclass(frozen=True)
class FileOptions:
    """``directory`` is resolved and lies under ``root``, which is resolved too. ``files_max`` are those that a batch
    reads at most; None leaves it to their sizes."""

    directory: Path
    root: Path
    region: str | None = None
    files_max: int | None = None

    @classmethod
    def from_properties(cls, properties: Mapping[str, Any], roots: Sequence[Path]) -> FileOptions:
        """Checks a store's properties; 22023 for what is wrong in them, 42501 for a directory that is not open."""
        for key in properties:
            if key not in _ACCEPTED:
                raise SqlError(
                    sqlstates.INVALID_PARAMETER_VALUE,
                    f'property "{key}" is not known for a store of type FILE',
                    hint="A store of type FILE has 'uris' (a directory) and 'max.files.per.batch', and accepts "
                    "'access.region' and 'availability_zone'.",
                )
        uris = properties.get("uris")
        if uris is None:
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE,
                'a store of type FILE needs the property "uris"',
                hint="Give a directory: 'uris' = 'clicks' is the folder clicks under the first configured root.",
            )
        directory, root = _resolve(_path(uris), roots)
        region = next((str(properties[key]) for key in REGION if properties.get(key) is not None), None)
        return cls(directory, root, region, files_max(properties))


def is_under(path: Path, root: Path) -> bool:
    """Whether a path, all links followed, is the root or lies under it."""
    return path.resolve().is_relative_to(root)


def files_max(properties: Mapping[str, Any]) -> int | None:
    """The property; 22023 for what is none."""
    value = properties.get(FILES_MAX)
    if value is None:
        return None
    text = str(value)
    if isinstance(value, bool) or not text.isascii() or not text.isdigit() or int(text) < 1:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE, f'property "{FILES_MAX}" must be a number of 1 or more, not "{value}"'
        )
    return int(text)


def _path(uris: object) -> Path:
    if not isinstance(uris, str) or not uris.strip() or "\0" in uris:
        raise SqlError(sqlstates.INVALID_PARAMETER_VALUE, 'property "uris" must be the path of a directory')
    text = uris.strip()
    parts = urlsplit(text)
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost"):
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE,
                f'property "uris" names another machine: {text}',
                hint="Write file:///path, or the path alone.",
            )
        return Path(unquote(parts.path))
    return Path(text)


def _resolve(path: Path, roots: Sequence[Path]) -> tuple[Path, Path]:
    if not roots:
        raise SqlError(
            sqlstates.INSUFFICIENT_PRIVILEGE,
            "no directory is open to stores of type FILE",
            hint="The server's setting file_roots lists the directories under which stores may lie.",
        )
    resolved_roots = [root.resolve() for root in roots]
    if path.is_absolute():
        directory = path.resolve()
    else:
        under_roots = [(root / path).resolve() for root in resolved_roots]
        directory = next((found for found in under_roots if found.is_dir()), under_roots[0])
    for root in resolved_roots:
        if directory.is_relative_to(root):
            if directory.exists() and not directory.is_dir():
                raise SqlError(sqlstates.INVALID_PARAMETER_VALUE, f'property "uris" does not name a directory: {path}')
            return directory, root
    raise SqlError(
        sqlstates.INSUFFICIENT_PRIVILEGE,
        f"directory {path} is not under a configured root",
        detail=f"Stores of type FILE may lie under {os.pathsep.join(map(str, resolved_roots))}.",
        hint="Links are followed before the comparison. The server's setting file_roots can name more directories.",
    )
