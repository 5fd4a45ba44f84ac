"""Operators and functions whose result in PostgreSQL depends on the types of their operands as it does not in DuckDB.

What ``typed_rewrites`` does to operators: arithmetic, comparisons with documents and arrays, joins of documents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from mvserver import interrupts, limits, sqlstates
from mvserver.dialect.duck_text import written
from mvserver.dialect.functions import json_operators, periods
from mvserver.dialect.functions.arrays import array_literal
from mvserver.dialect.functions.casts import array_of, constant_of
from mvserver.dialect.functions.quotients import is_exact
from mvserver.dialect.typing.duck_types import is_fraction
from mvserver.dialect.typing.small_integers import SMALL, whole_constant
from mvserver.errors import SqlError

TypeOf = Callable[[exp.Expr], str]

_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_SHIFTS: dict[type[exp.Expr], str] = {exp.BitwiseLeftShift: "_shift_left", exp.BitwiseRightShift: "_shift_right"}
_NODES = (*_ARITHMETIC, *_COMPARISONS, exp.BitwiseLeftShift, exp.BitwiseRightShift, exp.ArrayToString, exp.Sign,
          exp.Log, exp.ExplodingGenerateSeries, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.Nullif, exp.Trunc,
          exp.Explode, exp.Unnest, exp.Greatest, exp.Least)  # fmt: skip
_FLOATS = ("DOUBLE", "FLOAT")
_INT4 = (*SMALL, "INTEGER")
_BITWISE = (exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor)
_TIMES = ("DATE", "TIMESTAMP")
_INTEGERS = (*_INT4, "BIGINT")
_ARRAY_TYPES = (exp.DType.ARRAY, exp.DType.LIST)
_DIVISORS = frozenset({"gcd", "lcm"})
_ITEMS_OUT = {
    "BOOLEAN[]": "_bool_items", "DOUBLE[]": "_float8_items", "FLOAT[]": "_float4_items", "BLOB[]": "_bytea_items",
    "DATE[]": "_time_items", "TIMESTAMP[]": "_time_items", "TIMESTAMP WITH TIME ZONE[]": "_instant_items",
    "INTERVAL[]": "_interval_items",
}  # fmt: skip


def concerns(node: exp.Expr) -> bool:
    if isinstance(node, _COMPARISONS):
        return _is_text(node.left) != _is_text(node.right) or _may_be_document(node.left)
    if isinstance(node, exp.Between):
        low = node.args["low"].unnest()
        return isinstance(low, exp.Array | exp.Column) or (isinstance(low, exp.Cast) and low.to.is_type(*_ARRAY_TYPES))
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in (*_DIVISORS, "log", "array_to_string", "_array_joined", "to_hex")
    if isinstance(node, exp.Bracket):
        return not isinstance(node.this.unnest(), exp.Array) or not all(map(_is_natural, node.expressions))
    return isinstance(node, _NODES)


def rewritten(node: exp.Expr, type_of: TypeOf) -> exp.Expr | None:
    """What stands for the node; None where DuckDB's answer is PostgreSQL's."""
    if isinstance(node, _COMPARISONS):
        return _comparison(node, type_of)
    if isinstance(node, _ARITHMETIC):
        return _arithmetic(node, type_of)
    if isinstance(node, exp.Between):
        return _between_arrays(node) if type_of(node.this).endswith("]") else None
    if isinstance(node, exp.Bracket):
        return _subscripted(node, type_of(node.this))
    if isinstance(node, exp.ArrayToString):
        return _joined_items(node, node.this, type_of)
    if isinstance(node, exp.ExplodingGenerateSeries):
        return _series(node, type_of)
    if isinstance(node, exp.Explode | exp.Unnest):
        arrays = [node.this] if isinstance(node, exp.Explode) else node.expressions
        flat = [_flatten(array, type_of(array)) for array in arrays]
        return node if any(flat) else None
    if isinstance(node, exp.Sign):
        exact = type_of(node.this).startswith("DECIMAL")
        return _cast(node, "DECIMAL(38, 0)" if exact else "DOUBLE")
    if isinstance(node, exp.Anonymous) and node.name.lower() in ("array_to_string", "_array_joined"):
        return _joined_items(node, node.expressions[0], type_of)
    if isinstance(node, exp.Anonymous) and node.name.lower() == "to_hex":
        return _call("_to_hex_32", *node.expressions) if type_of(node.expressions[0]) in _INT4 else None
    if isinstance(node, _BITWISE):
        return _with_wide_constants(node, type_of(node))
    if isinstance(node, exp.Nullif):
        return _null_if(node, type_of)
    if isinstance(node, exp.Greatest | exp.Least):
        return _extreme(node, type_of)
    if isinstance(node, exp.Trunc):
        whole = node.args.get("decimals") is None and type_of(node.this) in _INTEGERS
        return exp.cast(node.this.copy(), "DOUBLE", dialect="duckdb") if whole else None
    if type(node) in _SHIFTS:
        return _shifted(node, type_of)
    arguments = node.expressions if isinstance(node, exp.Anonymous) else list(node.iter_expressions())
    if isinstance(node, exp.Anonymous) and node.name.lower() in _DIVISORS:
        return _cast(node, "INT") if all(type_of(part) in _INT4 for part in arguments) else None
    exact = len(arguments) == 2 or type_of(arguments[0]).startswith("DECIMAL")
    return _cast(node, "DECIMAL(38, 16)") if exact else None


def _extreme(node: exp.Greatest | exp.Least, type_of: TypeOf) -> exp.Expr | None:
    """The first of equal ones; DuckDB's own functions compare the days of intervals before their hours."""
    if type_of(node) != "INTERVAL":
        return None
    name = "_longer_interval" if isinstance(node, exp.Greatest) else "_shorter_interval"
    found: exp.Expr = node.this.copy()
    for part in node.expressions:
        found = _call(name, found, part)
    return found


