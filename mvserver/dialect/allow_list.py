"""The calls, operators and clauses that a pull query may have: those of PostgreSQL that mean the same here.

A call is looked up by the name that the user has written (``sql.pull_functions``), all other parts of the tree by their
class. A type is known by its word: those of other dialects are refused here, unknown ones when casts are adapted.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from mvserver import sqlstates
from mvserver.dialect.functions.hypothetical import HYPOTHETICAL
from mvserver.errors import SqlError
from mvserver.pgcatalog.static_data import INFORMATION_SCHEMA, PG_CATALOG, procedure_names
from mvserver.sql.pull_functions import other_forms, table
from mvserver.sql.pull_parser import BARE, CALLED, GRAMMAR_WORDS, WORD
from mvserver.sql.pull_table.model import MANY, PullFunction

_GRAMMAR = frozenset({
    # queries
    exp.Select, exp.Subquery, exp.Union, exp.Except, exp.Intersect, exp.Values, exp.Tuple, exp.With, exp.CTE, exp.From,
    exp.Table, exp.TableAlias, exp.ColumnDef, exp.Join, exp.Lateral, exp.Unnest, exp.Where, exp.Group, exp.GroupingSets,
    exp.Cube, exp.Rollup, exp.Having, exp.Order, exp.Ordered, exp.Limit, exp.LimitOptions, exp.Offset, exp.Fetch,
    exp.Distinct, exp.Lock, exp.Into, exp.TableSample, exp.Alias, exp.Aliases, exp.Star,
    # names and values
    exp.Identifier, exp.Column, exp.Dot, exp.Literal, exp.Boolean, exp.Null, exp.Parameter, exp.Placeholder, exp.Var,
    exp.BitString, exp.HexString, exp.Interval, exp.IntervalSpan, exp.Array, exp.Paren, exp.National, exp.RawString,
    exp.UnicodeString, exp.ByteString,
    # types
    exp.Cast, exp.DataType, exp.DataTypeParam, exp.ObjectIdentifier, exp.PseudoType,
    # operators
    exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Is, exp.NullSafeEQ,
    exp.NullSafeNEQ, exp.In, exp.Between, exp.Like, exp.ILike, exp.SimilarTo, exp.Escape, exp.RegexpLike,
    exp.RegexpILike, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Pow, exp.Neg, exp.DPipe,
    exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot, exp.BitwiseLeftShift, exp.BitwiseRightShift,
    exp.Bracket, exp.Slice, exp.Operator, exp.AtTimeZone, exp.Collate, exp.Overlaps, exp.Any, exp.All, exp.Exists,
    exp.Case, exp.If, exp.ArrayContainsAll, exp.ArrayContainedBy, exp.ArrayOverlaps, exp.StartsWith, exp.Sqrt, exp.Cbrt,
    exp.JSONExtract, exp.JSONExtractScalar, exp.JSONBExtract, exp.JSONBExtractScalar, exp.JSONPath, exp.JSONPathRoot,
    exp.JSONPathKey, exp.JSONPathSubscript, exp.JSONBContains, exp.JSONBContainsTopKey, exp.JSONBContainsAnyTopKeys,
    exp.JSONBContainsAllTopKeys, exp.JSONBDeleteAtPath, exp.Lambda,
    # about calls
    exp.Filter, exp.WithinGroup, exp.Window, exp.WindowSpec,
})  # fmt: skip
"""What is written otherwise than as a call. A Lambda is an arrow in an argument: see ``jsonb.arrows``."""

_SPELLED: Mapping[type[exp.Expr], str] = {exp.JSONBPathExists: "operator @?", exp.MatchAgainst: "operator @@"}
"""Operators that are refused, by what the parser calls them."""

DEFAULT_COLLATIONS = frozenset({"default", "c", "posix", "ucs_basic"})
_WORDS = GRAMMAR_WORDS - table().keys()
_WORDS_AS_CALLS = frozenset({"all", "any", "some", "row"})
"""Those that the parser takes for calls of functions."""

_SCHEMA_OF = {"_pg_expandarray": INFORMATION_SCHEMA}
_NO_MATCH = "No function matches the given name and argument types. You might need to add explicit type casts."
_OTHERS = frozenset({
    "array_sample", "array_shuffle", "bit_count", "convert", "cosd", "cotd", "acosd", "asind", "atand", "sind",
    "tand", "erf", "get_bit", "set_bit", "set_byte", "sha224", "sha384", "sha512", "hashtext", "jsonb_insert",
    "jsonb_path_exists", "jsonb_path_match", "jsonb_path_query", "jsonb_path_query_array", "jsonb_path_query_first",
    "jsonb_path_exists_tz", "jsonb_path_match_tz", "jsonb_path_query_tz", "jsonb_path_query_array_tz",
    "jsonb_path_query_first_tz",
    "jsonb_object", "json_object", "json_populate_record", "is_normalized", "setseed", "to_tsquery", "to_tsvector",
    "ts_rank", "unistr", "xmlagg", "xmlelement", "xpath", "nextval", "currval", "setval", "lastval", "range_agg",
    "lower_inc", "upper_inc", "isempty", "host", "masklen", "network", "query_to_xml", "pg_column_size",
    "pg_notify", "pg_reload_conf", "pg_rotate_logfile", "pg_read_file", "pg_read_binary_file", "pg_ls_dir",
    "pg_stat_file", "pg_advisory_lock", "pg_advisory_xact_lock", "pg_try_advisory_lock", "pg_advisory_unlock",
    "pg_export_snapshot", "lo_import", "lo_export", "lo_get", "lo_put", "dblink", "random_normal", "text", "int2",
    "int4", "int8", "float4", "float8", "numeric", "bool", "varchar", "bpchar", "name", "oid", "time", "timestamp",
    "timestamptz", "interval",
})  # fmt: skip
"""PostgreSQL's functions that are refused as not supported (0A000), beside those of its recorded catalog."""

