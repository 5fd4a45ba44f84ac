"""A full disk in DuckDB's errors: of a file that could not be written, or of a transaction that could not commit."""

from __future__ import annotations

import re

from mvserver import sqlstates
from mvserver.errors import SqlError

# From the text's beginning: a statement's own words are quoted further on in DuckDB's messages.
_FULL = re.compile(
    r"(?:(?:IO|TransactionContext) Error: )*(?:Failed to commit: )?(?:IO Error: )?(?:Could not|Cannot|Failed to) \w+ "
    r'file "[^"]*": (?P<cause>No space left on device|Disk quota exceeded)'
)


def full_disk(text: str) -> SqlError | None:
    """The user's error for the text of one of DuckDB's; None where the disk is not full."""
    found = _FULL.match(text)
    if found is None:
        return None
    return SqlError(
        sqlstates.DISK_FULL,
        "the file of the views cannot be written",
        detail=f"{found['cause']}.",
        hint="Free space on the disk of the data directory. The views go on by themselves.",
    )