def _shifted(node: exp.Expr, type_of: TypeOf) -> exp.Expr | None:
    """By the last bits of the count, and without what leaves the number: DuckDB has errors there."""
    kind = type_of(node.this)
    if kind not in _INTEGERS or type_of(node.expression) not in _INT4:
        return None
    bits = 64 if kind == "BIGINT" else 16 if kind in SMALL else 32
    return _call(f"{_SHIFTS[type(node)]}_{bits}", node.this, node.expression)


def _cast(node: exp.Expr, kind: str) -> exp.Expr | None:
    return None if isinstance(node.parent, exp.Cast) else exp.cast(node.copy(), kind, dialect="duckdb")


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=[part.copy() for part in arguments])


def _series(node: exp.ExplodingGenerateSeries, type_of: TypeOf) -> exp.Expr | None:
    """What is no source of rows is a list, whose length is bounded; PostgreSQL's has its bounds' type."""
    if isinstance(node.parent, exp.Table | exp.From | exp.Join):
        return None
    parts = [node.args["start"], node.args["end"], node.args.get("step") or exp.Literal.number(1)]
    if isinstance(parts[2], exp.Literal) and parts[2].name == "0":
        raise SqlError(sqlstates.INVALID_PARAMETER_VALUE, "step size cannot equal zero")
    kinds = [type_of(part) for part in parts]
    bounded = False
    if all(kind in _INTEGERS for kind in kinds):
        bounded = not all(_is_number(part) for part in parts)
        name = "_series_end"
    elif all(kind.startswith(_TIMES) for kind in kinds[:2]) and kinds[2] == "INTERVAL":
        bounded, name = True, "_time_series_end"
    if bounded:
        computed = any(part.find(exp.Column) is not None for part in parts)
        most = limits.SERIES_ITEMS_OF_ROW_MAX if computed else limits.SERIES_ITEMS_MAX
        typed = [
            exp.cast(part.copy(), kind, dialect="duckdb") if part.find(exp.Parameter) else part
            for part, kind in zip(parts, kinds, strict=True)
        ]
        node.set("end", _call(name, *typed, exp.Literal.number(most)))
    kinds = kinds[:2]
    if isinstance(node.parent, exp.Select | exp.Alias) and all(kind in _INT4 for kind in kinds):
        return _cast(node, "INT")
    return node if bounded else None


def _is_number(node: exp.Expr) -> bool:
    return isinstance(node.this if isinstance(node, exp.Neg) else node, exp.Literal)


