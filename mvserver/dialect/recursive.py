"""WITH RECURSIVE: the first part of such a query gives its columns their types."""

from __future__ import annotations

from sqlglot import exp


def is_recursive(cte: exp.Expr) -> bool:
    """Whether it is a UNION whose second part reads the query itself."""
    around, query = cte.parent, cte.this
    if not (isinstance(around, exp.With) and around.args.get("recursive") and isinstance(query, exp.SetOperation)):
        return False
    return any(table.name == cte.alias and not table.db for table in query.right.find_all(exp.Table))


def keep_first_parts(clause: exp.Expr) -> exp.Expr:
    """In place, for a query that only asks for types: what the second parts compute may have none yet."""
    for cte in clause.expressions:
        if is_recursive(cte):
            cte.set("this", cte.this.left.unnest().copy())
    return clause
