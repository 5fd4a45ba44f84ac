"""The operands that go together in PostgreSQL, where DuckDB casts one of them.

Judged are operands whose types are certain: not of a function that is a macro here, whose type may be another than
PostgreSQL's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from sqlglot import exp

from mvserver import sqlstates
from mvserver.dialect.marks import PERIODS
from mvserver.dialect.typing.operators import SYMBOLS
from mvserver.errors import SqlError
from mvserver.sql.pull_parser import CALLED

COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_PATTERNS: dict[type[exp.Expr], str] = {
    exp.Like: "~~", exp.ILike: "~~*", exp.RegexpLike: "~", exp.RegexpILike: "~*",
}  # fmt: skip
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.Neg, exp.Paren)
_OF_ARGUMENT = (exp.Sum, exp.Avg, exp.Min, exp.Max)
CATEGORIES = {
    **dict.fromkeys(("smallint", "integer", "bigint", "numeric", "real", "double precision"), "N"),
    **dict.fromkeys(("date", "timestamp without time zone", "timestamp with time zone"), "D"),
    "text": "S", "boolean": "B", "bytea": "U", "interval": "T", "time without time zone": "C", "uuid": "I", "json": "J",
}  # fmt: skip
"""Of the types that are told apart; all others go with everything."""
INTEGERS = ("smallint", "integer", "bigint")
"""The narrower first."""
NO_FUNCTION = "No function matches the given name and argument types. You might need to add explicit type casts."
NO_OPERATOR = "No operator matches the given name and argument types. You might need to add explicit type casts."

_CASTS = frozenset({("D", "C"), ("T", "C"), ("C", "T"), ("J", "N"), ("J", "B"), ("N", "B"), ("B", "N")})
"""Between categories, beside those from and to text."""
_PERIODS = {"T", "C"}
"""A time of day is an interval beside one."""
_SUMS: dict[type[exp.Expr], str] = {
    exp.Add: "NN DT TD DN ND DC CD TT CT TC CC", exp.Sub: "NN DD DT DN TT CT CC TC DC", exp.Mul: "NN NT TN NC CN",
    exp.Div: "NN TN CN",
}  # fmt: skip
"""By arithmetic operator the categories of operands that it may have."""
_ARRAY = "A"
_FLOATS = ("real", "double precision")
_BITWISE = (exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseLeftShift, exp.BitwiseRightShift)
TypeOf = Callable[[exp.Expr], str | None]


def has_cast(kind: str, target: str) -> bool:
    """Whether PostgreSQL has a cast between the types; True where one of them is none that is told apart."""
    source, wanted = (_ARRAY if name.endswith("]") else CATEGORIES.get(name) for name in (kind, target))
    if source is None or wanted is None or source == wanted or "S" in (source, wanted):
        return True
    if {source, wanted} == {"N", "B"}:
        return "integer" in (kind, target)
    return (source, wanted) in _CASTS and (kind, wanted) != ("date", "C")


class PositionOf(Protocol):
    """The position of an expression, or of its operator."""

    def __call__(self, node: exp.Expr, *, operator: bool = False) -> int | None: ...


# --- what is checked ------------------------------------------------------------------------------------------------
def operands(node: exp.Expr) -> Iterator[exp.Expr]:
    """The operands that a node is judged by, where all of them are certain; none where it is not judged."""
    parts: list[exp.Expr] = []
    if isinstance(node, (*COMPARISONS, *_PATTERNS, exp.Mod, *_BITWISE)):
        parts = [node.args["this"], node.args["expression"]]
    elif isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div):
        leaves = not any(isinstance(part.unnest(), (*_ARITHMETIC, exp.Div)) for part in (node.left, node.right))
        parts = [node.left, node.right] if leaves else []
    elif isinstance(node, exp.DPipe):  # of a chain the innermost: all others have a text
        parts = [] if isinstance(node.left.unnest(), exp.DPipe) else [node.left, node.right]
    elif isinstance(node, exp.Cast):
        parts = [node.this]
    else:
        parts = alike(node)[: _LIST_MAX + 1] if isinstance(node, exp.In) else alike(node)
    conditions = [condition for condition, _ in _conditions(node)]
    if parts and not all(map(is_certain, parts)):
        parts = []
    yield from (*parts, *filter(is_certain, conditions))


def alike(node: exp.Expr) -> list[exp.Expr]:
    """The parts of a node that are to be of one type."""
    if isinstance(node, exp.Between):
        return [node.this, node.args["low"], node.args["high"]]
    if isinstance(node, exp.In) and not node.args.get("query") and not node.args.get("unnest"):
        return [node.this, *node.expressions]
    if isinstance(node, exp.Case):
        return _results(node)
    if isinstance(node, exp.Coalesce | exp.Greatest | exp.Least):
        return [node.this, *node.expressions]
    return list(node.expressions) if isinstance(node, exp.Array) else []


_LIST_MAX = 32  # items of an IN list that are looked at: a longer one is of one kind


def _conditions(node: exp.Expr) -> Iterator[tuple[exp.Expr, str]]:
    """What must be boolean, and what it is called."""
    if isinstance(node, exp.Where | exp.Having):
        yield node.this, type(node).__name__.upper()
    elif isinstance(node, exp.And | exp.Or):
        yield from ((part, type(node).__name__.upper()) for part in (node.left, node.right))
    elif isinstance(node, exp.Not):
        yield node.this, "NOT"
    elif isinstance(node, exp.Join) and node.args.get("on") is not None:
        yield node.args["on"], "JOIN/ON"
    elif isinstance(node, exp.Case) and node.this is None:
        yield from ((branch.this, "CASE/WHEN") for branch in node.args["ifs"])


def _results(case: exp.Case) -> list[exp.Expr]:
    """ELSE first, as PostgreSQL compares them."""
    default = case.args.get("default")
    return [*([] if default is None else [default]), *(branch.args["true"] for branch in case.args["ifs"])]


def check(node: exp.Expr, type_of: TypeOf, place: PositionOf) -> None:
    for condition, what in _conditions(node):
        kind = type_of(condition)
        if kind in CATEGORIES and kind != "boolean":
            raise SqlError(
                sqlstates.DATATYPE_MISMATCH,
                f"argument of {what} must be type boolean, not type {kind}",
                position=place(condition),
            )
    if isinstance(node, COMPARISONS):
        _check_compared(node, node.left, node.right, SYMBOLS[type(node)][0], type_of, place)
    elif isinstance(node, exp.Between):
        _check_compared(node, node.this, node.args["low"], ">=", type_of, place)
        _check_compared(node, node.this, node.args["high"], "<=", type_of, place)
    elif isinstance(node, exp.In):
        for item in node.expressions[:_LIST_MAX]:
            _check_compared(node, node.this, item, "=", type_of, place)
    elif isinstance(node, exp.Like | exp.ILike | exp.RegexpLike | exp.RegexpILike):
        _check_pattern(node, type_of, place)
    elif isinstance(node, exp.Case):
        check_alike("CASE", _results(node), type_of, place)
    elif isinstance(node, exp.Coalesce | exp.Greatest | exp.Least):
        check_alike(type(node).__name__.upper(), [node.this, *node.expressions], type_of, place)
    elif isinstance(node, exp.Array):
        check_alike("ARRAY", node.expressions, type_of, place)
    elif isinstance(node, (exp.Mod, exp.DPipe, exp.Add, exp.Sub, exp.Mul, exp.Div, *_BITWISE)):
        _check_operator(node, type_of, place)


def _check_operator(node: exp.Binary, type_of: TypeOf, place: PositionOf) -> None:
    """Remainders of whole and exact numbers, bits of whole numbers, and joins with a text: DuckDB has more."""
    kinds = [type_of(node.left), type_of(node.right)]
    categories = [CATEGORIES.get(kind or "") for kind in kinds]
    if isinstance(node, exp.DPipe):
        known = None not in categories and "S" not in categories
        wrong = known and categories not in (["U", "U"], ["J", "J"])
    elif isinstance(node, exp.Mod):
        wrong = any(kind in _FLOATS for kind in kinds)
    elif not isinstance(node, _BITWISE):
        wrong = None not in categories and "".join(map(str, categories)) not in _SUMS[type(node)]
    else:
        wrong = any(category not in (None, "N") for category in categories)
        wrong = wrong or any(kind in ("numeric", *_FLOATS) for kind in kinds)
        wrong = wrong or (isinstance(node, exp.BitwiseLeftShift | exp.BitwiseRightShift) and kinds[1] == "bigint")
    if not wrong:
        return
    shown = [kind or "unknown" for kind in kinds]
    called = node.meta.get(CALLED)
    if called is not None:
        raise SqlError(
            sqlstates.UNDEFINED_FUNCTION,
            f"function {called[0]}({', '.join(shown)}) does not exist",
            hint=NO_FUNCTION,
            position=called[2] + 1,
        )
    raise no_operator(f" {SYMBOLS[type(node)][0]} ".join(shown), place(node, operator=True))


def _check_compared(
    node: exp.Expr, left: exp.Expr, right: exp.Expr, symbol: str, type_of: TypeOf, place: PositionOf
) -> None:
    kinds = type_of(left), type_of(right)
    categories = [CATEGORIES.get(kind or "") for kind in kinds]
    if set(categories) == _PERIODS:
        node.meta[PERIODS] = True  # DuckDB binds ``=`` of them and cannot run it
    elif None not in categories and categories[0] != categories[1]:
        raise no_operator(f"{kinds[0]} {symbol} {kinds[1]}", place(node, operator=True))


def _check_pattern(node: exp.Expr, type_of: TypeOf, place: PositionOf) -> None:
    symbol = _PATTERNS[type(node)]
    kinds = type_of(node.this), type_of(node.expression)
    if any(kind in CATEGORIES and kind != "text" for kind in kinds):
        negated = "!" if isinstance(node.parent, exp.Not) else ""
        raise no_operator(
            f"{kinds[0] or 'unknown'} {negated}{symbol} {kinds[1] or 'unknown'}", place(node, operator=True)
        )


def check_alike(what: str, parts: Sequence[exp.Expr], type_of: TypeOf, place: PositionOf) -> None:
    """As PostgreSQL chooses a common type: the first that is known decides, and the others must be of its category."""
    first: str | None = None
    for part in parts:
        kind = type_of(part)
        if kind not in CATEGORIES:
            continue
        if first is None:
            first = kind
        elif CATEGORIES[first] != CATEGORIES[kind]:
            raise SqlError(
                sqlstates.DATATYPE_MISMATCH,
                f"{what} types {first} and {kind} cannot be matched",
                position=place(part),
            )


def no_operator(what: str, position: int | None, hint: str = NO_OPERATOR) -> SqlError:
    return SqlError(sqlstates.UNDEFINED_FUNCTION, f"operator does not exist: {what}", hint=hint, position=position)


_CERTAIN = (
    exp.Column, exp.Literal, exp.Boolean, exp.Null, exp.Parameter, exp.Cast, exp.Count, exp.Interval, exp.Array,
)  # fmt: skip


# --- certainty ------------------------------------------------------------------------------------------------------
def is_certain(node: exp.Expr) -> bool:
    """Whether DuckDB's type of it is PostgreSQL's, or it has none yet."""
    if isinstance(node, _ARITHMETIC):
        return all(is_certain(part) for part in node.iter_expressions())
    if isinstance(node, _OF_ARGUMENT):
        return is_certain(node.this)
    return isinstance(node, _CERTAIN) and not node.is_star


def needs_binding(node: exp.Expr) -> bool:
    return not isinstance(node.unnest(), exp.Literal | exp.Boolean | exp.Null | exp.Parameter)


def number(text: str) -> str:
    if not text.isdigit():
        return "numeric"
    value = int(text)
    return "integer" if value < 2**31 else "bigint" if value < 2**63 else "numeric"


def first_select(query: exp.Expr) -> exp.Select | None:
    """The branch whose columns name and type those of a query of sets."""
    bare = query.unnest()
    while isinstance(bare, exp.SetOperation):
        bare = bare.left.unnest()
    return bare if isinstance(bare, exp.Select) else None
