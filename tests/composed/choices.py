"""Choices of a generator: random ones that are kept, or kept ones that are made again, and fewer of them that still do.

What a generator makes depends on its choices alone. Where the kept choices end the first alternative is taken, which
generators put the simplest one at: so fewer and lower numbers make a simpler statement, whatever its grammar.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


class Choices:
    def __init__(self, *, seed: int | None = None, made: Sequence[int] = ()) -> None:
        self._random = None if seed is None else random.Random(seed)
        self._left = list(reversed(made))
        self.made: list[int] = []

    def below(self, count: int) -> int:
        if self._random is not None:
            number = self._random.randrange(count)
        else:
            number = self._left.pop() % count if self._left else 0
        self.made.append(number)
        return number

    def one(self, alternatives: Sequence[T]) -> T:
        """The first of them is the simplest."""
        return alternatives[self.below(len(alternatives))]

    def percent(self, share: int) -> bool:
        """True in ``share`` of a hundred cases; False is the simpler answer."""
        return self.below(100) >= 100 - share


def fewer(made: Sequence[int], still: Callable[[Sequence[int]], bool], trials: int) -> list[int]:
    """The simplest choices for which ``still`` holds that are found in so many trials."""
    best, left = list(made), trials

    def better(candidate: list[int]) -> bool:
        nonlocal best, left
        left -= 1
        if not still(candidate):
            return False
        best = candidate
        return True

    changed = True
    while changed and left > 0:
        changed = False
        size = max(1, len(best) // 2)
        while size:
            start = len(best) - size
            while start >= 0 and left > 0:
                part = best[start : start + size]
                if better(best[:start] + best[start + size :]) or (
                    any(part) and better(best[:start] + [0] * len(part) + best[start + size :])
                ):
                    changed = True
                start -= size
            size //= 2
    return best
