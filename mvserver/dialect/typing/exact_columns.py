"""Columns of the result whose numerics have digits of their own, row by row.

DuckDB's DECIMAL has one number of digits behind the point for all rows. A quotient, or a cast to numeric without
digits, may be a column of the outermost select list. Then it is handed out as what it is made of: dividend and divisor,
a double, a text. The wire makes of it the numeric that PostgreSQL makes.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from mvserver.dialect.functions.casts import PLAIN_NUMERIC, SHOWN_AS
from mvserver.dialect.functions.quotients import is_exact
from mvserver.types import oids

TypeOf = Callable[[exp.Expr], str]

_QUOTIENT = "_quotient_"
_FLOATS = ("DOUBLE", "FLOAT")
_NULLS = ('"NULL"', "NULL")


def present(tree: exp.Expr) -> bool:
    """Whether there may be such columns. Where rows are compared with each other, the numbers themselves are."""
    if not isinstance(tree, exp.Select) or tree.args.get("distinct"):
        return False
    return any(_is_candidate(item.unalias().unnest()) for item in tree.expressions)


def hand_out(tree: exp.Expr, type_of: TypeOf) -> bool:
    """In place; True when there was one."""
    assert isinstance(tree, exp.Select)  # noqa: S101 - see present
    group = tree.args.get("group")
    changed = False
    for at, item in enumerate(tree.expressions, start=1):
        value = item.unalias().unnest()
        if not _is_candidate(value) or (group is not None and _groups_by(group, at, item, value)):
            continue
        made = _made(value, type_of)
        if made is None:
            continue
        _sort_by_value(tree.args.get("order"), at, item, value)
        made.meta[SHOWN_AS] = (oids.ARRAY_OF[oids.NUMERIC] if isinstance(made, exp.Array) else oids.NUMERIC, -1)
        place = item.this if isinstance(item, exp.Alias) else item
        place.replace(made)
        changed = True
    return changed


def _is_candidate(value: exp.Expr) -> bool:
    if isinstance(value, exp.Anonymous):
        return value.name.lower().startswith(_QUOTIENT)
    if isinstance(value, exp.Case | exp.Coalesce):
        return True
    if isinstance(value, exp.Array):
        return len(value.expressions) > 1
    return isinstance(value, exp.Cast) and bool(value.meta.get(PLAIN_NUMERIC))


def _made(value: exp.Expr, type_of: TypeOf) -> exp.Expr | None:
    if isinstance(value, exp.Anonymous):
        return exp.Anonymous(this="_ratio", expressions=[part.copy() for part in value.expressions])
    if isinstance(value, exp.Case | exp.Coalesce | exp.Array):
        return _each_for_itself(value, type_of)
    kind = type_of(value.this)
    if kind in _FLOATS:
        return exp.Paren(this=value.this.copy())
    if kind == "VARCHAR":
        return exp.Anonymous(this="_numeric_in", expressions=[value.this.copy()])
    return None


def _each_for_itself(value: exp.Expr, type_of: TypeOf) -> exp.Expr | None:
    """Results or items that are numerics of different digits, as texts; DuckDB gives all of them the most digits."""
    made = value.copy()
    if isinstance(made, exp.Case):
        kinds, parts = [type_of(part) for part in _results(value)], _results(made)
    elif isinstance(made, exp.Coalesce):
        kinds = [type_of(part) for part in (value.this, *value.expressions)]
        parts = [made.this, *made.expressions]
    else:
        kinds = [type_of(part) for part in value.expressions]
        parts = list(made.expressions)
    known = {kind for kind in kinds if kind not in _NULLS}
    if len(known) < 2 or not all(map(is_exact, known)) or not any(kind.startswith("DECIMAL") for kind in known):
        return None
    if len({kind.rpartition(",")[2].strip() if kind.startswith("DECIMAL") else "0)" for kind in known}) < 2:
        return None
    for part in parts:
        part.replace(exp.cast(part.copy(), "TEXT", dialect="duckdb"))
    return made


def _results(case: exp.Expr) -> list[exp.Expr]:
    default = case.args.get("default")
    return [branch.args["true"] for branch in case.args["ifs"]] + ([] if default is None else [default])


def _groups_by(group: exp.Expr, at: int, item: exp.Expr, value: exp.Expr) -> bool:
    names = {item.alias_or_name.lower()}
    for key in group.find_all(exp.Literal, exp.Column):
        if isinstance(key, exp.Literal) and key.name == str(at):
            return True
        if isinstance(key, exp.Column) and not key.table and key.name.lower() in names:
            return True
    return any(part == value for part in group.walk())


def _sort_by_value(order: exp.Expr | None, at: int, item: exp.Expr, value: exp.Expr) -> None:
    """Rows are sorted by the number, not by what it is made of."""
    for key in order.expressions if order is not None else ():
        bare = key.this.unnest()
        place = isinstance(bare, exp.Literal) and not bare.is_string and bare.name == str(at)
        named = isinstance(bare, exp.Column) and not bare.table and bare.name.lower() == item.alias_or_name.lower()
        if place or (named and isinstance(item, exp.Alias)):
            key.set("this", value.copy())
