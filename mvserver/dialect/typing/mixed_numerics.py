"""Numerics of different digits where one type is made of them: UNION, VALUES, CASE, arrays, IN (SELECT ...).

DuckDB's DECIMAL has 38 digits. Of one with 38 digits before the point, as each sum has, and one with some behind it
DuckDB makes the type of the first, and rounds the other. Here all of them are cast to the most digits behind the point
first; a number that has no place for its digits before the point then is 22003.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import duckdb
from sqlglot import exp

from mvserver import interrupts, sqlstates
from mvserver.dialect.binding import Bound
from mvserver.dialect.errors.type_texts import pg_name
from mvserver.dialect.functions.checked_functions import NUMERIC_DIGITS_MAX
from mvserver.dialect.functions.quotients import INTEGER_DIGITS, is_exact
from mvserver.dialect.probes import bound_in
from mvserver.dialect.recursive import is_recursive
from mvserver.dialect.typing.operand_rules import first_select
from mvserver.errors import SqlError

TypeOf = Callable[[exp.Expr], str]

_DECIMAL = re.compile(r"^DECIMAL\((\d+),\s*(\d+)\)$")
_VALUES = (exp.Case, exp.Coalesce, exp.Greatest, exp.Least, exp.Array)
"""Whose own type is that of their operands."""
_OTHERS = (exp.Lag, exp.Lead, exp.Mod)
_LIST_CALLS = frozenset({
    "_array_cat", "_array_contains", "list_concat", "array_append", "array_prepend", "array_position",
    "array_positions", "array_remove", "array_replace", "list_contains", "list_has_any", "list_has_all",
})  # fmt: skip
_LISTS = (exp.ArrayConcat, exp.ArrayAppend, exp.ArrayPrepend, exp.ArrayPosition, exp.ArrayRemove, exp.ArrayContains,
          exp.ArrayOverlaps)  # fmt: skip
_RECURSIVE_SCALE = 10  # as that of a quotient inside a query


def present(tree: exp.Expr) -> bool:
    return any(_concerns(node) for node in interrupts.asking(tree.walk()))


def unify(cursor: duckdb.DuckDBPyConnection, tree: exp.Expr, type_of: TypeOf) -> bool:
    """In place, inner ones first; True when something was cast."""
    changed = False
    for node in interrupts.asking(reversed(list(tree.walk(bfs=True)))):
        if not _concerns(node):
            continue
        if isinstance(node, exp.SetOperation):
            changed |= _set_columns(cursor, node, tree)
        elif isinstance(node, exp.Values):
            changed |= _rows(node, type_of)
        elif isinstance(node, exp.In | exp.Any | exp.All):
            changed |= _compared(cursor, node, tree, type_of)
        else:
            changed |= _operands(node, type_of)
    return changed


def _concerns(node: exp.Expr) -> bool:
    if isinstance(node, exp.SetOperation):
        return not isinstance(node.parent, exp.SetOperation)
    if isinstance(node, exp.In):
        return node.args.get("query") is not None
    if isinstance(node, exp.Any | exp.All):
        return isinstance(node.parent, exp.Binary)
    if isinstance(node, exp.Anonymous):
        return node.name in _LIST_CALLS
    return isinstance(node, (*_VALUES, *_OTHERS, *_LISTS, exp.Values))


# --- expressions ------------------------------------------------------------------------------------------------------
def _operands(node: exp.Expr, type_of: TypeOf) -> bool:
    parts = parts_alike(node)
    if len(parts) < 2 or any(_is_no_number(part) for part in parts) or all(map(_is_constant, parts)):
        return False
    if isinstance(node, _VALUES) and not _is_full(type_of(node)):
        return False
    return _cast_all(parts, [type_of(part) for part in parts])


def parts_alike(node: exp.Expr) -> list[exp.Expr]:
    """Those that are to be of one type."""
    if isinstance(node, exp.Case):
        default = node.args.get("default")
        return [branch.args["true"] for branch in node.args["ifs"]] + ([] if default is None else [default])
    if isinstance(node, exp.Lag | exp.Lead):
        default = node.args.get("default")
        return [] if default is None else [node.this, default]
    if isinstance(node, exp.Array | exp.Anonymous):
        return list(node.expressions)
    return list(node.iter_expressions())


def _compared(cursor: duckdb.DuckDBPyConnection, node: exp.Expr, tree: exp.Expr, type_of: TypeOf) -> bool:
    """``x IN (SELECT y ...)``, ``x = ANY (...)``: DuckDB compares them as values of one type."""
    left = node.this if isinstance(node, exp.In) else node.parent.this  # type: ignore[union-attr]
    right = node.args["query"] if isinstance(node, exp.In) else node.this
    bare = right.unnest()
    if not isinstance(bare, exp.Query):
        return not _is_no_number(left) and _cast_all([left, right], [type_of(left), type_of(right)])
    row = left.unnest()
    parts = list(row.expressions) if isinstance(row, exp.Tuple) else [left]
    found = _bound(cursor, bare, tree)
    if found is None or len(found.types) != len(parts) or not any(map(_is_decimal, found.types)):
        return False
    wanted: dict[int, int] = {}
    for at, (part, kind) in enumerate(zip(parts, found.types, strict=True)):
        scale = _scale([type_of(part), kind])
        if scale is not None:
            wanted[at] = scale
            part.replace(_cast(part, scale, ""))
    if wanted:
        _cast_columns(bare, found, wanted)
    return bool(wanted)


def columns_of_rows(node: exp.Values) -> list[tuple[exp.Expr, ...]]:
    """Of VALUES with several rows; none where they are not of one length, which is an error."""
    rows = [row.expressions for row in node.expressions if isinstance(row, exp.Tuple)]
    return [] if len(rows) < 2 or len({len(row) for row in rows}) != 1 else list(zip(*rows, strict=True))


def _rows(node: exp.Values, type_of: TypeOf) -> bool:
    changed = False
    for column in columns_of_rows(node):
        if not all(map(_is_constant, column)) and not any(map(_is_no_number, column)):
            changed |= _cast_all(column, [type_of(cell) for cell in column])
    return changed


def _cast_all(parts: Sequence[exp.Expr], kinds: Sequence[str]) -> bool:
    scale = _scale([kind.removesuffix("[]") for kind in kinds])
    if scale is None:
        return False
    for part, kind in zip(parts, kinds, strict=True):
        if is_exact(kind.removesuffix("[]")):
            part.replace(_cast(part, scale, "[]" if kind.endswith("[]") else ""))
    return True


# --- columns of queries -----------------------------------------------------------------------------------------------
def _set_columns(cursor: duckdb.DuckDBPyConnection, node: exp.SetOperation, tree: exp.Expr) -> bool:
    cte = node.parent
    if isinstance(cte, exp.CTE) and is_recursive(cte):
        return _recursive(cursor, node, cte, tree)
    whole = _bound(cursor, node, tree)
    if whole is None or not any(map(_is_full, whole.types)):
        return False
    sides = [(side, _bound(cursor, side, tree)) for side in _sides(node)]
    wanted: dict[int, int] = {}
    for at, kind in enumerate(whole.types):
        if _is_full(kind):
            scale = _scale([found.types[at] for _, found in sides if found is not None and at < len(found.types)])
            if scale is not None:
                wanted[at] = scale
    for side, found in sides:
        if found is not None and wanted:
            _cast_columns(side, found, wanted)
    return bool(wanted)


def widen_recursive(cursor: duckdb.DuckDBPyConnection, tree: exp.Expr) -> bool:
    """Numerics of the first part whose second part makes others of them, in place, before quotients have a type."""
    changed = False
    for cte in interrupts.asking(list(tree.find_all(exp.CTE))):
        if not is_recursive(cte):
            continue
        node, items = cte.this, first_select(cte.this.right)
        first, second = _bound(cursor, node.left, tree), _bound(cursor, node.right, tree)
        if first is None or items is None or not any(map(_is_decimal, first.types)):
            continue
        wanted = {
            at: max(_RECURSIVE_SCALE, _digits(kind)[1])
            for at, (kind, item) in enumerate(zip(first.types, items.expressions, strict=False))
            if _is_decimal(kind)
            and (item.find(exp.Div, exp.Avg) is not None or second is None or second.types[at] != kind)
        }
        if wanted:
            _cast_columns(node.left, first, wanted)
            changed = True
    return changed


def _recursive(cursor: duckdb.DuckDBPyConnection, node: exp.SetOperation, cte: exp.CTE, tree: exp.Expr) -> bool:
    """What is put into the columns of the first part."""
    first, second = _bound(cursor, node.left, tree), _bound(cursor, node.right, tree)
    if first is None or second is None or len(second.types) != len(first.types):
        return False
    wanted: dict[int, int] = {}
    for at, (kind, other) in enumerate(zip(first.types, second.types, strict=True)):
        if is_exact(kind) and (other == "DOUBLE" or (_is_decimal(other) and not _is_decimal(kind))):
            raise _other_type(cte.alias, at, kind, other)
        if _is_decimal(kind) and _is_decimal(other) and _digits(kind)[1] < _digits(other)[1]:
            wanted[at] = max(_RECURSIVE_SCALE, _digits(other)[1])
    if wanted:
        _cast_columns(node.left, first, wanted)
    return bool(wanted)


def _other_type(name: str, at: int, kind: str, other: str) -> SqlError:
    return SqlError(
        sqlstates.DATATYPE_MISMATCH,
        f'recursive query "{name}" column {at + 1} has type {pg_name(kind)} in non-recursive term but type '
        f"{pg_name(other)} overall",
        hint="Cast the output of the non-recursive term to the correct type.",
    )


def _sides(node: exp.Expr) -> list[exp.Expr]:
    """All queries of a chain of set operations."""
    found: list[exp.Expr] = []
    open_ = [node]
    while open_:
        side = open_.pop()
        bare = side.unnest()
        limited = any(bare.args.get(key) is not None for key in ("limit", "offset", "with_"))
        if isinstance(bare, exp.SetOperation) and (bare is node or not limited):
            open_ += [bare.right, bare.left]
        else:
            found.append(side)
    return found


def _cast_columns(side: exp.Expr, found: Bound, scales: dict[int, int]) -> None:
    """The query as a sub-query of one that casts its columns."""
    bare = side.unnest()
    first = first_select(bare)
    written = [] if first is None else [item.alias_or_name for item in first.expressions]
    names = written if len(written) == len(found.names) and all(written) else found.names
    places = [exp.to_identifier(f"_{at}", quoted=True) for at in range(len(found.names))]
    items = [
        exp.alias_(
            _cast(exp.Column(this=place.copy()), scales[at], "") if at in scales else exp.Column(this=place.copy()),
            name,
            quoted=True,
        )
        for at, (place, name) in enumerate(zip(places, names, strict=True))
    ]
    alias = exp.TableAlias(this=exp.to_identifier("_side", quoted=True), columns=places)
    made = exp.Select(expressions=items)
    bare.replace(made)
    made.set("from_", exp.From(this=exp.Subquery(this=bare, alias=alias)))


def _bound(cursor: duckdb.DuckDBPyConnection, query: exp.Expr, tree: exp.Expr) -> Bound | None:
    return bound_in(cursor, query, tree.args.get("with_"))


# --- digits -----------------------------------------------------------------------------------------------------------
def _is_decimal(kind: str) -> bool:
    return _DECIMAL.match(kind) is not None


def _is_full(kind: str) -> bool:
    """Whether digits may have been lost on the way to the type."""
    return kind.removesuffix("[]").startswith(f"DECIMAL({NUMERIC_DIGITS_MAX},")


def _digits(kind: str) -> tuple[int, int]:
    """Before and behind the point."""
    found = _DECIMAL.match(kind)
    return (INTEGER_DIGITS[kind], 0) if found is None else (int(found[1]) - int(found[2]), int(found[2]))


def _scale(kinds: Sequence[str]) -> int | None:
    """The digits behind the point that all need, where DuckDB's common type has fewer."""
    digits = [_digits(kind) for kind in kinds if is_exact(kind)]
    if len(digits) < 2 or not any(map(_is_decimal, kinds)):
        return None
    scale = max(behind for _, behind in digits)
    return scale if scale and max(before for before, _ in digits) + scale > NUMERIC_DIGITS_MAX else None


def _cast(part: exp.Expr, scale: int, suffix: str) -> exp.Expr:
    """``exp.cast`` takes a cast to any DECIMAL for this one."""
    kind = exp.DataType.build(f"DECIMAL({NUMERIC_DIGITS_MAX}, {scale}){suffix}", dialect="duckdb")
    return exp.Cast(this=part.copy(), to=kind)


def _is_constant(part: exp.Expr) -> bool:
    bare = part.unnest()
    bare = bare.this.unnest() if isinstance(bare, exp.Neg) else bare
    return isinstance(bare, exp.Literal | exp.Null) and len(bare.name) < NUMERIC_DIGITS_MAX // 2


def _is_no_number(part: exp.Expr) -> bool:
    bare = part.unnest()
    return isinstance(bare, exp.Boolean | exp.Interval) or (isinstance(bare, exp.Literal) and bool(bare.is_string))
