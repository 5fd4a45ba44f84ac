"""A digest of all rows, written with each commit and compared at each opening.

SQLite notices damage to its own structures, but has no checksums: a flipped bit in a text would be another name, or
another query. The digest stands beside the generation that it is of. One of an older generation was written before a
server that knows no digests changed the catalog; it says nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from catalog import counters

SETTING = "digest"
_Read = Callable[[str], Sequence[tuple[Any, ...]]]


def seal(write: Callable[[str, tuple[str, str]], object], read: _Read) -> None:
    """Inside a transaction, as its last change: of a statement, and of a step that brings the tables to a version."""
    write(
        "INSERT INTO settings VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (SETTING, _sealed(read)),
    )


def is_whole(read: _Read) -> bool:
    """False where a row is not as it was written. ``read`` runs a SELECT on the file, whose tables may be of any
    version, or missing."""
    tables = {name for (name,) in read("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not {"settings", "counters"} <= tables:
        return True
    rows = read(f"SELECT value FROM settings WHERE name = '{SETTING}'")
    if not rows:
        return True
    generation = str(rows[0][0]).partition(" ")[0]
    ((present,),) = read(counters.GENERATION) or ((None,),)
    return generation != str(present) or str(rows[0][0]) == _sealed(read)


def _sealed(read: _Read) -> str:
    digest = hashlib.blake2b(digest_size=20)
    for name, definition in read("SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name"):
        if str(name).startswith("sqlite_"):  # of a damaged file it may be no text
            continue
        digest.update(f"{name}\0{definition}\0".encode())
        kept = f" WHERE name <> '{SETTING}'" if name == "settings" else ""
        for row in sorted(map(repr, read(f'SELECT * FROM "{name}"{kept}'))):
            digest.update(row.encode("utf-8", "surrogatepass"))
    ((generation,),) = read(counters.GENERATION)
    return f"{generation} {digest.hexdigest()}"
