"""What a named source of a program gives: its kind and its facets, under the names that columns have for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mvserver.lenses.program import RowKind
from mvserver.record_keys import KEY_FIELD

KEY, VALUE, META = "_key", "_value", "_meta"


@dataclass(frozen=True)
class Facet:
    """A primitive value, or named fields."""

    fields: tuple[str, ...] = ()

    @property
    def primitive(self) -> bool:
        return not self.fields


PRIMITIVE = Facet()


@dataclass(frozen=True)
class Rows:
    """``key`` is None where nothing is known of it; ``records`` are read from a topic, and so have ``_meta``; ``meta``
    is what columns of other rows carry of it; ``not_null`` are the columns that never are NULL; ``missing`` rows are
    those that an outer join may not find."""

    kind: RowKind
    key: Facet | None
    value: Facet
    records: bool = False
    not_null: frozenset[str] = frozenset()
    missing: bool = False
    meta: frozenset[tuple[str, ...]] = frozenset()

    @property
    def key_columns(self) -> tuple[str, ...]:
        return () if self.key is None else columns_of(KEY, self.key)

    @property
    def value_columns(self) -> tuple[str, ...]:
        return columns_of(VALUE, self.value)


def column(facet: str, field: str | None) -> str:
    """The column of a facet's field, or of a whole primitive facet."""
    if field is None:
        return facet
    return KEY_FIELD + field if facet == KEY else field


def columns_of(facet: str, what: Facet) -> tuple[str, ...]:
    return (facet,) if what.primitive else tuple(column(facet, field) for field in what.fields)


def key_of(columns: Sequence[str]) -> Facet:
    """The facet that these columns are."""
    return PRIMITIVE if list(columns) == [KEY] else Facet(tuple(each.removeprefix(KEY_FIELD) for each in columns))
