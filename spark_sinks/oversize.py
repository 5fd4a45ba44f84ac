"""Records that are larger than the server reads, or lost: what stands in their place, and what is said of them.

No decoder may see such a record, and Spark's memory may not hold it. A source puts a short *mark* in its place: bytes
that are no UTF-8, so that every decoder of text rejects it, then the record's size and its first bytes.
"""

from __future__ import annotations

import re

_MARK = b"\xff\xfemvserver oversize "
_WORDS = b"\xff\xfemvserver words "
_MARKED = re.compile(re.escape(_MARK) + rb"([0-9]+) of ([0-9]+)\xff", re.DOTALL)
KEPT_BYTES = 65_000  # of a record: what the rejected row shows, with the mark within what is kept of any


def mark(first: bytes, size: int, most: int) -> bytes:
    """``first`` is how the record begins, or all of it."""
    return _MARK + b"%d of %d\xff" % (size, most) + first[:KEPT_BYTES]


def mark_of_words(words: str) -> bytes:
    """In the place of records that there are no bytes of."""
    return _WORDS + words.encode()


def marked_unless_small(column: str, most: int, beside: str | None = None) -> str:
    """Spark SQL: a binary column, or the mark of what is larger than ``most`` bytes: the column, or the one ``beside``
    it. So a record is rejected for its key, too, where nothing decodes that."""
    cases = " ".join(
        f"WHEN octet_length({each}) > {most} THEN {_made(each, most)}" for each in (column, beside) if each is not None
    )
    return f"CASE {cases} ELSE {column} END"


def _made(column: str, most: int) -> str:
    words = f"concat(cast(octet_length({column}) as string), ' of {most}')"
    return f"concat(X'{_MARK.hex()}', cast({words} as binary), X'FF', substring({column}, 1, {KEPT_BYTES}))"


def unmarked(raw: bytes | None) -> tuple[bytes, int, str] | None:
    """First bytes, size and reason of a marked record; None of any other."""
    if raw is not None and raw.startswith(_WORDS):
        return b"", 0, raw.removeprefix(_WORDS).decode()
    found = None if raw is None else _MARKED.match(raw)
    if raw is None or found is None:
        return None
    size, most = int(found.group(1)), int(found.group(2))
    return raw[found.end() :], size, f"the record is too large: it has {size} bytes, and at most {most} are read"
