"""Slots that a statement names: which names there are, and which readers of this server use them.

A reader notes its slot in a file beside its folder, which outlives the folder: what is left of a reader that is gone is
told by it.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.postgresql.limits import NAME_BYTES_MAX

PROPERTY = "postgresql.slot.name"
PREFIX = "mvserver_"  # of the slots and publications that the server names itself
_NAME = re.compile(r"[a-z0-9_]+")
_noting = threading.Lock()  # of two readers that begin with one slot, one is told of the other


def check_name(name: str) -> None:
    """42602 for what PostgreSQL takes as no name of a slot, and for names of the server's own."""
    if _NAME.fullmatch(name) is None:
        raise SqlError(
            sqlstates.INVALID_NAME,
            f'replication slot name "{name}" contains invalid character',
            hint="Replication slot names may only contain lower case letters, numbers, and the underscore character.",
        )
    if len(name) > NAME_BYTES_MAX:
        raise SqlError(
            sqlstates.INVALID_NAME,
            f'replication slot name "{name}" is too long',
            hint=f"It has at most {NAME_BYTES_MAX} characters.",
        )
    if name.startswith(PREFIX):
        raise SqlError(
            sqlstates.INVALID_NAME,
            f'replication slot name "{name}" is reserved',
            hint=f"Names that begin with {PREFIX} are those of slots that this server names itself.",
        )


@dataclass(frozen=True)
class SlotNote:
    """``made``: the server has made the slot for this reader, and drops it with it. ``begin`` is the LSN behind which
    the reader's publication was there for all that commits; None as long as that is not known."""

    slot: str
    system: str
    made: bool
    begin: int | None


class SlotNotes:
    """That of one reader, whose folder is ``work``."""

    def __init__(self, work: Path) -> None:
        self._path = work.parent / f"{work.name}.slot"

    def read(self) -> SlotNote | None:
        return _read(self._path)

    def write(self, store: str, note: SlotNote) -> None:
        """55006 where another reader of this server has the slot: what it confirms would be lost for this one."""
        with _noting:
            self.check_free(store, note.slot, note.system)
            self._put(note)

    def check_free(self, store: str, slot: str, system: str) -> None:
        """55006 as above."""
        if any((other.slot, other.system) == (slot, system) for other in self._others()):
            raise taken(store, slot)

    def _put(self, note: SlotNote) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        aside = self._path.with_suffix(".slot-new")
        aside.write_text(json.dumps(asdict(note)), "utf-8")
        aside.replace(self._path)

    def restore(self, note: SlotNote | None) -> None:
        """What was noted before something failed."""
        if note is None:
            self.remove()
        else:
            self._put(note)

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)

    def _others(self) -> Iterator[SlotNote]:
        for path in self._path.parent.glob("*.slot"):
            note = None if path == self._path else _read(path)
            if note is not None:
                yield note


def _read(path: Path) -> SlotNote | None:
    try:
        return SlotNote(**json.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        return None


def taken(store: str, slot: str) -> SqlError:
    return SqlError(
        sqlstates.OBJECT_IN_USE,
        f'replication slot "{slot}" of store "{store}" is used by another query',
        detail="A slot has the changes for one reading: of one table, as a changelog or as a stream.",
        hint="Name another slot, or none.",
    )
