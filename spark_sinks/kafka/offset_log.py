"""The end of a running micro-batch, from the checkpoint's own log.

The end cannot be had from the batch's rows: compacted topics and transactions leave offsets without a record.
"""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import unquote, urlsplit

from mvserver import sqlstates
from mvserver.errors import SqlError

_VERSION = "v1"


def batch_end_offsets(checkpoint: str, batch_id: int, topic: str) -> dict[int, int]:
    """The end offset of each partition. XX001 when the log has no such batch or cannot be read."""
    path = _local(checkpoint) / "offsets" / str(batch_id)
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise _damaged(path, f"{error}.") from error
    if not lines or lines[0] != _VERSION:
        raise _damaged(path, f"Its format is not {_VERSION}.")
    for line in lines[2:]:  # after the version and the batch's metadata, one line per source
        try:
            found = json.loads(line)
        except ValueError:
            continue  # an absent source is a bare dash
        if isinstance(found, dict) and isinstance(found.get(topic), dict):
            try:
                return {int(partition): int(offset) for partition, offset in found[topic].items()}
            except (TypeError, ValueError) as error:
                raise _damaged(path, f'Its offsets of topic "{topic}" are not numbers.') from error
    raise _damaged(path, f'It has no offsets of topic "{topic}".')


def _local(checkpoint: str) -> Path:
    parts = urlsplit(checkpoint)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    if "://" in checkpoint:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"checkpoints at {parts.scheme}:// are not supported",
            hint="Keep them in a folder of the server's machine.",
        )
    return Path(checkpoint)


def _damaged(path: Path, detail: str) -> SqlError:
    return SqlError(
        sqlstates.DATA_CORRUPTED,
        f"offset log of the checkpoint cannot be read: {path.name}",
        detail=detail,
        hint="A new generation of the checkpoint starts from the ledger.",
    )
