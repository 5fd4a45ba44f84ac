"""Only what PostgreSQL has, and what is known to mean the same here, gets past this door of a pull query.

A call is looked up by the name that the user has written (``function_table``), all other parts of the tree by their
class: what sqlglot reads of other dialects, and DuckDB would evaluate, is refused.
"""

from __future__ import annotations

from sqlglot import exp

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.pgcatalog.static_data import INFORMATION_SCHEMA, PG_CATALOG
from mvserver.serving.function_table import Called, is_postgresqls, table
from mvserver.sql.pull_parser import BARE, CALLED

_GRAMMAR = frozenset({
    # queries
    exp.Select, exp.Subquery, exp.Union, exp.Except, exp.Intersect, exp.Values, exp.Tuple, exp.With, exp.CTE, exp.From,
    exp.Table, exp.TableAlias, exp.Join, exp.Lateral, exp.Unnest, exp.Where, exp.Group, exp.GroupingSets, exp.Cube,
    exp.Rollup, exp.Having, exp.Order, exp.Ordered, exp.Limit, exp.LimitOptions, exp.Offset, exp.Fetch, exp.Distinct,
    exp.Lock, exp.Into, exp.Alias, exp.Aliases, exp.Star,
    # names and values
    exp.Identifier, exp.Column, exp.Dot, exp.Literal, exp.Boolean, exp.Null, exp.Parameter, exp.Placeholder, exp.Var,
    exp.BitString, exp.HexString, exp.Interval, exp.IntervalSpan, exp.Array, exp.Paren, exp.National, exp.RawString,
    exp.UnicodeString, exp.ByteString,
    # types
    exp.Cast, exp.DataType, exp.DataTypeParam, exp.ObjectIdentifier, exp.PseudoType,
    # operators
    exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Is, exp.NullSafeEQ,
    exp.NullSafeNEQ, exp.In, exp.Between, exp.Like, exp.ILike, exp.SimilarTo, exp.Escape, exp.RegexpLike,
    exp.RegexpILike, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Pow, exp.Neg, exp.DPipe, exp.BitwiseAnd,
    exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot, exp.BitwiseLeftShift, exp.BitwiseRightShift, exp.Bracket, exp.Slice,
    exp.Operator, exp.AtTimeZone, exp.Collate, exp.Overlaps, exp.Any, exp.All, exp.Exists, exp.Case, exp.If,
    exp.ArrayContainsAll, exp.ArrayContainedBy, exp.ArrayOverlaps, exp.StartsWith, exp.Sqrt, exp.Cbrt,
    exp.JSONExtract, exp.JSONExtractScalar, exp.JSONBExtract, exp.JSONBExtractScalar, exp.JSONPath, exp.JSONPathRoot,
    exp.JSONPathKey, exp.JSONPathSubscript, exp.JSONBContains, exp.JSONBContainsTopKey, exp.JSONBContainsAnyTopKeys,
    exp.JSONBContainsAllTopKeys, exp.JSONBDeleteAtPath, exp.Lambda,
    # about calls
    exp.Filter, exp.WithinGroup, exp.Window, exp.WindowSpec,
})  # fmt: skip
"""What is written otherwise than as the call of a function. A Lambda is an arrow in an argument: see ``jsonb.arrows``."""

_WORDS = frozenset({"all", "any", "some", "array", "case", "cast", "coalesce", "exists", "nullif", "row", "variadic"})
"""What looks like a call and is grammar."""

_SCHEMA_OF = {"_pg_expandarray": INFORMATION_SCHEMA}
_NO_MATCH = "No function matches the given name and argument types. You might need to add explicit type casts."
_UNREACHABLE = "Queries read views and catalog relations only; files, other databases and the engine are out of reach."


def check_node(node: exp.Expr) -> None:
    """Raises SqlError where the node is none of PostgreSQL's, or of none that is supported."""
    called = node.meta.get(CALLED)
    if called is not None:
        _check_call(node, *called)
    elif type(node) not in _GRAMMAR:
        raise _unsupported(type(node).__name__.upper().replace("_", " "), node)
    _check_form(node)


# --- calls ----------------------------------------------------------------------------------------------------------
def _check_call(node: exp.Expr, name: str, arguments: int | None, start: int) -> None:
    if isinstance(node.parent, exp.Dot) and node.parent.expression is node:
        _check_schema(node.parent, name, start)
    elif name in _SCHEMA_OF:
        raise _undefined(name, start)
    if name in _WORDS:
        return
    known = table().get(name)
    if known is None:
        raise _unknown(name, start)
    if arguments is not None and not known.least <= arguments <= known.most:
        raise _undefined(name, start)
    _check_place(node, known, start)


