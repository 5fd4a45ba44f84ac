"""Refuses what a pull query may not contain: what writes, reaches files or the network, or is the engine's own.

What is neither PostgreSQL's nor known to mean the same here does not pass (``allow_list``). DuckDB refuses external
access as well (``Database`` switches it off); this is the first of the two doors, whose messages users read.
"""

from __future__ import annotations

from collections.abc import Container

from sqlglot import exp

from mvserver import interrupts, limits, sqlstates
from mvserver.dialect.allow_list import check_node, make_undefined
from mvserver.dialect.clauses import check_count, check_distinct
from mvserver.errors import SqlError
from mvserver.sql.pull_functions import table
from mvserver.sql.pull_parser import CALLED

TABLE_FUNCTIONS = frozenset({
    "unnest", "generate_series", "generate_subscripts", "json_each", "json_each_text", "jsonb_each",
    "jsonb_each_text", "pg_get_keywords", "pg_options_to_table", "aclexplode", "pg_timezone_names",
    "ts_token_type", "pg_partition_tree", "pg_partition_ancestors", "pg_listening_channels",
    "_pg_expandarray",
})  # fmt: skip
"""Functions that yield rows in FROM. Any scalar function is allowed there too, as in PostgreSQL: it yields one row."""


def function_name(node: exp.Func) -> str:
    """The name as written where sqlglot kept it, else sqlglot's own; lower case."""
    if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc):
        return node.name.lower()
    return str(node.meta.get("name") or node.sql_name()).lower()


def check(tree: exp.Expr) -> None:
    """Raises SqlError for the first thing that a pull query may not contain. Calls of functions that do not exist are
    given a name, in place, by which the binding finds that out: it knows the types of their arguments."""
    if not isinstance(tree, exp.Query | exp.Values):
        raise SqlError(sqlstates.FEATURE_NOT_SUPPORTED, "only SELECT and VALUES are pull queries")
    undefined: list[exp.Expr] = []
    for node in interrupts.asking(tree.walk()):
        if isinstance(node, exp.Select) and len(node.expressions) > limits.SELECT_LIST_MAX:
            raise SqlError(
                sqlstates.TOO_MANY_COLUMNS, f"target lists can have at most {limits.SELECT_LIST_MAX} entries"
            )
        if isinstance(node, exp.Select):
            check_distinct(node)
        if isinstance(node, exp.Limit | exp.Offset | exp.Fetch):
            check_count(node)
        if isinstance(node, exp.Into):
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                "SELECT INTO is not supported",
                hint="Use CREATE MATERIALIZED VIEW ... AS SELECT.",
            )
        if isinstance(node, exp.Lock):
            raise SqlError(
                sqlstates.WRONG_OBJECT_TYPE,
                "cannot lock rows in a materialized view",
                hint="Rows of views cannot be written; leave out FOR UPDATE or FOR SHARE.",
            )
        if isinstance(node, exp.Insert | exp.Update | exp.Delete | exp.Merge | exp.Create | exp.Drop | exp.Command):
            raise SqlError(
                sqlstates.READ_ONLY_SQL_TRANSACTION, f"cannot execute {node.key.upper()} inside a pull query"
            )
        if not check_node(node):
            undefined.append(node)
    for node in interrupts.asking(undefined):
        make_undefined(node)


def own_call(tree: exp.Expr, names: Container[str]) -> SqlError | None:
    """The refusal of a function that a user has made for continuous queries: a reader would have to wait for Python
    with each row. ``names`` are those of all such functions; one that PostgreSQL's has too is that, as far as there is
    one here."""
    for node in interrupts.asking(tree.walk()):
        name = str(node.meta[CALLED][0]) if CALLED in node.meta else ""
        if name in names and name not in table():
            return SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f"function {name} cannot be called in a pull query",
                hint="Call it in the SELECT of a materialized view, and read the view's column.",
                position=int(node.meta[CALLED][2]) + 1,
            )
    return None
