"""A look-up read at the view's state tables, since DuckDB binds and plans a view anew each time it is read.

The columns of a view are expressions over one table, beside a second table for keys that hold a NULL. Where a row of
the view is a row of these, its name in a query can stand for the table itself: half of DuckDB's time for one row. A
look-up by the whole key needs the first table only, since no row of the second equals anything.

The text so made holds as long as the state has the tables that it names; ``PullPlan.sql`` reads the view and always
holds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from mvserver import interrupts
from mvserver.serving.engine.database import STATE_SCHEMA
from spark_sinks.duckdb.layout import NamedText, ViewLayout

# What finishing expressions are written with; anything else is left to DuckDB's own reading of the view.
_KNOWN = (
    exp.Column, exp.Identifier, exp.Cast, exp.DataType, exp.DataTypeParam, exp.Literal, exp.Null, exp.Boolean,
    exp.Paren, exp.Case, exp.If, exp.Is, exp.Not, exp.And, exp.Or, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE,
    exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Coalesce,
)  # fmt: skip

Columns = dict[str, exp.Expr]


def direct(
    tree: exp.Expr, layout: ViewLayout, database: str, key_columns: Collection[str], *, point: bool
) -> exp.Expr | None:
    """``tree`` (bound, over one view) with the view's state in the view's place; None where it has another shape.

    ``point``: all of ``key_columns`` are compared for equality.
    """
    select = _only_table(tree, layout.view_id)
    columns = None if select is None else finished_columns(layout)
    if columns is None:
        return None
    exposed = {node.name for name, node in columns.items() if name in key_columns and isinstance(node, exp.Column)}
    whole_key = point and set(layout.keys) <= exposed
    made = tree.copy()
    target = _only_table(made, layout.view_id)
    assert target is not None  # noqa: S101 - a copy of what had one
    state, alias = _State(layout, database, columns), target.args["alias"]
    if layout.nulls is None or whole_key:
        renamed = state.renamed(alias, star=made.find(exp.Star) is not None)
        target.replace(renamed or exp.Subquery(this=state.selected(layout.table), alias=alias))
    else:
        both = exp.Union(this=state.selected(layout.table), expression=state.selected(layout.nulls), distinct=False)
        target.replace(exp.Subquery(this=both, alias=alias))
    return made


@dataclass(frozen=True)
class _State:
    """What takes a view's place in a query; ``columns`` are the user's, over those of the state's tables."""

    layout: ViewLayout
    database: str
    columns: Columns

    def renamed(self, alias: exp.TableAlias, *, star: bool) -> exp.Table | None:
        """The table itself with the user's names for its columns: the least for DuckDB to bind."""
        columns, order = self.columns, [name for name, _ in self.layout.stored]
        if not all(isinstance(node, exp.Column) for node in columns.values()):
            return None
        names = {node.name: name for name, node in columns.items()}
        if len(names) != len(columns) or (star and [names.get(name) for name in order] != list(columns)):
            return None
        hidden = (f"_{name}" for name in order)
        unused = [name if name not in columns else f"{name}_" for name in hidden]
        shown = [names.get(name, instead) for name, instead in zip(order, unused, strict=True)]
        renaming = exp.TableAlias(
            this=alias.this.copy(), columns=[exp.to_identifier(name, quoted=True) for name in shown]
        )
        return self._table(self.layout.table, renaming)

    def selected(self, table: str) -> exp.Select:
        items = [exp.alias_(node.copy(), name, quoted=True) for name, node in self.columns.items()]
        return exp.select(*items, copy=False).from_(self._table(table, None), copy=False)

    def _table(self, name: str, alias: exp.TableAlias | None) -> exp.Table:
        return exp.Table(
            this=exp.to_identifier(name, quoted=True),
            db=exp.to_identifier(STATE_SCHEMA, quoted=True),
            catalog=exp.to_identifier(self.database, quoted=True),
            alias=alias,
        )


def _only_table(tree: exp.Expr, view_id: str) -> exp.Table | None:
    """The one table of a query without sub-queries, where it is the view and has no column list of its own."""
    tables = list(tree.find_all(exp.Table))
    if len(tables) != 1 or tables[0].name != view_id or not isinstance(tree, exp.Select):
        return None
    alias = tables[0].args.get("alias")
    if alias is None or alias.args.get("columns") or any(tables[0].args.get(key) for key in ("joins", "sample")):
        return None
    return tables[0]


def finished_columns(layout: ViewLayout) -> Columns | None:
    """The user's columns over those of the state table, where they are nothing but known expressions."""
    if layout.finishing is None:
        return None
    inner, outer = _parsed(layout.finishing.inner), _parsed(layout.finishing.columns)
    found = None if inner is None or outer is None else _substituted(outer, inner)
    if found is None:
        return None
    types = dict(layout.stored)
    return {name: _without_idle_casts(node, types) for name, node in found.items()}


def _parsed(columns: Sequence[NamedText]) -> Columns | None:
    found: Columns = {}
    for name, text in columns:
        node = sqlglot.parse_one(text, read="duckdb")
        if any(not isinstance(part, _KNOWN) for part in node.walk()):
            return None
        found[name] = node
    return found


def _substituted(outer: Columns, inner: Columns) -> Columns | None:
    made: Columns = {}
    for name, node in outer.items():
        root = exp.Paren(this=node.copy())
        for column in interrupts.asking(list(root.find_all(exp.Column))):
            if column.name not in inner:
                return None
            found = inner[column.name].copy()
            column.replace(found if isinstance(found, exp.Column | exp.Cast) else exp.Paren(this=found))
        made[name] = root.this
    return made


def _without_idle_casts(node: exp.Expr, types: Mapping[str, str]) -> exp.Expr:
    """``CAST(k0 AS BIGINT)`` of a BIGINT is the column."""
    while isinstance(node, exp.Cast):
        inner = node.this
        while isinstance(inner, exp.Cast) and inner.to == node.to:
            inner = inner.this
        known = types.get(inner.name) if isinstance(inner, exp.Column) else None
        if known is None or exp.DataType.build(known, dialect="duckdb") != node.to:
            return node
        node = inner
    return node