# --- comparisons ----------------------------------------------------------------------------------------------------
def _is_text(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and node.is_string and bool(node.name) and node.name[0] in '{["-0123456789tfn'


def _may_be_document(node: exp.Expr) -> bool:
    bare = node.unnest()
    return isinstance(bare, exp.JSONExtract) or (
        isinstance(bare, exp.Cast) and bare.to.this in (exp.DType.JSON, exp.DType.JSONB)
    )


def _comparison(node: exp.Expr, type_of: TypeOf) -> exp.Expr | None:
    left, right = node.this, node.expression
    text, other = (left, right) if _is_text(left) else (right, left)
    kind = type_of(other)
    if kind == "JSON":
        equal = json_operators.equal_documents(left, right, node)
        return exp.Paren(this=exp.Not(this=equal)) if isinstance(node, exp.NEQ) else equal
    if kind.endswith("[]") and _is_text(text):
        array = array_literal(text)
        if array is not None:
            node.set(text.arg_key, array_of(array, kind))
            return node
    return None


def _between_arrays(node: exp.Between) -> exp.Expr:
    """DuckDB makes one filter of two comparisons with constants, and does not run it; it leaves a CASE as it is."""
    least = exp.GTE(this=node.this.copy(), expression=node.args["low"].copy())
    most = exp.LTE(this=node.this.copy(), expression=node.args["high"].copy())
    both = exp.And(this=least.copy(), expression=most.copy())
    within = exp.Paren(this=exp.Case(ifs=[exp.If(this=least, true=most)], default=both))
    if not node.args.get("symmetric"):
        return within
    other = exp.Between(this=node.this.copy(), low=node.args["high"].copy(), high=node.args["low"].copy())
    return exp.Paren(this=exp.Or(this=within, expression=_between_arrays(other)))


_INSTANT = "TIMESTAMP WITH TIME ZONE"


def _moved_instant(node: exp.Expr, type_of: TypeOf) -> exp.Expr | None:
    """By the months, then the days, then the time of the interval; DuckDB may begin with the time."""
    instant, interval = node.this, node.expression
    if type_of(instant) == "INTERVAL":
        instant, interval = interval, instant
    bare = interval.unnest()
    of_one_unit = isinstance(bare, exp.Interval) and len(bare.this.name.split()) < 3
    if of_one_unit or type_of(instant) != _INSTANT or type_of(interval) != "INTERVAL":
        return None
    name = "_instant_later" if isinstance(node, exp.Add) else "_instant_earlier"
    return _call(name, instant, interval)


# --- arithmetic -----------------------------------------------------------------------------------------------------
def _arithmetic(node: exp.Expr, type_of: TypeOf) -> exp.Expr | None:
    left, right = node.this, node.expression
    kind = type_of(node)
    if kind == "BIGINT" and isinstance(node, exp.Sub):
        days = type_of(left) == "DATE" and type_of(right) == "DATE"
        return exp.cast(exp.Paren(this=node.copy()), "INT", dialect="duckdb") if days else None
    if kind == _INSTANT and isinstance(node, exp.Add | exp.Sub):
        return _moved_instant(node, type_of)
    if kind == "INTERVAL" and isinstance(node, exp.Sub) and _INSTANT in (type_of(left), type_of(right)):
        return exp.Paren(this=exp.Sub(this=_in_utc(left), expression=_in_utc(right)))
    if kind in SMALL:
        return _with_wide_constants(node, kind)
    if kind == "FLOAT" and [type_of(left), type_of(right)] != ["FLOAT", "FLOAT"]:
        left.replace(exp.cast(left.copy(), "DOUBLE", dialect="duckdb"))
        if _inside_arithmetic(node):
            return node
    if kind in _FLOATS and not _inside_arithmetic(node) and not _divides_by_zero(node):
        operands = [operand for operand in _operands(node) if not isinstance(operand, exp.Literal)]
        tests = [_call("isfinite", exp.cast(operand.copy(), "DOUBLE", dialect="duckdb")) for operand in operands]
        finite = exp.and_(*tests) if tests else exp.true()
        return _call("_in_range", exp.Paren(this=node.copy()), exp.Paren(this=finite))
    return None


def _in_utc(operand: exp.Expr) -> exp.Expr:
    """Differences of instants have days of 24 hours; DuckDB's are those of the session's calendar."""
    instant = exp.Cast(this=operand.copy(), to=exp.DataType.build("TIMESTAMPTZ", dialect="duckdb"))
    return exp.AtTimeZone(this=instant, zone=exp.Literal.string("UTC"))


def _with_wide_constants(node: exp.Expr, kind: str) -> exp.Expr | None:
    """A constant is an integer; DuckDB gives it the type of the smallint beside it."""
    parts = (node.this, node.expression)
    constants = [part for part in parts if kind in SMALL and whole_constant(part) is not None]
    for part in constants:
        part.replace(exp.cast(part.copy(), "INT", dialect="duckdb"))
    return node if constants else None


def _null_if(node: exp.Nullif, type_of: TypeOf) -> exp.Expr | None:
    """Of the type by which the two are compared."""
    kind, other = type_of(node.this), type_of(node.expression)
    exact = other.startswith("DECIMAL")
    if {kind, other} == {"TIME", "INTERVAL"}:
        return node if periods.as_intervals(node, type_of) else None
    if kind == "FLOAT" and (exact or other in _INTEGERS):  # two numbers of double precision; the first is still a real
        for part in (node.this, node.expression):
            part.replace(exp.cast(part.copy(), "DOUBLE", dialect="duckdb"))
        return exp.cast(node.copy(), "FLOAT", dialect="duckdb")
    if kind.startswith("DECIMAL") and not kind.endswith("]") and other in _FLOATS:
        node.set("this", exp.cast(node.this.copy(), "DOUBLE", dialect="duckdb"))
        return node
    if kind not in _INTEGERS or not (other in _FLOATS or exact):
        return None
    wider = "DOUBLE" if other in _FLOATS else "DECIMAL(19, 0)"
    node.set("this", exp.cast(node.this.copy(), wider, dialect="duckdb"))
    return node


def _inside_arithmetic(node: exp.Expr) -> bool:
    """The whole chain is tested once, at its end."""
    parent = node.parent
    while isinstance(parent, exp.Paren | exp.Neg):
        parent = parent.parent
    return isinstance(parent, _ARITHMETIC)


def _divides_by_zero(node: exp.Expr) -> bool:
    """An error by itself, which DuckDB would find too early in the test: CASE may keep it from being evaluated."""
    return any(
        isinstance(part.expression, exp.Literal) and part.expression.name == "0" for part in node.find_all(exp.Div)
    )


def _operands(node: exp.Expr) -> list[exp.Expr]:
    """The ends of the chain; each once."""
    found: dict[str, exp.Expr] = {}
    rest = [node]
    while rest:
        part = rest.pop()
        if isinstance(part, _ARITHMETIC):
            rest += [part.this, part.expression]
        elif isinstance(part, exp.Paren | exp.Neg):
            rest.append(part.this)
        else:
            found[written(part)] = part
    return list(found.values())


# --- arrays ---------------------------------------------------------------------------------------------------------
def _is_natural(index: exp.Expr) -> bool:
    """Written out and not negative."""
    if isinstance(index, exp.Slice):
        return all(bound is None or _is_natural(bound) for bound in (index.this, index.args.get("expression")))
    return isinstance(index, exp.Literal)


def _subscripted(node: exp.Bracket, kind: str) -> exp.Expr | None:
    if kind == "VARCHAR" or kind.startswith("STRUCT"):
        shown = "text" if kind == "VARCHAR" else "record"
        raise SqlError(
            sqlstates.DATATYPE_MISMATCH, f"cannot subscript type {shown} because it does not support subscripting"
        )
    if not kind.endswith("]") or all(map(_is_natural, node.expressions)):
        return None
    return _within_bounds(node)


def _within_bounds(node: exp.Bracket) -> exp.Expr:
    """Subscripts begin at 1: DuckDB counts those below from the array's end."""
    for index in list(node.expressions):
        if isinstance(index, exp.Slice):
            for bound, name in ((index.this, "_lower_bound"), (index.args.get("expression"), "_upper_bound")):
                if bound is not None and not _is_natural(bound):
                    bound.replace(_call(name, bound))
        elif not _is_natural(index):
            index.replace(_call("_subscript", index))
    return node


def _flatten(array: exp.Expr, kind: str) -> bool:
    """An array of several dimensions as its elements one after the other, in its place."""
    if kind.startswith(("STRUCT", "MAP")) and not kind.endswith("]"):  # DuckDB makes columns of the fields
        raise SqlError(
            sqlstates.UNDEFINED_FUNCTION,
            f"function unnest({'record' if kind.startswith('STRUCT') else 'map'}) does not exist",
            hint="No function matches the given name and argument types. You might need to add explicit type casts.",
        )
    depth = (len(kind) - len(kind.rstrip("[]"))) // 2
    if depth < 2:
        return False
    flat = array.copy()
    for _ in range(depth - 1):
        flat = _call("flatten", flat)
    array.replace(flat)
    return True


def joined_arrays(parts: Sequence[exp.Expr], kinds: Sequence[str]) -> exp.Expr | None:
    """``array || array``, of which one may be NULL; None where it is something else."""
    arrays = [kind.endswith("]") for kind in kinds]
    nulls = [isinstance(part.unnest(), exp.Null) for part in parts]
    both = all(array or null for array, null in zip(arrays, nulls, strict=True))
    return _call("_array_cat", *parts) if both and any(arrays) else None


def add_missing(tree: exp.Expr, type_of: TypeOf) -> bool:
    """``array || element`` either way round, and ``array || 'text of an array'``, which DuckDB does not bind: in place,
    inner ones first; True when there was one."""
    changed = False
    for node in interrupts.asking(reversed(list(tree.walk(bfs=True)))):
        made = _extended(node.left, node.right, type_of) if isinstance(node, exp.DPipe) else None
        if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div):
            made = _with_time(node, type_of)
        if made is not None:
            node.replace(made)
            changed = True
    return changed


