"""Plans kept by what their meaning depends on: the least recently used go first, those of an older catalog at once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Generic, TypeVar

from mvserver import limits
from mvserver.serving.api import PullPlan, PullScope

Key = tuple[str, PullScope, tuple[int, ...], int]  # text, scope, types of the parameters, generation of the catalog

_PLAN_BYTES = 2_000  # beside its texts
_FIELD_BYTES = 200

P = TypeVar("P", bound=PullPlan | None)


class PlanCache(Generic[P]):
    """For any thread."""

    def __init__(self, entries_max: int = limits.PLAN_CACHE_ENTRIES, bytes_max: int = limits.PLAN_CACHE_BYTES) -> None:
        self._entries_max = entries_max
        self._bytes_max = bytes_max
        self._lock = threading.Lock()  # nothing is waited for under it
        self._plans: OrderedDict[Key, P] = OrderedDict()
        self._bytes = 0
        self._generation = 0

    def __len__(self) -> int:
        return len(self._plans)

    def __contains__(self, key: Key) -> bool:
        with self._lock:
            return key in self._plans

    @property
    def bytes(self) -> int:
        return self._bytes

    def all(self) -> Sequence[P]:
        with self._lock:
            return tuple(self._plans.values())

    def get(self, key: Key) -> P | None:
        with self._lock:
            found = self._plans.get(key)
            if found is not None:
                self._plans.move_to_end(key)
            return found

    def keep(self, key: Key, plan: P) -> None:
        """Nothing where the plan is so large that it would drive out many others."""
        size = _size(key, plan)
        with self._lock:
            if key[3] > self._generation:
                self._generation = key[3]
                for old in [known for known in self._plans if known[3] < key[3]]:
                    self._forget(old)
            if size > self._bytes_max // 8:
                return
            self._forget(key)
            self._plans[key] = plan
            self._bytes += size
            while len(self._plans) > self._entries_max or self._bytes > self._bytes_max:
                self._forget(next(iter(self._plans)))

    def _forget(self, key: Key) -> None:
        if key in self._plans:
            self._bytes -= _size(key, self._plans.pop(key))


def _size(key: Key, plan: PullPlan | None) -> int:
    if plan is None:
        return _PLAN_BYTES + len(key[0])
    texts = len(key[0]) + len(plan.sql) + len(plan.direct or "")
    return _PLAN_BYTES + 2 * texts + _FIELD_BYTES * len(plan.fields)
