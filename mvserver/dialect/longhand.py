"""Shorthands of PostgreSQL's in its own longer words, before names are resolved and types of parameters are inferred.

So everything behind meets only what it knows.
"""

from __future__ import annotations

from sqlglot import exp

from mvserver import interrupts, sqlstates
from mvserver.dialect.functions import hypothetical, row_functions
from mvserver.dialect.guard import function_name
from mvserver.errors import SqlError


def write_out(tree: exp.Expr) -> exp.Expr:
    """The tree, or another in its place."""
    root = exp.Paren(this=tree)
    _whole_rows(root)
    hypothetical.rewrite(root)
    _rows_of_functions(root)
    return root.this.pop()  # type: ignore[no-any-return]


def _whole_rows(root: exp.Expr) -> None:
    """``row_to_json(t.*)`` is ``row_to_json(t)``; in a list it would be all columns. The row of a table that an outer
    join has found none in is NULL, and no row of NULLs."""
    for column in interrupts.asking(list(root.find_all(exp.Column))):
        around = column.parent
        starred = isinstance(column.this, exp.Star)
        if isinstance(around, exp.Tuple) or (isinstance(around, exp.Anonymous) and around.name.lower() == "row"):
            if starred and column.args.get("table") is not None:
                _row_of_all(around, column)
            continue
        if not isinstance(around, exp.Func | exp.Is):
            continue
        if not starred and (column.args.get("table") is not None or isinstance(around, exp.Is)):
            continue
        row = exp.Column(this=(column.args["table"] if starred else column.this).copy())
        if isinstance(around, exp.Func) and _may_be_missing(row, column):
            document = exp.Anonymous(this="to_json", expressions=[row.copy()])
            empty = exp.Anonymous(this="_row_empty", expressions=[document])
            column.replace(exp.Case(ifs=[exp.If(this=empty, true=exp.null())], default=row))
        elif starred and not isinstance(around, exp.Count):
            column.replace(row)


def _row_of_all(row: exp.Expr, column: exp.Column) -> None:
    """``row(t.*)`` has the columns of ``t`` for its fields, as ``t`` has; but where an outer join has found no ``t`` it
    is a row of NULLs."""
    whole = exp.Column(this=column.args["table"].copy())
    if len(row.expressions) > 1 or _may_be_missing(whole, row):
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"{column.table}.* in a row, beside other fields or of an outer join, is not supported",
            hint="Write its columns one by one.",
        )
    row.replace(whole)
    item: exp.Expr = whole
    while isinstance(item.parent, exp.Cast | exp.Paren):
        item = item.parent
    if isinstance(item.parent, exp.Select) and item.arg_key == "expressions":
        item.replace(exp.alias_(item.copy(), "row", quoted=True))  # which has the call's name


def _may_be_missing(row: exp.Column, place: exp.Expr) -> bool:
    """Whether it is a row of a table on the side of an outer join that may have none."""
    select = place.find_ancestor(exp.Select)
    joins = (select.args.get("joins") or []) if select is not None else []
    if select is None or not any(join.side for join in joins):
        return False
    sources = [select.args["from_"].this, *(join.this for join in joins)]
    for at, source in enumerate(sources):
        if source.alias_or_name != row.name or (isinstance(source, exp.Table) and isinstance(source.this, exp.Func)):
            continue
        own = joins[at - 1].side if at else ""
        return own in ("LEFT", "FULL") or any(join.side in ("RIGHT", "FULL") for join in joins[at:])
    return False


def _rows_of_functions(root: exp.Expr) -> None:
    tables: list[exp.Table | exp.Unnest] = [*root.find_all(exp.Table), *root.find_all(exp.Unnest)]
    for table in interrupts.asking(tables):
        if isinstance(table, exp.Table) and not isinstance(table.this, exp.Func):
            continue
        name = function_name(table.this) if isinstance(table, exp.Table) else "unnest"
        made = row_functions.as_query(table, name)
        if made is None:
            continue
        for key in ("joins", "laterals", "sample"):
            if table.args.get(key):
                made.set(key, table.args[key])
        table.replace(made)
