"""``SELECT *`` over joins by names: PostgreSQL shows the columns that both sides share first, DuckDB where they stand.

The columns of each source are asked of DuckDB, and the star is written out in PostgreSQL's order.
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
from sqlglot import exp

from mvserver import interrupts
from mvserver.dialect.joins import is_bracket, is_by_name, joined, joins_of
from mvserver.dialect.probes import columns_of


def present(tree: exp.Expr) -> bool:
    return any(is_by_name(join) for join in interrupts.asking(tree.find_all(exp.Join)))


def write_out(cursor: duckdb.DuckDBPyConnection, tree: exp.Expr) -> bool:
    """In place, inner queries first; True when there was such a star."""
    changed = _make_queries(tree)
    for select in interrupts.asking(reversed(list(tree.find_all(exp.Select)))):
        if not _is_concerned(select):
            continue
        columns = _columns(cursor, select, tree.args.get("with_"))
        if columns is not None:
            items = [
                each
                for item in select.expressions
                for each in ([column.copy() for column in columns] if _is_star(item) else [item])
            ]
            select.set("expressions", items)
            changed = True
    return changed


def _make_queries(tree: exp.Expr) -> bool:
    """Of brackets around such joins that have a name, in place: its star is one of theirs. True when there was one."""
    changed = False
    for bracket in interrupts.asking(reversed(list(tree.find_all(exp.Subquery)))):
        if bracket.alias and is_bracket(bracket) and any(map(is_by_name, joins_of(bracket))):
            source = bracket.this
            joins = source.args.get("joins") or []
            source.set("joins", None)
            query = exp.Select(expressions=[exp.Star()], from_=exp.From(this=source), joins=joins)
            bracket.set("this", query)
            changed = True
    return changed


def _is_star(item: exp.Expr) -> bool:
    return isinstance(item, exp.Star)


def _is_concerned(select: exp.Select) -> bool:
    """Whether it has a star over joins by names."""
    return any(map(_is_star, select.expressions)) and any(map(is_by_name, joins_of(select)))


def _columns(
    cursor: duckdb.DuckDBPyConnection, select: exp.Select, outer: exp.Expr | None
) -> Sequence[exp.Expr] | None:
    """None where those of a source cannot be told: DuckDB's order stays."""

    def columns(source: exp.Expr) -> Sequence[tuple[str, str]] | None:
        alias = source.alias_or_name
        names = columns_of(cursor, source, select, outer) if alias else None
        return None if names is None else [(name, alias) for name in names]

    found = joined(select.args["from_"].this, columns, select.args.get("joins") or ())
    return None if found is None else [_column(name, sources) for name, sources in found]


def _column(name: str, sources: Sequence[str]) -> exp.Expr:
    """One of several sources has the name of none."""
    table = exp.to_identifier(sources[0], quoted=True) if len(sources) == 1 else None
    return exp.Column(this=exp.to_identifier(name, quoted=True), table=table)