_BY_NAME = frozenset({"make_interval"})
"""Functions whose arguments may be named, as in ``f(name => x)``."""

UNDEFINED = "_undefined_"
"""Before the name of a call that is not to be found: DuckDB then says so, once the types of its arguments are known.
The name follows as the hexadecimal digits of its UTF-8 form: users may quote any text as a name."""


def check_node(node: exp.Expr) -> bool:
    """Raises SqlError where the node is none of PostgreSQL's, or of none that is supported. False for the call of a
    function that does not exist."""
    called = node.meta.get(CALLED)
    exists = True
    if called is not None:
        exists = _check_call(node, *called)
    elif type(node) not in _GRAMMAR and not _is_named_argument(node):
        raise _unsupported(_SPELLED.get(type(node), type(node).__name__.upper()), node)
    _check_form(node)
    return exists


def _is_named_argument(node: exp.Expr) -> bool:
    call = node.parent
    return isinstance(node, exp.Kwarg) and isinstance(call, exp.Anonymous) and call.name.lower() in _BY_NAME


def make_undefined(node: exp.Expr) -> None:
    """In place of the call: one whose name nothing has."""
    call = exp.Anonymous(
        this=UNDEFINED + str(node.meta[CALLED][0]).encode(errors="surrogatepass").hex(), expressions=arguments_of(node)
    )
    call.meta.update(node.meta)
    node.replace(call)


def undefined_name(called: str) -> str:
    """The user's name of a function that :func:`make_undefined` has hidden; every other name as it is."""
    if not called.lower().startswith(UNDEFINED):
        return called
    return bytes.fromhex(called[len(UNDEFINED) :]).decode(errors="surrogatepass")


def arguments_of(call: exp.Expr) -> list[exp.Expr]:
    return list(call.expressions) if isinstance(call, exp.Anonymous) else list(call.iter_expressions())


# --- calls ----------------------------------------------------------------------------------------------------------
def _check_call(node: exp.Expr, name: str, arguments: int | None, start: int) -> bool:
    if isinstance(node.parent, exp.Dot) and node.parent.expression is node:
        _check_schema(node.parent, name, start)
        if name in GRAMMAR_WORDS and not isinstance(node, exp.Anonymous):
            raise _no_syntax("(", node)
    elif name in _SCHEMA_OF and not (isinstance(node.parent, exp.Table) and node.parent.args.get("db")):
        return False
    if isinstance(node, exp.Variadic):
        raise _unsupported("VARIADIC", node)
    if name in GRAMMAR_WORDS and isinstance(node, exp.Anonymous) and not _is_word(node, name):
        return False
    if name in _WORDS:
        return True
    known = table().get(name)
    if known is None:
        if name in _OTHERS or name in procedure_names():
            raise _not_supported(name, start)
        return False
    if name in HYPOTHETICAL and isinstance(node.parent, exp.WithinGroup) and node.parent.this is node:
        return True
    if arguments is not None and not known.accepts(arguments):
        other = other_forms().get(name)
        if other is not None and other.accepts(arguments):
            raise _form_not_supported(known, arguments, start)
        return False
    _check_place(node, known, start)
    return True


def _is_word(call: exp.Anonymous, name: str) -> bool:
    """Whether the call is grammar, and no function of that name, which there is none of."""
    quoted = isinstance(call.this, exp.Identifier)
    return name in _WORDS_AS_CALLS and not quoted and not isinstance(call.parent, exp.Dot)


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


def _check_place(node: exp.Expr, known: PullFunction, start: int) -> None:
    around = node.parent
    ordered = isinstance(around, exp.WithinGroup) and around.this is node
    if ordered and known.kind != "ordered":
        message = f"{known.name} is not an ordered-set aggregate, so it cannot have WITHIN GROUP"
        if known.kind != "aggregate":
            message = f"WITHIN GROUP specified, but {known.name} is not an aggregate function"
        raise SqlError(sqlstates.WRONG_OBJECT_TYPE, message, position=start + 1)
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


def _not_supported(name: str, start: int) -> SqlError:
    hint = "docs/sql/pull-functions.md lists the functions of pull queries."
    if name in ("nextval", "currval", "setval", "lastval"):
        hint = "There are no sequences; row_number() OVER (ORDER BY ...) counts the rows of a query."
    return SqlError(sqlstates.FEATURE_NOT_SUPPORTED, f"function {name} is not supported", hint=hint, position=start + 1)


