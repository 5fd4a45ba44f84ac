"""``SELECT *`` over joins by names: PostgreSQL shows the columns that both sides share first, DuckDB where they stand.

The columns of each source are asked of DuckDB, and the star is written out in PostgreSQL's order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
from sqlglot import exp

from mvserver import interrupts
from mvserver.dialect.derived_columns import sources_of
from mvserver.dialect.probes import columns_of


def present(tree: exp.Expr) -> bool:
    return any(_is_concerned(select) for select in interrupts.asking(tree.find_all(exp.Select)))


def write_out(cursor: duckdb.DuckDBPyConnection, tree: exp.Expr) -> bool:
    """In place, inner queries first; True when there was such a star."""
    changed = False
    for select in interrupts.asking(reversed(list(tree.find_all(exp.Select)))):
        if not _is_concerned(select):
            continue
        columns = _columns(cursor, select, tree.args.get("with_"))
        if columns is not None:
            items = [
                each
                for item in select.expressions
                for each in ([column.item() for column in columns] if _is_star(item) else [item])
            ]
            select.set("expressions", items)
            changed = True
    return changed


@dataclass(frozen=True)
class _Column:
    name: str
    source: str  # none for one of both sides

    def item(self) -> exp.Expr:
        name = exp.to_identifier(self.name, quoted=True)
        return exp.Column(this=name, table=exp.to_identifier(self.source, quoted=True) if self.source else None)


def _is_star(item: exp.Expr) -> bool:
    return isinstance(item, exp.Star)


def _is_concerned(select: exp.Select) -> bool:
    joins = select.args.get("joins") or []
    return any(map(_is_star, select.expressions)) and any(is_by_name(join) for join in joins)


def is_by_name(join: exp.Expr) -> bool:
    return bool(join.args.get("using")) or str(join.args.get("method") or "").upper() == "NATURAL"


def _columns(cursor: duckdb.DuckDBPyConnection, select: exp.Select, outer: exp.Expr | None) -> Sequence[_Column] | None:
    """None where those of a source cannot be told: DuckDB's order stays."""
    sources = sources_of(select)
    joins: Sequence[exp.Expr] = select.args.get("joins") or []
    if len(sources) != len(joins) + 1:
        return None
    finished: list[_Column] = []  # of the trees of joins before the last comma
    found: list[_Column] = []
    for source, join in zip(sources, [None, *joins], strict=True):
        names = columns_of(cursor, source, select, outer)
        if names is None or not source.alias_or_name:
            return None
        own = [_Column(name, source.alias_or_name) for name in names]
        if join is None or not is_by_name(join):
            if join is not None and not any(join.args.get(key) for key in ("kind", "side", "on", "method")):
                finished, found = [*finished, *found], []
            found = [*found, *own]
            continue
        using = [part.name for part in join.args.get("using") or ()]
        if not using:
            using = [column.name for column in found if column.name.lower() in {name.lower() for name in names}]
        shared = {name.lower() for name in using}
        spelled = {column.name.lower(): column.name for column in found}
        merged = [_Column(spelled.get(name.lower(), name), "") for name in using]
        found = [*merged, *(column for column in (*found, *own) if column.name.lower() not in shared)]
    return [*finished, *found]
