"""The names that a SELECT may use: its sources with their facets, and the elements of its LATERALs."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from mvserver import sqlstates
from mvserver.lenses import metadata
from mvserver.lenses.outputs import structure
from mvserver.lenses.problems import Place, ProblemError, problem, unsupported
from mvserver.lenses.program import RowKind, Selection
from mvserver.lenses.rows import KEY, META, VALUE, Facet, Rows, column
from mvserver.lenses.written import Written, written
from mvserver.quoting import quoted

_FACETS = (KEY, VALUE, META)
_FIELDS_SHOWN_MAX = 10

Reference = Callable[[str, str], str]
"""From a source's alias and a column to the text that names it."""


@dataclass(frozen=True)
class Item:
    """A source of FROM; ``rows`` None is the element of a LATERAL."""

    alias: str
    rows: Rows | None


def by_alias(alias: str, name: str) -> str:
    return f"{quoted(alias)}.{quoted(name)}"


@dataclass(frozen=True)
class Scope:
    items: tuple[Item, ...]
    reference: Reference = by_alias
    records: bool = True  # whether ``_meta`` can be read here
    elements: Mapping[tuple[str, ...], str] = field(default_factory=dict)  # of LATERALs, where they are columns

    @property
    def sources(self) -> Sequence[tuple[str, Rows]]:
        return [(item.alias, item.rows) for item in self.items if item.rows is not None]

    def text(self, selection: Selection) -> Written:
        """The selection as an expression of the first dialect."""
        parts = selection.parts
        item = self._named(parts[0]) if parts[0] not in _FACETS else None
        if item is not None and item.rows is None:
            names = parts[1:] or (item.alias,)
            text = self.elements.get(parts) or ".".join(map(quoted, (item.alias, *names)))
            return written(selection.place, text)
        if item is not None and item.rows is not None and (len(parts) > 1 or not self._has_field(parts[0])):
            return self._of(item.alias, item.rows, parts[1:], selection)
        if parts[0] in _FACETS:
            alias, rows = self._only(selection)
            return self._of(alias, rows, parts, selection)
        alias, rows = self._with_field(parts[0], selection.place)
        return self._of(alias, rows, (VALUE, *parts), selection)

    def key_columns(self, selection: Selection) -> tuple[tuple[str, str], ...] | None:
        """Of a selection that is a whole key with fields: (field, text) of each; None for all other selections."""
        parts = selection.parts
        item = self._named(parts[0]) if len(parts) == 2 else None
        if parts[-1] != KEY or (len(parts) == 2 and (item is None or item.rows is None)) or len(parts) > 2:
            return None
        alias, rows = (item.alias, item.rows) if item is not None else self._only(selection)
        if rows is None or rows.key is None or rows.key.primitive:
            return None
        return tuple((field, self.reference(alias, column(KEY, field))) for field in rows.key.fields)

    def is_object(self, selection: Selection) -> bool:
        """Whether it is a whole facet with fields."""
        parts = selection.parts
        item = self._named(parts[0]) if len(parts) == 2 else None
        rows = item.rows if item is not None else self.sources[0][1] if len(parts) == 1 else None
        if rows is None or parts[-1] not in (KEY, VALUE):
            return False
        what = rows.key if parts[-1] == KEY else rows.value
        return what is not None and not what.primitive

    def is_element(self, selection: Selection) -> bool:
        """Whether it is of the element of a LATERAL."""
        item = self._named(selection.parts[0])
        return item is not None and item.rows is None

    def may_miss(self, selection: Selection) -> bool:
        """Whether an outer join may not find the source that a selection is of."""
        alias = self.item_of(selection)
        return any(rows.missing for name, rows in self.sources if name == alias)

    def item_of(self, selection: Selection) -> str | None:
        """The alias of the source that a selection is of."""
        first = selection.parts[0]
        if first not in _FACETS:
            named = self._named(first)
            if named is not None:
                return named.alias
            having = [alias for alias, rows in self.sources if first in rows.value.fields]
            return having[0] if len(having) == 1 else None
        return self.sources[0][0] if len(self.sources) == 1 else None

    # --- which source -----------------------------------------------------------------------------------------------
    def _named(self, name: str) -> Item | None:
        return next((item for item in self.items if item.alias == name), None)

    def _has_field(self, name: str) -> bool:
        return any(name in rows.value.fields for _, rows in self.sources)

    def _only(self, selection: Selection) -> tuple[str, Rows]:
        if len(self.sources) != 1:
            raise problem(
                selection.place,
                sqlstates.AMBIGUOUS_COLUMN,
                f'"{".".join(selection.parts)}" is ambiguous',
                "Write the name of its source before it.",
            )
        return self.sources[0]

    def _with_field(self, name: str, place: Place) -> tuple[str, Rows]:
        having = [(alias, rows) for alias, rows in self.sources if name in rows.value.fields]
        if len(having) > 1:
            raise problem(
                place,
                sqlstates.AMBIGUOUS_COLUMN,
                f'field "{name}" is ambiguous',
                "Write the name of its source before it.",
            )
        if not having:
            raise self._missing(name, place)
        return having[0]

    def _missing(self, name: str, place: Place, rows: Rows | None = None, facet: str = VALUE) -> ProblemError:
        known: list[str] = []
        for each in [rows] if rows is not None else [each for _, each in self.sources]:
            what = each.key if facet == KEY else each.value
            known += what.fields if what is not None else ()
        close = [each for each in known if each.lower() == name.lower()]
        close = close or difflib.get_close_matches(name, known, n=1, cutoff=0.6)
        hint = f"Perhaps {close[0]} is meant." if close else None
        if hint is None and any(name in (each.key.fields if each.key else ()) for _, each in self.sources):
            hint = f"The key has such a field: {KEY}.{name}."
        if hint is None and known:
            others = " and others" if len(known) > _FIELDS_SHOWN_MAX else ""
            hint = f"There {'are' if len(known) > 1 else 'is'} {', '.join(known[:_FIELDS_SHOWN_MAX])}{others}."
        where = "" if facet == VALUE else f" in {facet}"
        return problem(place, sqlstates.UNDEFINED_COLUMN, f'field "{name}" does not exist{where}', hint)

    # --- which field ------------------------------------------------------------------------------------------------
    def _of(self, alias: str, rows: Rows, parts: Sequence[str], selection: Selection) -> Written:
        """Of one source; ``parts`` begin with a facet or a field."""
        place = selection.place
        if not parts:
            raise unsupported(
                place, f'the whole record of "{alias}" cannot be a value', "Select a facet of it: _key or _value."
            )
        facet, fields = (parts[0], parts[1:]) if parts[0] in _FACETS else (VALUE, parts)
        if facet == META:
            return self._meta(alias, rows, tuple(fields), place)
        what = rows.key if facet == KEY else rows.value
        if what is None:
            raise problem(
                place,
                sqlstates.UNDEFINED_COLUMN,
                f'nothing is known of the key of "{alias}"',
                "Declare it: CREATE STREAM ... WITH ('key.format' = ..., 'key.type' = ...), or register a schema.",
            )
        return self._field(alias, rows, facet, what, fields, place)

    def _field(self, alias: str, rows: Rows, facet: str, what: Facet, fields: Sequence[str], place: Place) -> Written:
        if what.primitive:
            if fields:
                raise problem(
                    place,
                    sqlstates.UNDEFINED_COLUMN,
                    f'{facet} of "{alias}" is one value and has no field "{fields[0]}"',
                    f"Write {facet} alone.",
                )
            return written(place, self.reference(alias, column(facet, None)))
        if not fields:
            return self._whole(alias, rows, facet, what, place)
        if fields[0] not in what.fields:
            raise self._missing(fields[0], place, rows, facet)
        names = "".join(f".{quoted(field)}" for field in fields[1:])
        return written(place, self.reference(alias, column(facet, fields[0])) + names)

    def _whole(self, alias: str, rows: Rows, facet: str, what: Facet, place: Place) -> Written:
        """A facet with fields as one object, NULL where an outer join has found nothing."""
        whole = structure(
            [(field, written(self.reference(alias, column(facet, field)))) for field in what.fields], place
        )
        if not rows.missing:
            return whole
        if rows.kind is not RowKind.TABLE:
            raise unsupported(
                place,
                f'the whole {facet} of "{alias}" cannot be a value here: the join may find none',
                f"Select its fields: {facet}.{what.fields[0]}.",
            )
        return written("CASE WHEN ", self.reference(alias, rows.key_columns[0]), " IS NOT NULL THEN ", whole, " END")

    def _meta(self, alias: str, rows: Rows, path: tuple[str, ...], place: Place) -> Written:
        if not metadata.is_known(path):
            raise problem(
                place,
                sqlstates.UNDEFINED_COLUMN,
                f'field "{".".join(path)}" does not exist in {META}',
                "It has timestamp, partition, offset, topic and headers.name.",
            )
        if path in rows.meta:
            return written(place, self.reference(alias, metadata.column(path)))
        if rows.records and self.records:
            return written(place, metadata.of_record(path))
        raise unsupported(
            place,
            f'"{alias}" is no stream of records, and has no {META}',
            f"Select it in the WITH over the topic: {META}.{path[0]} AS name.",
        )