def _with_time(node: exp.Binary, type_of: TypeOf) -> exp.Expr | None:
    """``timestamp + time`` and ``time * 2``: the time of day as an interval. ``date + bigint``: days are integers."""
    kinds = type_of(node.left), type_of(node.right)
    if "BIGINT" in kinds and "DATE" in kinds and isinstance(node, exp.Add | exp.Sub):  # of generate_series in FROM
        days = node.copy()
        side = days.left if kinds[0] == "BIGINT" else days.right
        side.replace(exp.cast(side.copy(), "INT", dialect="duckdb"))
        return days
    if kinds.count("TIME") != 1:
        return None
    time, other = (node.left, kinds[1]) if kinds[0] == "TIME" else (node.right, kinds[0])
    number = other in (*_INTEGERS, *_FLOATS) or other.startswith("DECIMAL")
    moved = other.startswith("TIMESTAMP") and (isinstance(node, exp.Add) or time is node.right)
    moved = moved or (other in ("INTERVAL", "DATE") and isinstance(node, exp.Sub) and time is node.right)
    scaled = number and (isinstance(node, exp.Mul) or (isinstance(node, exp.Div) and time is node.left))
    if isinstance(node, exp.Mul | exp.Div) and not scaled:
        return None
    if isinstance(node, exp.Add | exp.Sub) and not moved:
        return None
    if isinstance(node, exp.Div):
        return _call("_interval_quotient", _call("_time_interval", time), node.right)
    changed = node.copy()
    (changed.left if time is node.left else changed.right).replace(_call("_time_interval", time))
    return changed


