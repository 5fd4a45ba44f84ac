"""What stands behind a column of a query: its sources, and the expressions of those that are written out."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from mvserver.dialect.guard import function_name


def sources_of(select: exp.Select) -> list[exp.Expr]:
    """What it reads, in the order of FROM."""
    found = [select.args["from_"].this] if select.args.get("from_") is not None else []
    return [*found, *(join.this for join in select.args.get("joins") or [])]


def query_of(source: exp.Expr) -> exp.Expr | None:
    """The query of a source that is one; None for others."""
    if isinstance(source, exp.Lateral):
        source = source.this
    return source.this if isinstance(source, exp.Subquery) else None


def item_of(source: exp.Expr, name: str, select: exp.Select) -> exp.Expr | None:
    """The expression behind a column of a source that is written out."""
    query: exp.Expr | None = query_of(source) or source
    if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier):
        query = _with(source.name, select)
    if isinstance(source, exp.Table) and isinstance(source.this, exp.Func):
        whole = function_name(source.this) == "jsonb_each" and name.lower() == "value"
        return exp.cast(exp.null(), exp.DType.JSONB) if whole else None
    columns = source.args["alias"].columns if isinstance(source.args.get("alias"), exp.TableAlias) else []
    items: Sequence[exp.Expr] = ()
    if isinstance(query, exp.Values):
        rows = query.expressions
        items = rows[0].expressions if rows and isinstance(rows[0], exp.Tuple) else rows
        names = [each.name for each in columns] or [f"column{number}" for number in range(1, len(items) + 1)]
    elif isinstance(query, exp.Query):
        items = query.selects
        names = [each.name for each in columns] or [item.alias_or_name for item in items]
    else:
        return None
    return next((item for item, each in zip(items, names, strict=False) if each.lower() == name.lower()), None)


def _with(name: str, select: exp.Expr | None) -> exp.Expr | None:
    while select is not None:
        clause = select.args.get("with_")
        for cte in clause.expressions if clause is not None else ():
            if cte.alias == name:
                return cte.this  # type: ignore[no-any-return]
        select = select.parent
    return None