def _form_not_supported(known: PullFunction, arguments: int, start: int) -> SqlError:
    most = "or more" if known.most == MANY else f"to {known.most}"
    takes = str(known.least) if known.least == known.most else f"{known.least} {most}"
    return SqlError(
        sqlstates.FEATURE_NOT_SUPPORTED,
        f"function {known.name} with {arguments} arguments is not supported",
        hint=f"In pull queries it takes {takes}.",
        position=start + 1,
    )


# --- forms that other dialects have -----------------------------------------------------------------------------------
_TYPES = frozenset({
    "bigint", "binary", "bit", "bool", "boolean", "box", "bpchar", "bytea", "bytes", "char", "character", "cidr",
    "circle", "date", "datemultirange", "daterange", "dec", "decimal", "double", "float", "float4", "float8", "inet",
    "int", "int2", "int4", "int4multirange", "int4range", "int8", "int8multirange", "int8range", "integer", "interval",
    "json", "jsonb", "line", "lseg", "money", "name", "national", "nchar", "numeric", "nummultirange", "numrange",
    "oid", "path", "point", "polygon", "real", "smallint", "string", "text", "time", "timestamp", "timestamp_ltz",
    "timestamptz", "timetz", "tinyint", "tsmultirange", "tsquery", "tsrange", "tstzmultirange", "tstzrange", "tsvector",
    "uuid", "varbinary", "varbit", "varchar", "varying", "xml",
})  # fmt: skip
"""First words of PostgreSQL's types, and of this server's own (docs/sql/types.md), that sqlglot reads as a type. Names
that it does not know are looked up when casts are adapted, where some of these are refused."""


_NO_ARGUMENTS: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.StrPosition: ("position", "occurrence"), exp.Substring: ("zero_start",), exp.GroupConcat: ("on_overflow",),
}  # fmt: skip
"""Of calls with a grammar of their own, whose arguments are not counted."""


def _is_no_type(node: exp.DataType) -> bool:
    words = str(node.meta.get(WORD, "text")).split()  # ``double precision`` is one token
    while node.this == exp.DType.ARRAY and node.expressions and isinstance(node.expressions[0], exp.DataType):
        node = node.expressions[0]
    return node.this != exp.DType.USERDEFINED and not (words and words[0] in _TYPES)


def _check_form(node: exp.Expr) -> None:
    if isinstance(node, exp.Star):
        _check_star(node)
    elif isinstance(node, exp.DataType) and _is_no_type(node):
        raise SqlError(sqlstates.UNDEFINED_OBJECT, f'type "{node.meta[WORD]}" does not exist', position=_position(node))
    elif isinstance(node, exp.Table):
        _check_source(node)
    elif any(node.args.get(key) is not None for key in _NO_ARGUMENTS.get(type(node), ())):
        raise _no_syntax(",", node)
    elif isinstance(node, exp.TableSample):
        _check_sample(node)
    elif isinstance(node, exp.Collate):
        _check_collation(node)
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


def _check_sample(sample: exp.TableSample) -> None:
    method = sample.args.get("method")
    name = method.name.lower() if isinstance(method, exp.Expr) else str(method or "").lower()
    if name not in ("bernoulli", "system"):
        raise SqlError(sqlstates.UNDEFINED_OBJECT, f"tablesample method {name} does not exist")


def _check_source(table: exp.Table) -> None:
    """A function in FROM has its schema beside it."""
    if not isinstance(table.this, exp.Func) or table.args.get("db") is None:
        return
    name = table.this.meta[CALLED][0] if CALLED in table.this.meta else table.this.key
    written = [str(part.this) if part.quoted else str(part.this).lower() for part in _schema_parts(table)]
    if written != [_SCHEMA_OF.get(name, PG_CATALOG)]:
        shown = ".".join([*written, name])
        raise SqlError(sqlstates.UNDEFINED_FUNCTION, f"function {shown} does not exist", hint=_NO_MATCH)


def _schema_parts(table: exp.Table) -> list[exp.Identifier]:
    parts = (table.args.get("catalog"), table.args.get("db"))
    return [part for part in parts if isinstance(part, exp.Identifier)]


def _check_collation(node: exp.Collate) -> None:
    name = node.expression.name if isinstance(node.expression, exp.Expr) else str(node.expression)
    if name.lower() not in DEFAULT_COLLATIONS:
        raise SqlError(
            sqlstates.UNDEFINED_OBJECT, f'collation "{name}" for encoding "UTF8" does not exist',
        )  # fmt: skip


def _check_star(star: exp.Star) -> None:
    if any(star.args.values()):
        raise _unsupported("a list of columns with EXCLUDE, EXCEPT, REPLACE or RENAME", star)
    above, whole = star.parent, star.parent
    if isinstance(above, exp.Column):
        whole = above.parent
    if isinstance(above, exp.Dot):  # (row).*
        whole = above.parent
    listed = isinstance(whole, exp.Select) and (above is not whole or star.arg_key == "expressions")
    row = above is not whole and isinstance(whole, exp.Func | exp.Tuple | exp.Is)
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
