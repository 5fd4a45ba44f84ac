"""Row policies in pull queries: a view through row security becomes a sub-query of the rows that may be seen.

The sub-query ends with a LIMIT that no view reaches, across which DuckDB moves no condition. So what a query computes
meets no hidden row, and neither do its errors. Comparisons of key columns with constants, which cannot fail, are put
inside as well: they find a row without reading the others.
"""

from __future__ import annotations

from sqlglot import exp

from catalog.model import Relation
from catalog.row_security import InForce
from mvserver import interrupts, sqlstates
from mvserver.claims import is_claim
from mvserver.compiler.lower_duckdb import duckdb_type
from mvserver.dialect import guard
from mvserver.dialect.typing import duck_types
from mvserver.errors import SqlError
from mvserver.serving.fast import classify
from mvserver.sql.dialect import parse_pull
from mvserver.sql.pull_functions import GROUPS
from mvserver.sql.pull_parser import CALLED
from mvserver.sql.types import parse_type
from mvserver.types.oids import type_name

_BARRIER = 2**63 - 1  # rows
_OF_THE_ROLE = frozenset({"current_user", "session_user", "current_role", "user"})
_OF_VALUES = frozenset(
    function.name
    for group in ("Numbers", "Text and bytes", "Dates and times", "Arrays and enums", "JSON")
    for function in GROUPS[group]
)
_HINT = "Use the view's columns, constants, functions of these, current_user and current_setting('mv.claim.name')."


# --- the condition ----------------------------------------------------------------------------------------------------
def condition(view: Relation, policies: InForce) -> exp.Expr:
    """Which rows may be seen, as PostgreSQL's text says it: columns are named without their relation."""
    seen: exp.Expr = exp.false()
    for number, text in enumerate(policies.permissive):
        seen = _parsed(view, text) if number == 0 else exp.Or(this=seen, expression=_parsed(view, text))
    seen = exp.Paren(this=seen)
    for text in policies.restrictive:
        seen = exp.And(this=seen, expression=_parsed(view, text))
    return seen


def _parsed(view: Relation, text: str) -> exp.Expr:
    tree = parse_pull(f"SELECT ({text}\n)")  # a comment may end the text
    guard.check(tree)
    found: exp.Expr = tree.expressions[0].pop()
    for column in found.find_all(exp.Column):
        if column.table:
            column.replace(exp.column(column.this.copy()))
    for node in found.walk():
        for place in ("start", "end", "line", "col"):  # in another text than the query's
            node.meta.pop(place, None)
    return found


def check(view: Relation, text: str) -> exp.Expr:
    """The condition of a new policy, with NULLs for claims. What would not mean the same for each reader of a row, at
    any time, is refused: policies also decide which changes are seen by those who watch."""
    try:
        tree = parse_pull(f"SELECT ({text}\n)")
    except SqlError as error:
        error.position = None  # of another text
        raise
    items = tree.expressions
    if not isinstance(tree, exp.Select) or len(items) != 1 or any(tree.args.get(key) for key in ("from_", "where")):
        raise SqlError(sqlstates.SYNTAX_ERROR, "the condition of a policy must be one expression")
    guard.check(tree)
    names = {column.name for column in view.columns}
    for node in interrupts.asking(list(items[0].walk())):
        kind = next((kind for kind in _KINDS if isinstance(node, kind)), None)
        if kind is not None:
            raise refused(_KINDS[kind])
        if isinstance(node, exp.Column):
            _check_column(node, names, view)
        called = node.meta.get(CALLED)
        if called is not None:
            _check_call(str(called[0]), node)
    found = condition(view, InForce((text,), ()))
    for call in list(found.find_all(exp.Func)):
        if guard.function_name(call) == "current_setting":
            call.replace(exp.cast(exp.null(), "TEXT"))
    return found


