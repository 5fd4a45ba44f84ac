"""The changes that a reader sees who may see some rows of a view alone.

A row that is replaced comes twice, as it was and as it is. Where only one of the two may be seen, the row comes or goes
for that reader.
"""

from __future__ import annotations

from collections.abc import Sequence

from spark_sinks.duckdb.changes.change_outbox import GONE, NEW, OLD_OF_UPDATE, UPDATED


def seen_kinds(kinds: Sequence[str], seen: Sequence[bool | None]) -> list[str | None]:
    """The kinds of the changes as the reader sees them, None for those that he does not see. The rows of one pair stand
    side by side."""
    found: list[str | None] = []
    for at, kind in enumerate(kinds):
        if not seen[at]:
            found.append(None)
        elif kind == OLD_OF_UPDATE:
            found.append(kind if at + 1 < len(seen) and seen[at + 1] else GONE)
        elif kind == UPDATED:
            found.append(kind if at and seen[at - 1] else NEW)
        else:
            found.append(kind)
    return found
