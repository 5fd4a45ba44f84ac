"""A mark says how far one shard is read: a text of a position, and its order.

====================  ==================================================================================================
``TRIM``              nothing of the shard is read; it begins with whatever the service still has
``TRIM@MOMENT``       the same; nothing that arrived before the moment is left to read
``@MOMENT``           all that arrived before the moment (milliseconds since 1970) is left out
``SEQUENCE@MOMENT``   up to the record of this sequence number; nothing that arrived before the moment is left to read
``END@MOMENT``        the shard is closed and read to its end; what arrived later than the moment is in its children
====================  ==================================================================================================

Sequence numbers of a shard grow. The moment says, long after, whether records may have expired unread.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TEXT = re.compile(r"TRIM|(?P<from>TRIM|END|\d*)@(?P<moment>\d+)")
_BEGINNING = 0  # before every sequence number


@dataclass(frozen=True)
class Mark:
    """``sequence`` is None where reading begins by the moment, or has ended; 0 stands for the shard's beginning.
    ``moment_ms`` is 0 where nothing is known."""

    sequence: int | None
    moment_ms: int = 0
    ended: bool = False

    @classmethod
    def of(cls, text: object) -> Mark:
        """ValueError for what is no mark."""
        found = _TEXT.fullmatch(text) if isinstance(text, str) else None
        if found is None:
            raise ValueError(text)
        begins, moment = found["from"], int(found["moment"] or 0)
        if begins is None or begins == "TRIM":
            return cls(_BEGINNING, moment)
        if begins == "END":
            return cls(None, moment, ended=True)
        return cls(int(begins) if begins else None, moment)

    @property
    def text(self) -> str:
        if self.ended:
            return f"END@{self.moment_ms}"
        if self.is_beginning:
            return f"TRIM@{self.moment_ms}" if self.moment_ms else "TRIM"
        return f"{'' if self.sequence is None else self.sequence}@{self.moment_ms}"

    @property
    def is_beginning(self) -> bool:
        return self.sequence == _BEGINNING

    def reaches(self, other: Mark) -> bool:
        """Whether all before ``other`` is before this mark of the same shard."""
        if self.ended or other.is_beginning:
            return True
        if other.ended:
            return False
        if self.sequence is not None and other.sequence is not None:
            return self.sequence >= other.sequence
        if other.sequence is None:
            return self.moment_ms >= other.moment_ms
        return self.moment_ms > other.moment_ms

    def behind(self, sequence: int, arrived_ms: int) -> Mark:
        """When one more record is read."""
        return Mark(sequence, max(self.moment_ms, arrived_ms))

    def renewed(self, moment_ms: int) -> Mark:
        """When nothing that arrived before the moment is left to read."""
        return self if self.ended or moment_ms <= self.moment_ms else Mark(self.sequence, moment_ms)


TRIM = Mark(_BEGINNING)


def ended(moment_ms: int) -> Mark:
    return Mark(None, moment_ms, ended=True)