def clock(node: exp.Cast, kind: str) -> exp.Expr | None:
    """The time of day of a timestamp and of an interval, and the interval of a time of day."""
    if node.to.is_type(exp.DType.INTERVAL):
        return _call("_time_interval", node.this) if kind == "TIME" else None
    if kind == _INSTANT:
        return _call("_clock_of", exp.cast(node.this.copy(), "TIMESTAMP", dialect="duckdb"))
    if kind == "TIMESTAMP":
        return _call("_clock_of", node.this)
    return _call("_interval_clock", node.this) if kind == "INTERVAL" else None


def _extended(left: exp.Expr, right: exp.Expr, type_of: TypeOf) -> exp.Expr | None:
    kinds = type_of(left), type_of(right)
    for array, text in ((kinds[0], right), (kinds[1], left)):
        constant = text.unnest()
        if array.endswith("]") and isinstance(constant, exp.Literal) and constant.is_string:
            value = constant_of(constant, array)
            return _call("_array_cat", *((left, value) if text is right else (value, right)))
    for name, array, item in (("array_append", *kinds), ("array_prepend", *reversed(kinds))):
        if array.endswith("]") and _is_element(item, array[:-2]):
            return _call(name, left, right)
    return None


def _is_element(kind: str, of: str) -> bool:
    """Whether a value of one type goes into an array of the other, which may become one of the wider of the two."""
    return kind == of or {kind, of} <= {*_INTEGERS, *_FLOATS} or (is_exact(kind) and is_exact(of))


def _joined_items(node: exp.Expr, array: exp.Expr, type_of: TypeOf) -> exp.Expr | None:
    kind = type_of(array)
    if _flatten(array, kind):
        array = node.expressions[0] if isinstance(node, exp.Anonymous) else node.this
        kind = f"{kind.rstrip('[]')}[]"
        node.meta["flat"] = True
    shown = "_fraction_items" if is_fraction(kind.removesuffix("[]")) else _ITEMS_OUT.get(kind)
    if shown is not None:
        array.replace(_call(shown, array))
    if isinstance(node, exp.ArrayToString) and isinstance(node.args.get("null"), exp.Null | None):
        return _call("_items_joined", node.this, node.expression)
    return node if shown is not None or node.meta.get("flat") else None
