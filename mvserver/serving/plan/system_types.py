"""Types of the system catalog that are others' inside a query, and PostgreSQL's own to a client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from mvserver.dialect.derived_columns import item_of
from mvserver.dialect.joins import sources_of
from mvserver.dialect.marks import SYSTEM_RELATION
from mvserver.dialect.typing.duck_types import OutputType
from mvserver.pgcatalog.pgtypes import PgType
from mvserver.pgcatalog.static_data import StaticColumn, StaticRelation, relation
from mvserver.types import oids

_DEPTH_MAX = 20  # of sub-queries through which a column is followed
_DOMAINS: Mapping[str, PgType] = {  # those whose type has a modifier
    "information_schema.yes_or_no": PgType(oids.VARCHAR, 3 + 4),
    "information_schema.time_stamp": PgType(oids.TIMESTAMPTZ, 2),
}


def as_declared(tree: exp.Expr, outputs: Sequence[OutputType]) -> list[OutputType]:
    """Columns of ``tree`` that are plainly those of the catalog have the types that they are declared with."""
    found = _columns(tree, len(outputs)) if isinstance(tree, exp.Select) else ()
    if len(found) != len(outputs):
        return list(outputs)
    return [_shown(output, column) for output, column in zip(outputs, found, strict=True)]


def _shown(output: OutputType, column: StaticColumn | None) -> OutputType:
    if column is None:
        return output
    return output.shown_as(_DOMAINS.get(column.pg_type) or PgType(column.pg_oid))


def _columns(select: exp.Select, count: int, depth: int = 0) -> Sequence[StaticColumn | None]:
    """One for each column of the result; none at all where a ``*`` cannot be followed."""
    found: list[StaticColumn | None] = []
    for item in select.expressions:
        bare = item.unalias()
        if len(found) > count or depth > _DEPTH_MAX:
            return ()
        if not bare.is_star:
            found.append(_column(bare, select, depth))
            continue
        named = bare.table if isinstance(bare, exp.Column) else ""
        for source in sources_of(select):
            if not named or named == source.alias_or_name:
                known = _relation(source)
                inner = known.columns if known is not None else _columns_within(source, count, depth + 1)
                if not inner:
                    return ()
                found.extend(inner)
    return found


def _columns_within(source: exp.Expr, count: int, depth: int) -> Sequence[StaticColumn | None]:
    query = source.this if isinstance(source, exp.Subquery) else None
    return _columns(query, count, depth) if isinstance(query, exp.Select) else ()


def _column(item: exp.Expr, select: exp.Select, depth: int) -> StaticColumn | None:
    """The column of the catalog behind an expression, through sub-queries and ``WITH``."""
    if not isinstance(item, exp.Column) or depth > _DEPTH_MAX:
        return None
    sources = sources_of(select)
    named = [source for source in sources if source.alias_or_name == item.table] if item.table else sources
    hits = [hit for hit in (_of_source(source, item.name, select, depth) for source in named) if hit is not None]
    return hits[0] if len(hits) == 1 or (hits and len({hit.pg_type for hit in hits}) == 1) else None


def _of_source(source: exp.Expr, name: str, select: exp.Select, depth: int) -> StaticColumn | None:
    known = _relation(source)
    if known is not None:
        return next((column for column in known.columns if column.name == name), None)
    inner = item_of(source, name, select)
    within = None if inner is None else inner.find_ancestor(exp.Select)
    return None if inner is None or within is None else _column(inner.unalias(), within, depth + 1)


def _relation(source: exp.Expr) -> StaticRelation | None:
    found = source.meta.get(SYSTEM_RELATION)
    return None if found is None else relation(*found)
