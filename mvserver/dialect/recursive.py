"""WITH RECURSIVE: the first part of a recursive query gives its columns their types; the others are plain queries."""

from __future__ import annotations

from sqlglot import exp

from mvserver import sqlstates
from mvserver.errors import SqlError


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


_ENDS = {"order": "ORDER BY", "limit": "LIMIT", "offset": "OFFSET"}


def settle(tree: exp.Expr) -> None:
    """In place: a UNION that does not read itself may be sorted and cut, which DuckDB refuses below RECURSIVE.

    One that does is 0A000, as in PostgreSQL."""
    for clause in [each for each in tree.find_all(exp.With) if each.args.get("recursive")]:
        for cte in clause.expressions:
            union = cte.this
            ends = [word for key, word in _ENDS.items() if union.args.get(key) is not None]
            if not ends or not isinstance(union, exp.SetOperation):
                continue
            if is_recursive(cte):
                raise SqlError(
                    sqlstates.FEATURE_NOT_SUPPORTED,
                    f"{ends[0]} in a recursive query is not implemented",
                    hint="Put it into the query that reads the recursive one.",
                )
            whole = exp.Select(expressions=[exp.Star()])
            cte.set("this", whole)
            whole.set("from_", exp.From(this=exp.Subquery(this=union, alias=exp.to_identifier("_whole", quoted=True))))
