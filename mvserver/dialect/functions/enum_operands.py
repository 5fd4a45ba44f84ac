"""Constants beside a value of an enum type, and enum_first, enum_last, enum_range: rewritten once types are known.

DuckDB compares an enum with a text as texts; in PostgreSQL a constant there is a label, and anything else an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from mvserver import interrupts, sqlstates
from mvserver.dialect.derived_columns import inner_first
from mvserver.dialect.functions import enums
from mvserver.errors import SqlError

TypeOf = Callable[[exp.Expr], str]

_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.NullSafeEQ: "=",
    exp.NullSafeNEQ: "=", exp.In: "=", exp.Between: ">=",
}  # fmt: skip
_CHOICES = (exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least, exp.Case, exp.Array)
_FUNCTIONS = frozenset({"enum_first", "enum_last", "enum_range", "enum_range_boundary"})


def present(tree: exp.Expr) -> bool:
    """Whether the query has a value of an enum type at all."""
    return any(
        node.this == exp.DType.ENUM if isinstance(node, exp.DataType) else _is_function(node)
        for node in interrupts.asking(tree.find_all(exp.DataType, exp.Anonymous))
    )


def _is_function(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() in _FUNCTIONS


def concerns(node: exp.Expr) -> bool:
    return type(node) in _COMPARISONS or isinstance(node, _CHOICES) or _is_function(node)


def unify_rows(tree: exp.Expr, type_of: TypeOf) -> None:
    """Columns of VALUES, on whose types all else depends, and choices among parameters: before any other node."""
    for values in interrupts.asking(tree.find_all(exp.Values)):
        for column in _groups(values):
            _unify(values, column, type_of)
    for choice in interrupts.asking(inner_first(tree)):
        if isinstance(choice, _CHOICES):
            for group in _groups(choice):
                if any(isinstance(part.unnest(), exp.Parameter) for part in group):
                    _unify(choice, group, type_of)
        else:
            _type_beside_array(choice, type_of)


def _type_beside_array(node: exp.Expr, type_of: TypeOf) -> None:
    """A parameter beside an array of an enum type is such an array, or one of its items; a text is such an item."""
    call = _array_call(node)
    if call is None:
        return
    name, operands = call
    for operand, other in (operands, operands[::-1]):
        bare = operand.unnest()
        if not (isinstance(bare, exp.Parameter) or (name in _OF_ITEM and _is_constant(bare))):
            continue
        kind = type_of(other)
        found = enums.known(kind[:-2]) if kind.endswith("]") else None
        if found is not None:
            wanted = found.duck_type if name in _OF_ITEM else kind
            operand.replace(exp.cast(operand.copy(), wanted, dialect="duckdb"))


def _array_call(node: exp.Expr) -> tuple[str, list[exp.Expr]] | None:
    """Name and both operands of what takes an array and another, or an item of it."""
    if isinstance(node, exp.DPipe | exp.ArrayAppend | exp.ArrayPrepend):
        return node.key, [node.this, node.expression]
    if isinstance(node, exp.ArrayConcat):
        parts = [node.this, *node.expressions]
    else:
        parts = node.expressions if isinstance(node, exp.Anonymous) and node.name.lower() in _OF_ARRAYS else []
    return (node.name.lower() or node.key, list(parts)) if len(parts) == 2 else None


_OF_ITEM = frozenset({"arrayappend", "arrayprepend", "array_append", "array_prepend"})
_OF_ARRAYS = frozenset({"_contains_all", "_array_cat", "array_cat", "list_concat", "array_append", "array_prepend"})


def add_missing(tree: exp.Expr, type_of: TypeOf) -> bool:
    """Functions of enums and what they are given, where DuckDB's own would not take it: in place, inner ones first."""
    changed = False
    for node in interrupts.asking(inner_first(tree)):
        if isinstance(node, exp.Anonymous) and _is_function(node):
            found = _enum_of(node, type_of)
            made = None if found is None else _labels(node, found)
        else:
            made = rewritten(node, type_of) if isinstance(node, _CHOICES) else None
        if made is not None:
            changed = True
            if made is not node:
                node.replace(made)
    return changed


def rewritten(node: exp.Expr, type_of: TypeOf) -> exp.Expr | None:
    """What stands for the node; None where it has nothing to do with enums."""
    if isinstance(node, exp.Anonymous):
        return _labels(node, _enum_of(node, type_of))
    changed = False
    for operands in _groups(node):
        changed |= _unify(node, operands, type_of)
    return node if changed else None


