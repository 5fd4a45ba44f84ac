"""The view's column behind a result column: RowDescription's table oid and column number, which drivers show."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from catalog.model import Relation
from mvserver.dialect.joins import is_by_name, joins_of
from mvserver.dialect.marks import RELATION

Origin = tuple[int, int]
NO_ORIGIN: Origin = (0, 0)


def origins(tree: exp.Expr, count: int) -> Sequence[Origin]:
    """For each of ``count`` result columns; (0, 0) for what is not plainly a view's column."""
    unknown = [NO_ORIGIN] * count
    if not isinstance(tree, exp.Select) or tree.args.get("from_") is None:
        return unknown
    if any(map(is_by_name, joins_of(tree))):
        return unknown  # a star there has another order
    joins = tree.args.get("joins") or []
    sources = {
        source.alias_or_name: source.meta.get(RELATION)
        for source in (tree.args["from_"].this, *(j.this for j in joins))
    }
    found: list[Origin] = []
    for item in tree.expressions:
        column = item.unalias()
        if not isinstance(column, exp.Star | exp.Column):
            found.append(NO_ORIGIN)
        elif not column.is_star:
            found.append(_origin(column, sources))
        elif isinstance(column, exp.Star) and any(column.args.values()):
            return unknown
        else:
            chosen = [sources.get(column.table)] if isinstance(column, exp.Column) else list(sources.values())
            for relation in chosen:
                if relation is None:
                    return unknown
                found.extend((relation.oid, number) for number in range(1, len(relation.columns) + 1))
    return found if len(found) == count else unknown


def _origin(column: exp.Expr, sources: dict[str, Relation | None]) -> Origin:
    name = column.name
    table = column.args.get("table")
    candidates = [sources.get(table.name)] if table is not None else list(sources.values())
    hits = [
        (relation.oid, number)
        for relation in candidates
        if relation is not None
        for number, declared in enumerate(relation.columns, start=1)
        if declared.name == name
    ]
    complete = table is not None or all(relation is not None for relation in candidates)
    return hits[0] if len(hits) == 1 and complete else NO_ORIGIN
