"""OUTER joins of two TABLEs by their keys: as groups of the joined rows by the key that both sides share.

A full join of the first dialect tells its rows apart by the keys of both sides, of which one is NULL where nothing was
found. Here the key is that of either side. So the joined rows are grouped by it: a group has just one row at a time,
and the groups are exact as rows come and go. Each column of it is the most frequent value, which is the only one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mvserver.lenses.program import Expression, Projection, Select, Selection, Wildcard
from mvserver.lenses.scope import Item, Scope, by_alias
from mvserver.lenses.values import children
from mvserver.lenses.written import Written, written
from mvserver.quoting import quoted

_JOINED = "joined"  # the name of the sub-query


def grouped(
    items: tuple[Item, Item], keys: Sequence[tuple[str, str]], text: Written, select: Select
) -> tuple[Written, Scope, Sequence[str]]:
    """FROM with the groups of ``text``, the join; the names that columns have there; and how the key is named.
    ``keys`` are the columns of both sides that make up the key."""
    named = _named(select)
    places: dict[tuple[str, str], str] = {}
    shared = [f"coalesce({by_alias(items[0].alias, one)}, {by_alias(items[1].alias, two)})" for one, two in keys]
    columns = [f'{each} AS "k{index}"' for index, each in enumerate(shared)]
    for item in items:
        for name in () if item.rows is None else (*item.rows.key_columns, *item.rows.value_columns):
            if named is None or named & {name, name.rpartition(".")[2]}:
                place = places[item.alias, name] = f"c{len(places)}"
                columns.append(f"mode() WITHIN GROUP (ORDER BY {by_alias(item.alias, name)}) AS {quoted(place)}")
    result = written(select.place, f"(SELECT {', '.join(columns)} FROM ", text, f" GROUP BY {', '.join(shared)})")
    result.add(f" AS {quoted(_JOINED)}")
    scope = Scope(items, lambda alias, name: f"{quoted(_JOINED)}.{quoted(places[alias, name])}", records=False)
    return result, scope, [f'{quoted(_JOINED)}."k{index}"' for index in range(len(keys))]


def _named(select: Select) -> frozenset[str] | None:
    """The names that the SELECT uses anywhere; None where it has all of them."""
    if any(isinstance(each, Wildcard) for each in select.projections):
        return None
    given = [each.expression for each in (*select.projections, *select.group_by) if isinstance(each, Projection)]
    given += [] if select.where is None else [select.where]
    return frozenset(part for each in given for selection in _selections(each) for part in selection.parts)


def _selections(node: Expression) -> Iterator[Selection]:
    if isinstance(node, Selection):
        yield node
    for each in children(node):
        yield from _selections(each)
