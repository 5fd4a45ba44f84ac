"""The changes of one commit to the rows of a view, as readers of its history get them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from mvserver.resume_tokens import Seal, Token

KIND = "mv_op"  # the column with the kind of a change, before the view's own


@dataclass(frozen=True, eq=False)
class EpochChanges:
    """``rows`` are numbered from ``first_seq`` on: their kind, then the view's columns. Several readers are given the
    same object, so that what one of them makes of it (``once``) serves all. Not ``complete``: more rows of the epoch
    follow in the next one.

    Of a reader who sees some rows alone, ``numbers`` are those of the rows, up to ``through``. ``mark`` is of which
    rows he sees, ``seal`` hides the numbers in his tokens, and his epochs are the times of commits, which count
    nothing."""

    incarnation: str
    epoch: int
    at: dt.datetime
    first_seq: int
    rows: pa.Table
    complete: bool = True
    numbers: Sequence[int] | None = None
    through: int = 0
    mark: str = ""
    seal: Seal | None = None
    _made: dict[Any, Any] = field(default_factory=dict, repr=False)

    @property
    def last_seq(self) -> int:
        last: int = self.first_seq + self.rows.num_rows - 1
        return last if self.numbers is None else self.through

    def token(self, index: int) -> str:
        """Of the row at this place: whoever has it and all before it resumes behind it."""
        number = self.first_seq + index if self.numbers is None else self.numbers[index]
        return self._text(number)

    @property
    def last_token(self) -> str:
        return self._text(self.last_seq)

    def _text(self, number: int) -> str:
        token = Token(self.incarnation, number, self.mark)
        return str(token) if self.seal is None else self.seal.text(token)

    def after(self, seq: int) -> EpochChanges:
        """The rows behind number ``seq``."""
        skipped = max(0, seq + 1 - self.first_seq)
        if skipped == 0:
            return self
        rows = self.rows.slice(skipped)
        return EpochChanges(self.incarnation, self.epoch, self.at, self.first_seq + skipped, rows, self.complete)

    def once(self, form: object, make: Callable[[EpochChanges], Any]) -> Any:
        """What ``make`` gives, made once for all readers that ask for this (hashable) ``form``. Two who ask at the same
        time may both make it."""
        if form not in self._made:
            self._made[form] = make(self)
        return self._made[form]
