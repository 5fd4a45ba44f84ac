"""Comparisons of rows, ``(a, b) = (c, d)``: by their fields, as SQL has it.

DuckDB compares rows as values of their own, for which two NULLs are equal and a row of NULLs is none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from mvserver import interrupts, sqlstates
from mvserver.dialect.typing.constant_operands import is_text
from mvserver.errors import SqlError

_COMPARED_ONE_BY_ONE_MAX = 16  # rows of an IN list; DuckDB finds one of more by its hash
_STRICT: dict[type[exp.Expr], type[exp.Binary]] = {exp.LT: exp.LT, exp.LTE: exp.LT, exp.GT: exp.GT, exp.GTE: exp.GT}
_CORRELATED = "IN/ANY/ALL with multiple columns"  # of DuckDB's message

Fields = list[exp.Expr]


def compared_rows(node: exp.Expr) -> exp.Expr | None:
    """What stands for the comparison; None where it is none of rows that are written out."""
    left = _fields(node.this)
    if left is None:
        return None
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
        return _are_null(left, negate=bool(node.args.get("negate")))
    if isinstance(node, exp.Between):
        low, high = _fields(node.args["low"]), _fields(node.args["high"])
        if low is None or high is None:
            return None
        return exp.Paren(this=exp.And(this=_compared(exp.GTE, left, low), expression=_compared(exp.LTE, left, high)))
    if isinstance(node, exp.In):
        return _listed(node, left)
    right = _fields(node.args.get("expression"))
    return _compared(type(node), left, right) if right is not None and type(node) in _COMPARISONS else None


_COMPARISONS: tuple[type[exp.Expr], ...] = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, *_STRICT)


def _fields(node: exp.Expr | None) -> Fields | None:
    bare = node.unnest() if node is not None else None
    named = isinstance(bare, exp.Anonymous) and bare.name.lower() == "row"
    return list(bare.expressions) if bare is not None and (named or isinstance(bare, exp.Tuple)) else None


def _compared(operator: type[exp.Expr], left: Fields, right: Fields) -> exp.Expr:
    if len(left) != len(right):
        raise SqlError(sqlstates.SYNTAX_ERROR, "unequal number of entries in row expressions")
    if not left:
        raise SqlError(sqlstates.FEATURE_NOT_SUPPORTED, "cannot compare rows of zero length")
    if operator in _STRICT:
        return exp.Paren(this=_ordered(operator, left, right))
    pairs = [operator(this=one.copy(), expression=other.copy()) for one, other in zip(left, right, strict=True)]
    return _joined(exp.And if operator in (exp.EQ, exp.NullSafeEQ) else exp.Or, pairs)


def _ordered(operator: type[exp.Expr], left: Fields, right: Fields) -> exp.Expr:
    """By the first fields that are not equal."""
    found: exp.Expr = operator(this=left[-1].copy(), expression=right[-1].copy())
    for one, other in zip(reversed(left[:-1]), reversed(right[:-1]), strict=True):
        equal = exp.And(this=exp.EQ(this=one.copy(), expression=other.copy()), expression=found)
        found = exp.Paren(
            this=exp.Or(this=_STRICT[operator](this=one.copy(), expression=other.copy()), expression=equal)
        )
    return found


def _are_null(fields: Fields, *, negate: bool) -> exp.Expr:
    tests = [exp.Is(this=field.copy(), expression=exp.Null(), negate=negate or None) for field in fields]
    return _joined(exp.And, tests) if tests else exp.Boolean(this=True)


def _listed(node: exp.In, left: Fields) -> exp.Expr | None:
    rows = [_fields(item) for item in node.expressions]
    known = [row for row in rows if row is not None]
    if node.args.get("query") or len(known) != len(rows) or not known:
        return None
    one_by_one = _joined(exp.Or, [_compared(exp.EQ, left, row) for row in known])
    constant = all(isinstance(field, exp.Literal) for row in known for field in row)
    if len(known) <= _COMPARED_ONE_BY_ONE_MAX or not constant:
        return one_by_one
    unknown = _joined(exp.Or, [exp.Is(this=field.copy(), expression=exp.Null()) for field in left])
    return exp.Paren(this=exp.Case(ifs=[exp.If(this=unknown, true=one_by_one)], default=node.copy()))


def compared_items(node: exp.Expr) -> exp.Expr | None:
    """``x = ANY (ARRAY[…])`` of a query with groups, item by item: DuckDB makes a query of the array, where aggregates
    and keys of groups are not those of the query around it. None for all other comparisons."""
    whole = node.args.get("expression") if isinstance(node, _COMPARISONS) else None
    array = whole.this.unnest() if isinstance(whole, exp.Any | exp.All) else None
    if not isinstance(array, exp.Array) or any(isinstance(item.unnest(), exp.Query) for item in array.expressions):
        return None
    select = node.find_ancestor(exp.Select)
    grouped = select is not None and select.args.get("group") is not None
    if not array.expressions or not (grouped or array.find(exp.AggFunc) is not None):
        return None
    items = [item.copy() for item in array.expressions]
    if all(is_text(item) for item in items):  # then it is an array of text; by itself each would take another type
        items = [exp.cast(item, "TEXT", dialect="duckdb") for item in items]
    tests = [exp.Paren(this=type(node)(this=node.this.copy(), expression=item)) for item in items]
    joined = _joined(exp.And if isinstance(whole, exp.All) else exp.Or, tests)
    # A key of a group is one thing, where DuckDB would make one chain of it and of the AND around it.
    return exp.Cast(this=joined, to=exp.DataType.build("BOOLEAN", dialect="duckdb"))


def is_correlated(failure: SqlError) -> bool:
    """Whether DuckDB refuses a membership whose query is correlated. It finds all others by a hash."""
    return _CORRELATED in failure.message


def compare_memberships(tree: exp.Expr) -> bool:
    """``(a, b) IN (SELECT …)``, in place, as an aggregate of comparisons: DuckDB has none whose query is correlated.
    True when there was one."""
    changed = False
    for node in interrupts.asking(reversed(list(tree.find_all(exp.In, exp.EQ)))):
        left, query = _fields(node.this), _query(node)
        if left is not None and query is not None:
            node.replace(_member(left, query))
            changed = True
    return changed


def _query(node: exp.Expr) -> exp.Expr | None:
    if isinstance(node, exp.In):
        found = node.args.get("query")
    else:
        found = node.expression.this if isinstance(node.expression, exp.Any) else None
    bare = found.unnest() if isinstance(found, exp.Expr) else None
    return bare if isinstance(bare, exp.Query) else None


def _member(left: Fields, query: exp.Expr) -> exp.Expr:
    """True where a row is equal; NULL where none is, and that is not known of one; else false."""
    names = [exp.to_identifier(f"_member{number}", quoted=True) for number in range(len(left))]
    equal = _compared(exp.EQ, left, [exp.column(name.copy()) for name in names])
    alias = exp.TableAlias(this=exp.to_identifier("_members", quoted=True), columns=names)
    each = exp.select(exp.alias_(equal, "_equal", quoted=True), copy=False)
    each = each.from_(exp.Subquery(this=query.copy(), alias=alias), copy=False)
    found = exp.column(exp.to_identifier("_equal", quoted=True))
    some, unknown = (exp.LogicalOr(this=test) for test in (found, exp.Is(this=found.copy(), expression=exp.Null())))
    verdict = exp.Case(
        ifs=[exp.If(this=some, true=exp.true()), exp.If(this=unknown, true=exp.null())], default=exp.false()
    )
    tests = exp.TableAlias(this=exp.to_identifier("_tests", quoted=True))
    return exp.Subquery(this=exp.select(verdict, copy=False).from_(exp.Subquery(this=each, alias=tests), copy=False))


def _joined(word: Callable[..., exp.Expr], parts: Sequence[exp.Expr]) -> exp.Expr:
    """In brackets, and no deeper than it must be: a list may be long."""
    if len(parts) == 1:
        return exp.Paren(this=parts[0])
    middle = len(parts) // 2
    return exp.Paren(this=word(this=_joined(word, parts[:middle]), expression=_joined(word, parts[middle:])))
