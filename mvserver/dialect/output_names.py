"""Names of result columns by PostgreSQL's rules: ``count``, ``?column?``, ``case``, the column under a cast."""

from __future__ import annotations

from sqlglot import exp

from mvserver import interrupts
from mvserver.dialect.derived_columns import items_of
from mvserver.dialect.guard import function_name
from mvserver.sql.pull_parser import CALLED

UNNAMED = "?column?"

_NAMES: dict[str, str] = {
    "listagg": "string_agg", "group_concat": "string_agg", "array_unique_agg": "array_agg", "time_to_str": "to_char",
    "timestamp_trunc": "date_trunc", "current_version": "version", "regexp_i_like": UNNAMED,
    "time_from_parts": "make_time", "str_position": "position", "substring": "substring", "initcap": "initcap",
    "logical_and": "bool_and", "logical_or": "bool_or", "variance": "var_samp", "variance_pop": "var_pop",
    "stddev": "stddev", "str_to_time": "to_timestamp", "str_to_date": "to_date", "unix_to_time": "to_timestamp",
    "array_size": "array_length", "array_length": "array_length", "length": "length", "pow": "power", "ceil": "ceil",
    "trim": "btrim", "exploding_generate_series": "generate_series", "generate_series": "generate_series",
    "date_part": "date_part", "extract": "extract", "unnest": "unnest", "explode": "unnest", "posexplode": "unnest",
    "array_to_string": "array_to_string", "json_extract": UNNAMED, "json_extract_scalar": UNNAMED,
    "jsonb_extract": UNNAMED, "jsonb_extract_scalar": UNNAMED, "safe_concat": "concat", "split_part": "split_part",
    "current_user": "current_user", "current_date": "current_date", "approx_distinct": "approx_count_distinct",
    "starts_with": "starts_with", "chr": "chr", "unicode": "ascii", "to_number": "to_number", "to_char": "to_char",
    "rand": "random", "min": "min", "max": "max", "any_value": "any_value", "cbrt": "cbrt", "string_to_array":
    "string_to_array", "string_to_array_agg": "string_to_array", "bitwise_and_agg": "bit_and",
    "j_s_o_n_array_agg": "json_agg", "j_s_o_n_object_agg": "json_object_agg",
    "j_s_o_n_b_object_agg": "jsonb_object_agg",
    "bitwise_or_agg": "bit_or", "bitwise_xor_agg": "bit_xor", "array_concat": "array_cat",
}  # fmt: skip

_SPELLINGS: tuple[tuple[type[exp.Expr], tuple[str, ...]], ...] = (
    (exp.Substring, ("substring", "substr")), (exp.Mod, ("mod",)), (exp.Pow, ("power", "pow")),
    (exp.CurrentTimestamp, ("now", "current_timestamp", "transaction_timestamp")),
    (exp.Length, ("length", "char_length", "character_length")), (exp.StrPosition, ("position", "strpos")),
    (exp.Extract, ("extract", "date_part")), (exp.Hex, ("to_hex",)), (exp.Ceil, ("ceil", "ceiling")),
    (exp.TimestampFromParts, ("make_timestamp",)), (exp.SHA2Digest, ("sha256",)),
    (exp.ArrayPosition, ("array_position",)), (exp.StddevSamp, ("stddev_samp",)), (exp.Stddev, ("stddev",)),
    (exp.StddevPop, ("stddev_pop",)), (exp.Variance, ("variance", "var_samp")), (exp.VariancePop, ("var_pop",)),
)  # fmt: skip
"""sqlglot has one node for several spellings of a function, and the same one for some operators. The length of the word
that the node remembers tells which was written; an operator's node remembers none."""

_TYPE_NAMES: dict[str, str] = {
    "INT": "int4", "BIGINT": "int8", "SMALLINT": "int2", "BOOLEAN": "bool", "DOUBLE": "float8", "FLOAT": "float4",
    "DECIMAL": "numeric", "CHAR": "bpchar", "VARBINARY": "bytea", "TIMESTAMPTZ": "timestamptz", "TIMESTAMP":
    "timestamp", "NCHAR": "bpchar", "NVARCHAR": "varchar", "VARCHAR": "varchar", "TEXT": "text",
}  # fmt: skip


def name_value_columns(tree: exp.Expr) -> None:
    """``column1``, ``column2`` … of VALUES in FROM, as far as the query has not named them."""
    for values in interrupts.asking(list(tree.find_all(exp.Values))):
        first = values.expressions[0]
        width = len(first.expressions) if isinstance(first, exp.Tuple) else 1
        named: exp.Expr = values
        while isinstance(named.parent, exp.Subquery) and not named.args.get("alias"):
            named = named.parent
        if isinstance(named.parent, exp.Lateral):
            named = named.parent
        if not isinstance(named.parent, exp.From | exp.Join) and not isinstance(named, exp.Lateral):
            continue
        alias = named.args.get("alias") or exp.TableAlias(this=exp.to_identifier("*VALUES*", quoted=True))
        columns = list(alias.args.get("columns") or ())
        alias.set("columns", columns + [exp.to_identifier(f"column{at + 1}") for at in range(len(columns), width)])
        named.set("alias", alias)


