"""A look-up read at the view's state tables, since DuckDB binds and plans a view anew each time it is read.

A view over state is columns over columns over one table, beside a second table for keys that hold a NULL. Where it has
exactly that shape, the view's name in a query can stand for the table itself: half of DuckDB's time for one row. A
look-up by the whole key needs the first table only, since no row of the second equals anything.

The text so made holds as long as the state has the tables that it names; ``PullPlan.sql`` reads the view and always
holds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import duckdb
import sqlglot
from sqlglot import exp

from mvserver import interrupts
from mvserver.serving.database import STATE_SCHEMA, VIEW_SCHEMA

_NULLS = "_nulls"

# What the definitions of views are written with; anything else is left to DuckDB's own reading of the view.
_KNOWN = (
    exp.Column, exp.Identifier, exp.Cast, exp.DataType, exp.DataTypeParam, exp.Literal, exp.Null, exp.Boolean,
    exp.Paren, exp.Case, exp.If, exp.Is, exp.Not, exp.And, exp.Or, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE,
    exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Coalesce,
)  # fmt: skip

Columns = dict[str, exp.Expr]


class StateReader:
    """Reads definitions with a cursor that its owner lends, one user at a time."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection, database: str) -> None:
        self._cursor = cursor
        self._database = database

    def direct(self, tree: exp.Expr, view_id: str, key_columns: Collection[str], *, point: bool) -> exp.Expr | None:
        """``tree`` (bound, over one view) with the view's state in the view's place; None where it has another shape.

        ``point``: all of ``key_columns`` are compared for equality.
        """
        select = _only_table(tree, view_id)
        definition = self._definition(view_id)
        if select is None or definition is None:
            return None
        state = _state_of(definition)
        if state is None:
            return None
        columns, table, nulls = state
        types = self._types(table)
        columns = {name: _without_idle_casts(node, types) for name, node in columns.items()}
        exposed = {node.name for name, node in columns.items() if name in key_columns and isinstance(node, exp.Column)}
        whole_key = point and {name for name in types if name[:1] == "k"} <= exposed
        made = tree.copy()
        target = _only_table(made, view_id)
        assert target is not None  # noqa: S101 - a copy of what had one
        alias = target.args["alias"]
        if nulls is None or whole_key:
            renamed = self._renamed(table, columns, list(types), alias, star=made.find(exp.Star) is not None)
            target.replace(renamed or exp.Subquery(this=self._select(table, columns), alias=alias))
        else:
            both = exp.Union(this=self._select(table, columns), expression=self._select(nulls, columns), distinct=False)
            target.replace(exp.Subquery(this=both, alias=alias))
        return made

    # --- definitions ------------------------------------------------------------------------------------------------
    def _definition(self, view_id: str) -> exp.Select | None:
        found = self._cursor.execute(
            "SELECT sql FROM duckdb_views() WHERE database_name = $1 AND schema_name = $2 AND view_name = $3",
            [self._database, VIEW_SCHEMA, view_id],
        ).fetchall()  # to the end: an open result blocks the connection
        if not found:
            return None
        created = sqlglot.parse_one(str(found[0][0]), read="duckdb")
        body = created.expression if isinstance(created, exp.Create) else None
        return body if isinstance(body, exp.Select) else None

    def _types(self, table: str) -> Mapping[str, str]:
        """The table's columns in order, and their types."""
        rows = self._cursor.execute(
            "SELECT column_name, data_type FROM duckdb_columns() WHERE database_name = $1 AND schema_name = $2 "
            "AND table_name = $3 ORDER BY column_index",
            [self._database, STATE_SCHEMA, table],
        ).fetchall()
        return {str(name): str(kind) for name, kind in rows}

    # --- what takes the view's place --------------------------------------------------------------------------------
    def _renamed(
        self, table: str, columns: Columns, order: list[str], alias: exp.TableAlias, *, star: bool
    ) -> exp.Table | None:
        """The table itself with the user's names for its columns: the least for DuckDB to bind."""
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
        return self._table(table, renaming)

    def _select(self, table: str, columns: Columns) -> exp.Select:
        items = [exp.alias_(node.copy(), name, quoted=True) for name, node in columns.items()]
        return exp.select(*items, copy=False).from_(self._table(table, None), copy=False)

    def _table(self, name: str, alias: exp.TableAlias | None) -> exp.Table:
        return exp.Table(
            this=exp.to_identifier(name, quoted=True),
            db=exp.to_identifier(STATE_SCHEMA, quoted=True),
            catalog=exp.to_identifier(self._database, quoted=True),
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


def _state_of(definition: exp.Select) -> tuple[Columns, str, str | None] | None:
    """The view's columns over its state table, and the name of the table for keys with a NULL, if it has one."""
    columns = _columns(definition)
    source = definition.args["from_"].this if definition.args.get("from_") else None
    while columns is not None and isinstance(source, exp.Subquery) and isinstance(source.this, exp.Select):
        inner = _columns(source.this)
        if inner is None or not source.this.args.get("from_"):
            return None
        columns = _substituted(columns, inner)
        source = source.this.args["from_"].this
    if columns is None:
        return None
    if isinstance(source, exp.Table):
        return (columns, source.name, None) if source.db == STATE_SCHEMA else None
    if (
        not isinstance(source, exp.Subquery)
        or not isinstance(source.this, exp.Union)
        or source.this.args.get("distinct")
    ):
        return None
    main, nulls = (_plain_source(side) for side in (source.this.left, source.this.right))
    if main is None or nulls is None or nulls[0] != main[0] + _NULLS or nulls[1] != main[1]:
        return None
    return columns, main[0], nulls[0]


def _columns(select: exp.Select) -> Columns | None:
    """Its outputs by name, where it is nothing but a choice of columns."""
    if any(value for key, value in select.args.items() if key not in ("expressions", "from_", "kind")):
        return None
    found: Columns = {}
    for item in select.expressions:
        node = item.unalias()
        if not item.alias_or_name or any(not isinstance(part, _KNOWN) for part in node.walk()):
            return None
        found[item.alias_or_name] = node
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


def _plain_source(side: exp.Expr) -> tuple[str, tuple[str, ...]] | None:
    """Table and columns of ``SELECT k0, k1, n ... FROM _state.x``, in brackets or not."""
    select = next(_unwrapped(side), None)
    if select is None or _columns(select) is None or not select.args.get("from_"):
        return None
    table = select.args["from_"].this
    if not isinstance(table, exp.Table) or table.db != STATE_SCHEMA:
        return None
    if any(not isinstance(item, exp.Column) for item in select.expressions):
        return None
    return table.name, tuple(item.name for item in select.expressions)


def _unwrapped(node: exp.Expr) -> Iterator[exp.Select]:
    while isinstance(node, exp.Subquery | exp.Paren):
        node = node.this
    if isinstance(node, exp.Select):
        yield node


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