def _check_schema(dot: exp.Dot, name: str, start: int) -> None:
    """Before a function's name stands its schema, and nothing else: ``x.f()`` is no call of f with x."""
    wanted = _SCHEMA_OF.get(name, PG_CATALOG)
    schema = dot.this
    if not isinstance(schema, exp.Identifier) or isinstance(dot.parent, exp.Dot):
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"{name} cannot be called after a dot",
            hint=f"Write the call as {name}(...), or with its schema alone before it.",
            position=start + 1,
        )
    written = str(schema.this) if schema.quoted else str(schema.this).lower()
    if written != wanted:
        at = int(schema.meta.get("start", start)) + 1
        raise SqlError(
            sqlstates.UNDEFINED_FUNCTION, f"function {written}.{name} does not exist", hint=_NO_MATCH, position=at
        )


def _check_place(node: exp.Expr, known: Called, start: int) -> None:
    around = node.parent
    ordered = isinstance(around, exp.WithinGroup) and around.this is node
    if ordered and known.kind != "ordered":
        raise SqlError(
            sqlstates.WRONG_OBJECT_TYPE,
            f"{known.name} is not an ordered-set aggregate, so it cannot have WITHIN GROUP",
            position=start + 1,
        )
    if known.kind == "ordered" and not ordered:
        raise SqlError(
            sqlstates.WRONG_OBJECT_TYPE,
            f"WITHIN GROUP is required for ordered-set aggregate {known.name}",
            position=start + 1,
        )
    filtered = around if isinstance(around, exp.Filter) else node
    if known.kind == "window" and not isinstance(filtered.parent, exp.Window):
        raise SqlError(
            sqlstates.WRONG_OBJECT_TYPE, f"window function {known.name} requires an OVER clause", position=start + 1
        )


def _unknown(name: str, start: int) -> SqlError:
    if is_postgresqls(name):
        hint = "docs/sql/pull-functions.md lists the functions of pull queries."
        if name in ("nextval", "currval", "setval", "lastval"):
            hint = "There are no sequences; row_number() OVER (ORDER BY ...) counts the rows of a query."
        return SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED, f"function {name} is not supported", hint=hint, position=start + 1
        )
    return _undefined(name, start)


def _undefined(name: str, start: int) -> SqlError:
    hint = _UNREACHABLE if name.startswith(("read_", "duckdb_", "pragma_")) else _NO_MATCH
    return SqlError(sqlstates.UNDEFINED_FUNCTION, f"function {name} does not exist", hint=hint)


# --- forms that other dialects have -----------------------------------------------------------------------------------
def _check_form(node: exp.Expr) -> None:
    if isinstance(node, exp.Star):
        _check_star(node)
    elif isinstance(node, exp.Array) and node.meta.get(BARE) and not isinstance(node.parent, exp.Array):
        raise _no_syntax("[", node)
    elif isinstance(node, exp.Group) and node.args.get("all") and not node.expressions:
        raise _no_syntax("all", node)
    elif isinstance(node, exp.LimitOptions) and node.args.get("percent"):
        raise _unsupported("a percentage of the rows", node)
    elif isinstance(node, exp.SetOperation) and any(node.args.get(key) for key in ("by_name", "side", "kind", "on")):
        raise _no_syntax("by", node)
    elif isinstance(node, exp.Join) and (
        (node.args.get("method") or "").upper() not in ("", "NATURAL")
        or (node.args.get("kind") or "").upper() in ("SEMI", "ANTI", "STRAIGHT")
    ):
        raise _unsupported("this kind of join", node)
    elif isinstance(node, exp.Slice) and node.args.get("step") is not None:
        raise _no_syntax(":", node)


def _check_star(star: exp.Star) -> None:
    if any(star.args.values()):
        raise _unsupported("a list of columns with EXCLUDE, EXCEPT, REPLACE or RENAME", star)
    above, whole = star.parent, star.parent
    if isinstance(above, exp.Column):
        whole = above.parent
    listed = isinstance(whole, exp.Select) and (above is not whole or star.arg_key == "expressions")
    row = above is not whole and isinstance(whole, exp.Anonymous | exp.Tuple | exp.Count)
    if not (listed or row or isinstance(above, exp.Count)):
        raise _no_syntax("*", star)


def _no_syntax(near: str, node: exp.Expr) -> SqlError:
    return SqlError(sqlstates.SYNTAX_ERROR, f'syntax error at or near "{near}"', position=_position(node))


def _unsupported(what: str, node: exp.Expr) -> SqlError:
    return SqlError(
        sqlstates.FEATURE_NOT_SUPPORTED,
        f"{what} is not supported in a pull query",
        hint="docs/sql/pull.md says what pull queries are made of.",
        position=_position(node),
    )


def _position(node: exp.Expr) -> int | None:
    starts = [part.meta["start"] for part in node.walk() if "start" in part.meta]
    return min(starts) + 1 if starts else None