def _groups(node: exp.Expr) -> Sequence[Sequence[exp.Expr]]:
    """Operands that must be of one type."""
    if isinstance(node, exp.Case):
        branches = node.args.get("ifs") or []
        results = [branch.args["true"] for branch in branches]
        if node.args.get("default") is not None:
            results.append(node.args["default"])
        tested = [node.this, *(branch.this for branch in branches)] if node.args.get("this") is not None else []
        return (results, tested)
    if isinstance(node, exp.Values):
        return tuple(zip(*(row.expressions for row in node.expressions if isinstance(row, exp.Tuple)), strict=False))
    if isinstance(node, exp.In):
        return ([node.this, *node.expressions],)
    if isinstance(node, exp.Between):
        return ([node.this, node.args["low"], node.args["high"]],)
    return ([part for part in node.iter_expressions() if isinstance(part, exp.Expr)],)


def _unify(node: exp.Expr, operands: Sequence[exp.Expr], type_of: TypeOf) -> bool:
    constants = [part for part in operands if _is_constant(part)]
    others = [type_of(part) for part in operands if not _is_constant(part) and not _is_open(part)]
    found = next((enum for enum in map(enums.known, others) if enum is not None), None)
    if found is None:
        return False
    odd = next((kind for kind in others if kind not in (found.duck_type, "", '"NULL"')), None)
    symbol = _COMPARISONS.get(type(node))
    if odd is not None and symbol is not None and not odd.endswith("]"):
        other = enums.known(odd)
        names = [found.name, other.name if other else {"VARCHAR": "text"}.get(odd, odd.lower())]
        if others.index(odd) < others.index(found.duck_type):
            names.reverse()
        raise SqlError(
            sqlstates.UNDEFINED_FUNCTION,
            f"operator does not exist: {names[0]} {symbol} {names[1]}",
            hint="No operator matches the given name and argument types. You might need to add explicit type casts.",
        )
    for part in constants:
        part.replace(exp.cast(part.copy(), found.duck_type, dialect="duckdb"))
    return bool(constants)


def _is_constant(node: exp.Expr) -> bool:
    """What has no type of its own yet."""
    bare = node.unnest()
    return isinstance(bare, exp.Parameter) or (isinstance(bare, exp.Literal) and bare.is_string)


def _is_open(node: exp.Expr) -> bool:
    return isinstance(node.unnest(), exp.Null | exp.Any | exp.All)


def _enum_of(node: exp.Anonymous, type_of: TypeOf) -> enums.KnownEnum | None:
    """The type of the first argument that has one."""
    kinds = (enums.known(type_of(argument)) for argument in node.expressions)
    return next((kind for kind in kinds if kind is not None), None)


def _labels(node: exp.Anonymous, found: enums.KnownEnum | None) -> exp.Expr:
    name = node.name.lower()
    if found is None:
        raise SqlError(sqlstates.DATATYPE_MISMATCH, "could not determine actual enum type")
    whole = exp.Array(expressions=[exp.Literal.string(label) for label in found.labels])
    ends = {"enum_first": 0, "enum_last": -1}
    if name in ends:
        label = exp.Literal.string(found.labels[ends[name]]) if found.labels else exp.null()
        return _kept(node, _cast(label, found.duck_type))
    labels = _cast(whole, f"{found.duck_type}[]")
    if len(node.expressions) == 1:
        return _kept(node, labels)
    low, high = (_cast(argument.copy(), found.duck_type) for argument in node.expressions)
    return exp.Anonymous(this="_labels_between", expressions=[labels, low, high])


def _kept(node: exp.Anonymous, answer: exp.Expr) -> exp.Expr:
    """The value of the argument says nothing, but a parameter in it belongs to the statement, and an aggregate makes
    one row of all."""
    (argument,) = node.expressions
    if argument.find(exp.Parameter, exp.AggFunc) is None:
        return answer
    asked = exp.Is(this=exp.Paren(this=argument.copy()), expression=exp.Null())
    return exp.Paren(this=exp.Case(ifs=[exp.If(this=asked, true=answer.copy())], default=answer))


def _cast(node: exp.Expr, kind: str) -> exp.Expr:
    return exp.cast(node, kind, dialect="duckdb")
