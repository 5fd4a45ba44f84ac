"""A batch as a view over a changelog reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spark_sinks.duckdb.changes.changelog import RetractedState, last_changes
from spark_sinks.duckdb.record_columns import PLACE, RANK


@dataclass(frozen=True)
class ChangeInput:
    """Columns of the batch. ``known`` tells the records that are not rejected, ``columns`` are those of the state,
    ``identity`` is its text of the key where it has one. Of a view with UNNEST the last ``ordinals`` of the primary key
    tell the rows of a record apart."""

    primary_key: tuple[str, ...]
    known: str
    passing: str
    columns: tuple[str, ...]
    identity: str | None = None
    ordinals: int = 0

    def statement(self, relation: str) -> str:
        """The last change of each primary key."""
        return last_changes(
            relation,
            keys=self.primary_key,
            known=self.known,
            passing=self.passing,
            order=(RANK, PLACE),
            columns=self.columns,
            identity=self.identity,
            ordinals=self.ordinals,
        )


def contributed(
    state: RetractedState, keys: Sequence[str], arguments: Sequence[str], values: Sequence[Sequence[str]]
) -> tuple[str, ...]:
    """The columns that the state keeps of a row, given those of the group keys, of the argument of each measure and of
    each value table."""
    found = dict(zip(state.arguments, arguments, strict=True))
    for names, columns in zip(state.values, values, strict=True):
        found.update(zip(names, columns, strict=True))
    return (*keys, *(found[name] for name in state.rows.columns[len(keys) :]))
