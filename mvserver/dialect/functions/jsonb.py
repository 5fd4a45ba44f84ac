"""Documents of type jsonb, which DuckDB does not tell from json: they are found by the query's text.

All that makes one says so by its name. What is one is shown as one, and has the operators and functions that change a
document.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from mvserver import interrupts, sqlstates
from mvserver.dialect.derived_columns import item_of, items_of
from mvserver.dialect.functions.arrays import split_array
from mvserver.dialect.functions.json_operators import OF_JSONB, document, pointer
from mvserver.dialect.guard import function_name
from mvserver.dialect.joins import sources_of
from mvserver.errors import SqlError

_NOT_DOCUMENTS = frozenset({
    "jsonb_typeof", "jsonb_array_length", "jsonb_array_elements_text", "jsonb_object_keys", "jsonb_extract_path_text",
    "jsonb_each", "jsonb_each_text", "jsonb_pretty", "jsonb_path_exists", "jsonb_path_match",
})  # fmt: skip
_OF_FIRST = (
    exp.JSONExtract, exp.JSONBExtract, exp.Sub, exp.JSONBDeleteAtPath, exp.Paren, exp.Alias, exp.Filter,
    exp.Window, exp.Min, exp.Max, exp.AnyValue, exp.FirstValue, exp.LastValue, exp.NthValue, exp.Lag, exp.Lead,
)  # fmt: skip
_Change = Callable[[exp.Expr, exp.Expr, exp.Expr], exp.Expr]
_DEPTH_MAX = 20  # of sub-queries through which a column is followed


def arrows(tree: exp.Expr) -> None:
    """``f(d -> 'x')``: the parser takes an arrow in an argument for a function of d, which PostgreSQL has not."""
    for node in interrupts.asking(list(tree.find_all(exp.Lambda))):
        if len(node.expressions) != 1 or not isinstance(node.expressions[0], exp.Identifier):
            continue
        key = node.this
        while not isinstance(key, exp.Literal | exp.Column) and isinstance(key.this, exp.Expr):
            key = key.this
        column = exp.Column(this=node.expressions[0].copy())
        found = exp.JSONExtract(this=column, expression=_step(key), only_json_types=True)
        if key is node.this:
            node.replace(found)
        else:
            key.replace(found)
            node.replace(node.this)


def _step(key: exp.Expr) -> exp.Expr:
    if not isinstance(key, exp.Literal):
        return key.copy()
    step = exp.JSONPathKey(this=key.name) if key.is_string else exp.JSONPathSubscript(this=int(key.name))
    return exp.JSONPath(expressions=[exp.JSONPathRoot(), step])


def documents(tree: exp.Expr) -> list[bool]:
    """Which columns of the result are of type jsonb, or arrays of it; empty where the text does not tell."""
    return [is_jsonb(item) or _is_array(item) for _, item in items_of(tree) or ()]


def _is_array(node: exp.Expr | None) -> bool:
    """Of documents of type jsonb."""
    bare = None if node is None else node.unalias().unnest()
    if isinstance(bare, exp.ArrayAgg):
        first = bare.this
        while isinstance(first, exp.Order | exp.Distinct):
            first = first.expressions[0] if isinstance(first, exp.Distinct) else first.this
        return is_jsonb(first)
    if isinstance(bare, exp.Filter | exp.Window):
        return _is_array(bare.this)
    if isinstance(bare, exp.Array):
        return any(is_jsonb(item) for item in bare.expressions)
    return False


def adapt(tree: exp.Expr) -> exp.Expr:
    """``-``, ``#-`` and jsonb_set as what DuckDB has; before anything else is changed."""
    root = exp.Paren(this=tree)
    for node in interrupts.asking(reversed(list(root.walk(bfs=True)))):
        replacement = _adapted(node)
        if replacement is not None:
            node.replace(replacement)
    return root.this.pop()  # type: ignore[no-any-return]


def _adapted(node: exp.Expr) -> exp.Expr | None:
    if isinstance(node, exp.Sub) and is_jsonb(node.this):
        return _kept(_without(node.this, node.expression))
    if isinstance(node, exp.JSONBDeleteAtPath):
        return _kept(_without_path(node.this, _path("#-", node.expression)))
    if type(node) in _COMPARISONS and (is_jsonb(node.this) or is_jsonb(node.expression)):
        return _compared(node)
    if isinstance(node, exp.JSONExtractScalar):
        node.meta[OF_JSONB] = is_jsonb(node.this)
    if isinstance(node, exp.JSONExtract | exp.JSONExtractScalar) and isinstance(node.parent, exp.Func):
        return exp.Paren(this=node.copy())  # an argument ``d -> 'x'`` is a lambda function for DuckDB
    if isinstance(node, exp.Func) and function_name(node) == "jsonb_set":
        return _kept(_set(node))
    return None


_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)


def _compared(node: exp.Expr) -> exp.Expr | None:
    """With a constant beside it, ``operand_types`` sees to it."""
    if any(isinstance(_bare(part), exp.Null) for part in (node.this, node.expression)):
        return None
    if isinstance(node, exp.LT | exp.LTE | exp.GT | exp.GTE):
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "documents can only be compared for equality",
            hint="Compare the fields with ->> instead.",
        )
    if any(_is_constant(part) or isinstance(part, exp.Any | exp.All) for part in (node.this, node.expression)):
        return None
    same = _call("_json_same", document(node.this), document(node.expression))
    return exp.Paren(this=exp.Not(this=same)) if isinstance(node, exp.NEQ) else same


def _is_constant(node: exp.Expr) -> bool:
    return isinstance(_bare(node), exp.Literal)


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren | exp.Cast):
        node = node.this
    return node