_KINDS: dict[type[exp.Expr], str] = {
    exp.Exists: "sub-queries",
    exp.Query: "sub-queries",
    exp.Subquery: "sub-queries",
    exp.Parameter: "parameters",
    exp.Placeholder: "parameters",
    exp.AggFunc: "aggregate functions",
    exp.Window: "window functions",
}


def refused(what: str) -> SqlError:
    return SqlError(
        sqlstates.FEATURE_NOT_SUPPORTED, f"{what} in the condition of a policy are not supported", hint=_HINT
    )


def _check_column(column: exp.Column, names: set[str], view: Relation) -> None:
    if column.is_star:
        raise refused("whole rows")
    identifier = column.this
    name = str(identifier.this) if identifier.quoted else str(identifier.this).lower()
    if name not in names or (column.table and column.table.lower() != view.name.lower()):
        shown = f"{column.table}.{name}" if column.table else f'"{name}"'
        raise SqlError(sqlstates.UNDEFINED_COLUMN, f"column {shown} does not exist")


def _check_call(name: str, node: exp.Expr) -> None:
    if name == "current_setting":
        first = node.expressions[0] if node.expressions else None
        if not isinstance(first, exp.Literal) or not is_claim(str(first.this).lower()):
            raise refused("settings other than the claims, mv.claim.name,")
    elif name in guard.TABLE_FUNCTIONS:
        raise refused("set-returning functions")
    elif name not in _OF_VALUES and name not in _OF_THE_ROLE:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"function {name} in the condition of a policy is not supported",
            hint=_HINT,
        )


def refuse_other_types(kind: str) -> None:
    if kind not in ("BOOLEAN", '"NULL"'):
        shown = duck_types.output_type(kind).pg.oid
        raise SqlError(
            sqlstates.DATATYPE_MISMATCH, f"argument of POLICY must be type boolean, not type {type_name(shown)}"
        )


def affected(view: Relation) -> SqlError:
    """With row_security off."""
    return SqlError(
        sqlstates.INSUFFICIENT_PRIVILEGE,
        f'query would be affected by row-level security policy for table "{view.name}"',
    )


# --- the rows ---------------------------------------------------------------------------------------------------------
def seen_rows(rows: exp.Expr, view: Relation, seen: exp.Expr, alias: exp.TableAlias) -> exp.Subquery:
    """The rows of ``rows``, a table or sub-query under whatever alias, that the condition lets through."""
    rows.set("alias", exp.TableAlias(this=exp.to_identifier(view.name, quoted=True)))
    query = exp.Select(expressions=[exp.Star()]).from_(rows).where(seen, copy=False)
    return exp.Subquery(this=query.limit(_BARRIER, copy=False), alias=alias)


def narrow(tree: exp.Expr, view: Relation) -> None:
    """Puts the comparisons of key columns with constants of a simple query inside as well, in place."""
    if not isinstance(tree, exp.Select) or not isinstance(tree.args["from_"].this, exp.Subquery):
        return
    inner = tree.args["from_"].this.this
    where = tree.args.get("where")
    for term in classify.key_terms(where.this, view) if where is not None else ():
        moved = term.copy()
        for column in list(moved.find_all(exp.Column)):
            column.replace(exp.column(column.this.copy()))
        inner.where(moved, copy=False)


# --- rows of a history ------------------------------------------------------------------------------------------------
def asked_of_values(view: Relation, seen: exp.Expr) -> exp.Select:
    """A query that shows the condition, over NULLs of the columns' types: to find what it is in DuckDB's words."""
    nulls = [
        exp.alias_(
            exp.cast(exp.null(), duckdb_type(parse_type(column.type)), dialect="duckdb"), column.name, quoted=True
        )
        for column in view.columns
    ]
    rows = exp.Subquery(
        this=exp.Select(expressions=nulls), alias=exp.TableAlias(this=exp.to_identifier(view.name, quoted=True))
    )
    return exp.Select(expressions=[exp.alias_(seen, "seen", quoted=True)]).from_(rows)
