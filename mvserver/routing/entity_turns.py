"""Turns at the entities of stores: one statement at a time makes, checks or drops an entity.

A store may take long to answer, or not answer at all. So it is asked before the catalog's transaction, which would hold
up all other definitions; the turn keeps the entity as it was found until the statement is durable or taken back.
"""

from __future__ import annotations

import threading
import time

from mvserver import interrupts, sqlstates
from mvserver.errors import SqlError

_SLICE_S = 0.1
_IN_TRANSACTION_S = 10.0


class EntityTurns:
    """A turn belongs to an object, a statement's work; whoever has it may take it again."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._owners: dict[tuple[str, str], object] = {}

    def take(self, store_id: str, entity: str, owner: object, *, in_transaction: bool) -> None:
        """Waits as long as the statement may. 40001 after 10 s ``in_transaction``, that of the catalog, for which the
        owner of the turn may be waiting."""
        deadline = time.monotonic() + _IN_TRANSACTION_S
        place = (store_id, entity)
        with self._changed:
            while self._owners.get(place, owner) is not owner:
                interrupts.check()
                if in_transaction and time.monotonic() > deadline:
                    raise SqlError(
                        sqlstates.SERIALIZATION_FAILURE,
                        f'another statement is about entity "{entity}" at the same time',
                        hint="Run the transaction again.",
                    )
                self._changed.wait(_SLICE_S)
            self._owners[place] = owner

    def end(self, owner: object) -> None:
        """Of all turns that it has."""
        with self._changed:
            self._owners = {place: other for place, other in self._owners.items() if other is not owner}
            self._changed.notify_all()