def output_name(node: exp.Expr) -> str:
    """The name PostgreSQL gives an unnamed column of a select list."""
    return _strong(node) or _weak(node) or UNNAMED


def _weak(node: exp.Expr | None) -> str | None:
    """What names a column only if nothing inside does: the type of a cast, CASE itself."""
    if isinstance(node, exp.Cast):
        return _type_name(node.to)
    if isinstance(node, exp.Case):
        return "case"
    if isinstance(node, exp.Boolean):
        return "bool"
    if isinstance(node, exp.Interval):
        return "interval"
    return _weak(node.this) if isinstance(node, exp.Paren | exp.Collate | exp.Bracket) else None


_FIXED: tuple[tuple[type[exp.Expr], str], ...] = (
    (exp.AtTimeZone, "timezone"), (exp.Exists, "exists"), (exp.Array, "array"), (exp.Tuple, "row"),
    (exp.Coalesce, "coalesce"), (exp.Overlaps, "overlaps"), (exp.Corr, "corr"), (exp.CovarPop, "covar_pop"),
    (exp.CovarSamp, "covar_samp"),
)  # fmt: skip


def _spelled(node: exp.Expr | None) -> str | None:
    start, end = (node.meta.get("start"), node.meta.get("end")) if node is not None else (None, None)
    if start is None or end is None:
        return None
    if isinstance(node, exp.Pad):
        return "lpad" if node.args.get("is_left") else "rpad"
    for kind, names in _SPELLINGS:
        if isinstance(node, kind):
            return next((name for name in names if len(name) == end - start + 1), None)
    return None


def _strong(node: exp.Expr | None) -> str | None:
    if isinstance(node, exp.Extract) and node.meta.get("date_part"):
        return "date_part"
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.IntDiv):
        return "div"
    spelled = _spelled(node)
    if spelled is not None:
        return spelled
    for kind, name in _FIXED:
        if isinstance(node, kind):
            return name
    if isinstance(node, exp.Alias | exp.Column | exp.Dot):
        return _last_part(node)
    if isinstance(node, exp.Cast | exp.Paren | exp.Window | exp.Filter | exp.WithinGroup | exp.Bracket | exp.Collate):
        return _strong(node.this)
    if isinstance(node, exp.Case):
        return _strong(node.args.get("default"))
    if isinstance(node, exp.Subquery):
        return _first_name(node.this)
    if isinstance(node, exp.Trim):
        return {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position")).upper(), "btrim")
    if isinstance(node, exp.StartsWith) and CALLED not in node.meta:  # the operator ^@
        return None
    if isinstance(node, exp.Connector | exp.Predicate | exp.Binary | exp.Unary):
        return None
    if isinstance(node, exp.Func):
        name = function_name(node)
        found = _NAMES.get(name, name)
        return None if found == UNNAMED else found
    return None


def _first_name(query: exp.Expr) -> str:
    """Of a sub-query's only column; a sub-query has always a name for it, and be it none."""
    if isinstance(query.unnest(), exp.Values):
        return "column1"
    first = query.selects[0] if isinstance(query, exp.Query) and query.selects else None
    if first is None:
        return UNNAMED
    columns = items_of(query) if first.is_star else None
    return columns[0][0] if columns else output_name(first)


def _last_part(node: exp.Expr) -> str | None:
    if isinstance(node, exp.Dot):
        return _strong(node.expression) if not isinstance(node.expression, exp.Identifier) else node.expression.name
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
        return None
    return node.alias_or_name or None


def _type_name(target: exp.Expr) -> str | None:
    if isinstance(target, exp.DataType):
        kind = target.args.get("kind")
        if target.this == exp.DType.USERDEFINED and kind is not None:
            last = kind.expression if isinstance(kind, exp.Dot) else kind
            if isinstance(last, exp.Identifier) and last.quoted:
                return str(last.name)
            return str(last.name if isinstance(last, exp.Expr) else last).rpartition(".")[2].lower()
        if target.this == exp.DType.ARRAY and target.expressions:
            return _type_name(target.expressions[0])
        name = str(target.this.value if hasattr(target.this, "value") else target.this)
        return _TYPE_NAMES.get(name, name.lower())
    return target.name.lower() or None


def name_outputs(tree: exp.Expr) -> None:
    """Give every unnamed select-list item of every SELECT in the tree PostgreSQL's name as its alias."""
    for select in interrupts.asking(list(tree.find_all(exp.Select))):
        if _is_row_source(select):
            continue
        items = [
            item if _is_named(item) else exp.alias_(item, output_name(item), quoted=True, copy=False)
            for item in select.expressions
        ]
        select.set("expressions", items)


def _is_named(item: exp.Expr) -> bool:
    plain = isinstance(item, exp.Alias | exp.Aliases | exp.Star | exp.Column)
    return plain or (item.is_star and not isinstance(item, exp.Subquery))


def _is_row_source(select: exp.Select) -> bool:
    """Sub-queries whose column names nobody can see: EXISTS, IN, ANY, ARRAY and scalar ones."""
    parent = select.parent
    if isinstance(parent, exp.Subquery):
        return not isinstance(parent.parent, exp.From | exp.Join | exp.Lateral | exp.SetOperation | exp.Subquery)
    return isinstance(parent, exp.Exists | exp.In | exp.Array | exp.Any | exp.All)
