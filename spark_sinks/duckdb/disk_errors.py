"""A disk that takes nothing in DuckDB's errors: of a file that could not be written, or a transaction that could not
commit."""

from __future__ import annotations

import re

from mvserver import sqlstates
from mvserver.errors import SqlError

# From the text's beginning: a statement's own words are quoted further on in DuckDB's messages.
_UNWRITTEN = re.compile(
    r"(?:(?:IO|TransactionContext) Error: )*(?:Failed to commit: )?(?:IO Error: )?(?:Could not|Cannot|Failed to) \w+ "
    r'file "[^"]*": (?P<cause>No space left on device|Disk quota exceeded|Read-only file system|Input/output error)'
)
_FULL = ("No space left on device", "Disk quota exceeded")


def disk_error(text: str) -> SqlError | None:
    """The user's error for the text of one of DuckDB's; None where the disk is not at fault."""
    found = _UNWRITTEN.match(text)
    if found is None:
        return None
    full = found["cause"] in _FULL
    hint = "Free space on" if full else "Look after"
    return SqlError(
        sqlstates.DISK_FULL if full else sqlstates.IO_ERROR,
        "the file of the views cannot be written",
        detail=f"{found['cause']}.",
        hint=f"{hint} the disk of the data directory. The views go on when it takes what they write.",
    )