def _kept(node: exp.Expr) -> exp.Expr:
    node.meta["jsonb"] = True
    return node


# --- what is one ----------------------------------------------------------------------------------------------------
def is_jsonb(node: exp.Expr | None, depth: int = 0) -> bool:
    if node is None or depth > _DEPTH_MAX:
        return False
    if node.meta.get("jsonb"):
        return True
    if isinstance(node, exp.Cast):
        return bool(isinstance(node.to, exp.DataType) and node.to.this == exp.DType.JSONB)
    if isinstance(node, _OF_FIRST):
        return is_jsonb(node.this, depth)
    if isinstance(node, exp.DPipe):
        return is_jsonb(node.left, depth) or is_jsonb(node.right, depth)
    if isinstance(node, exp.Coalesce | exp.Nullif):
        return is_jsonb(node.this, depth) or any(is_jsonb(part, depth) for part in node.expressions)
    if isinstance(node, exp.Case):
        branches = [branch.args.get("true") for branch in node.args.get("ifs") or []]
        return any(is_jsonb(part, depth) for part in (*branches, node.args.get("default")))
    if isinstance(node, exp.Subquery):
        found = items_of(node.this)
        return found is not None and len(found) > 0 and is_jsonb(found[0][1], depth + 1)
    if isinstance(node, exp.Column):
        return _column(node, depth)
    if isinstance(node, exp.Bracket):
        return _is_array(node.this)
    if isinstance(node, exp.Func):
        name = "jsonb_object_agg" if isinstance(node, exp.JSONBObjectAgg) else function_name(node)
        return name == "to_jsonb" or (name.startswith("jsonb_") and name not in _NOT_DOCUMENTS)
    return False


def _column(column: exp.Column, depth: int) -> bool:
    """Of a sub-query, a WITH or VALUES that is written out."""
    select = column.find_ancestor(exp.Select)
    while select is not None:
        for source in sources_of(select):
            alias = source.alias_or_name
            if column.table and column.table != alias:
                continue
            item = item_of(source, column.name, select)
            if item is not None:
                return is_jsonb(item, depth + 1)
        select = select.find_ancestor(exp.Select)
    return False


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=[part.copy() for part in arguments])


# --- what changes one -----------------------------------------------------------------------------------------------
def _without(whole: exp.Expr, part: exp.Expr) -> exp.Expr:
    bare = part.unnest()
    if isinstance(bare, exp.Array) or (isinstance(bare, exp.Cast) and bare.to.is_type(exp.DType.ARRAY)):
        return _call("_json_without", document(whole), part)
    number = bare.this if isinstance(bare, exp.Neg) else bare
    integer = isinstance(number, exp.Literal) and not number.is_string
    integer = integer or (isinstance(bare, exp.Cast) and bare.to.is_type(*exp.DataType.INTEGER_TYPES))
    if integer:
        return _call("_json_without_at", document(whole), part)
    return _call("_json_without", document(whole), exp.Array(expressions=[part.copy()]))


def _path(what: str, node: exp.Expr) -> list[str]:
    bare = node.unnest()
    if isinstance(bare, exp.Cast):
        bare = bare.this
    keys: list[str | None] | None = None
    if isinstance(bare, exp.Literal) and bare.is_string and bare.name.startswith("{"):
        keys = split_array(bare.name)
    elif isinstance(bare, exp.Array) and all(isinstance(item, exp.Literal) for item in bare.expressions):
        keys = [item.name for item in bare.expressions]
    if keys is None or None in keys:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"{what} is supported with a constant path only",
            hint="Write the path as '{a,b}'.",
        )
    path = [key for key in keys if key is not None]
    if any(key.startswith("-") and key[1:].isdigit() for key in path[:-1]):
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"{what} with a place counted from the end inside its path is not supported",
            hint="Count from the start, or use it as the last step.",
        )
    return path


def _without_path(whole: exp.Expr, path: Sequence[str]) -> exp.Expr:
    whole = _call("_json_container", document(whole), exp.Literal.string("delete"))
    return _changed(whole, path, 1, lambda inner, key, at: _call("_json_drop", inner, key, at)) if path else whole


def _set(node: exp.Func) -> exp.Expr:
    arguments = node.expressions if isinstance(node, exp.Anonymous) else list(node.iter_expressions())
    if len(arguments) not in (3, 4):
        raise SqlError(sqlstates.UNDEFINED_FUNCTION, "function jsonb_set does not exist")
    path = _path("jsonb_set", arguments[1])
    value = document(arguments[2])
    make = arguments[3] if len(arguments) == 4 else exp.true()
    whole = _call("_json_container", document(arguments[0]), exp.Literal.string("set"))
    if not path:
        return whole
    return _changed(whole, path, 1, lambda inner, key, at: _call("_json_put", inner, key, value, make, at))


def _changed(whole: exp.Expr, path: Sequence[str], at: int, change: _Change) -> exp.Expr:
    """The document with ``change`` done where the path ends; as it is where the path leads nowhere."""
    key, place = exp.Literal.string(path[0]), exp.Literal.number(at)
    if len(path) == 1:
        return change(whole, key, place)
    inner = _call("json_extract", whole, exp.Literal.string(pointer([path[0]])))
    below = _changed(inner, path[1:], at + 1, change)
    missing = exp.If(this=exp.Is(this=inner.copy(), expression=exp.Null()), true=whole.copy())
    return exp.Paren(
        this=exp.Case(ifs=[missing], default=_call("_json_put", whole, key, below, exp.false(), place)),
    )
