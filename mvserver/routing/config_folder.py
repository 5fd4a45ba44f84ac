"""Files of the folder that the setting ``store_config_dir`` names. Statements give their names as a property."""

from __future__ import annotations

from pathlib import Path

from mvserver import sqlstates
from mvserver.errors import SqlError


def read_file(folder: Path, name: str, property_: str, bytes_max: int) -> bytes:
    """42501 for a file outside the folder, also by a link; F0000 for one that cannot be read, or has too many bytes."""
    root = folder.resolve()
    path = (root / name).resolve()
    if Path(name).is_absolute() or not path.is_relative_to(root):
        raise SqlError(
            sqlstates.INSUFFICIENT_PRIVILEGE,
            f'{property_} "{name}" is not in the configured folder',
            hint=f"The property '{property_}' is relative to the folder of the server's setting store_config_dir.",
        )
    try:
        if path.stat().st_size > bytes_max:
            raise SqlError(
                sqlstates.CONFIG_FILE_ERROR,
                f'{property_} "{name}" is too large',
                detail=f"It may have {bytes_max} bytes.",
            )
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise cannot_read(name, property_, getattr(error, "strerror", None) or str(error)) from error


def cannot_read(name: str, property_: str, cause: str) -> SqlError:
    return SqlError(sqlstates.CONFIG_FILE_ERROR, f'{property_} "{name}" cannot be read', detail=f"{cause.rstrip('.')}.")
