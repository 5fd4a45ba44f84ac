"""The types that change into others without being asked, and the type that several expressions share.

PostgreSQL's rules, with three additions for types it lacks: TINYINT widens as SMALLINT does, every DECIMAL has a
precision and scale (at most 38 digits), and nested types agree element by element.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

from mvserver.compiler.expressions import Cast, Expression, Literal
from mvserver.compiler.literals import decimal_type_of, fit_decimal, is_unknown, typed_literal
from mvserver.errors import SqlError
from mvserver.sql import types as t
from mvserver.sql.types import Kind, SqlType

INTEGER_ORDER = (Kind.TINYINT, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT)
INTEGER_DIGITS = {Kind.TINYINT: 3, Kind.SMALLINT: 5, Kind.INTEGER: 10, Kind.BIGINT: 20}
_DATETIME_ORDER = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_LTZ)
_UNKNOWN_COST = {
    Kind.VARCHAR: 0,
    Kind.DOUBLE: 1,
    Kind.TIMESTAMP_LTZ: 2,
    Kind.BOOLEAN: 3,
    Kind.INTERVAL: 3,
}


def decimal_of_integer(type_: SqlType) -> SqlType:
    """The DECIMAL that holds every value of an integer type."""
    return t.decimal(INTEGER_DIGITS[type_.kind], 0)


def implicit_cost(source: SqlType, target: Kind) -> int | None:
    """How far an argument of ``source`` is from a parameter of ``target``: 0 exact, None not implicitly."""
    kind = source.kind
    if kind is target:
        return 0
    if kind is Kind.NULL:
        return _UNKNOWN_COST.get(target, 5)
    if source.is_integer:
        if target in INTEGER_ORDER:
            steps = INTEGER_ORDER.index(target) - INTEGER_ORDER.index(kind)
            return steps if steps > 0 else None
        return {Kind.DOUBLE: 10, Kind.DECIMAL: 11}.get(target)
    if kind is Kind.DECIMAL:
        return 10 if target is Kind.DOUBLE else None
    if kind is Kind.FLOAT:
        return 1 if target is Kind.DOUBLE else None
    if kind in _DATETIME_ORDER and target in _DATETIME_ORDER:
        if _DATETIME_ORDER.index(kind) > _DATETIME_ORDER.index(target):
            return None
        return 1 if target is Kind.TIMESTAMP_LTZ else 2
    return None


def common_type(types: Sequence[SqlType]) -> SqlType | None:
    """The type that CASE, COALESCE, IN, comparisons and the like give their operands; None where there is none.

    Types that are not known yet are left out; when none is known the result is VARCHAR, as PostgreSQL's is text.
    """
    known = [type_ for type_ in types if type_.kind is not Kind.NULL]
    if not known:
        return t.VARCHAR
    result = known[0]
    for other in known[1:]:
        merged = _merge(result, other)
        if merged is None:
            return None
        result = merged
    return result


def _merge(left: SqlType, right: SqlType) -> SqlType | None:
    if left == right:
        return left
    if left.is_numeric and right.is_numeric:
        return _merge_numeric(left, right)
    if left.kind is Kind.VARCHAR and right.kind is Kind.VARCHAR:
        return t.VARCHAR
    if left.kind in _DATETIME_ORDER and right.kind in _DATETIME_ORDER:
        return SqlType(max(left.kind, right.kind, key=_DATETIME_ORDER.index))
    if left.kind is Kind.ARRAY and right.kind is Kind.ARRAY and left.element and right.element:
        element = _merge(left.element, right.element)
        return t.array(element) if element else None
    return None


def _merge_numeric(left: SqlType, right: SqlType) -> SqlType:
    kinds = (left.kind, right.kind)
    if Kind.DOUBLE in kinds:
        return t.DOUBLE
    if Kind.FLOAT in kinds:
        return t.FLOAT
    if Kind.DECIMAL in kinds:
        first, second = as_decimal(left), as_decimal(right)
        scale = max(first.scale or 0, second.scale or 0)
        whole = max((first.precision or 0) - (first.scale or 0), (second.precision or 0) - (second.scale or 0))
        return bounded_decimal(whole + scale, scale)
    return left if INTEGER_ORDER.index(left.kind) >= INTEGER_ORDER.index(right.kind) else right


def as_decimal(type_: SqlType) -> SqlType:
    return decimal_of_integer(type_) if type_.is_integer else type_


def bounded_decimal(precision: int, scale: int) -> SqlType:
    """DECIMAL(p, s) within 38 digits: digits before the point are kept first, but never fewer than 6 after it (or
    all there were). The rule that Spark, Flink and SQL Server share."""
    if precision <= t.DECIMAL_PRECISION_MAX:
        return t.decimal(precision, scale)
    whole = precision - scale
    kept = max(t.DECIMAL_PRECISION_MAX - whole, min(scale, 6))
    return t.decimal(t.DECIMAL_PRECISION_MAX, kept)


def coerce(node: Expression, target: SqlType, position: int | None = None) -> Expression:
    """The expression as ``target``: unchanged, a typed constant, or wrapped in a cast."""
    if node.type == target:
        return node
    if isinstance(node, Literal):
        if is_unknown(node):
            return typed_literal(node, target, position)
        folded = _fold(node, target)
        if folded is not None:
            return folded
    if node.type.kind is Kind.VARCHAR and target == t.VARCHAR:
        return node  # a length is a bound on values; dropping it changes none
    return Cast(target, node)


def _fold(node: Literal, target: SqlType) -> Literal | None:
    """Number constants take their type at once, so that lowered text stays short."""
    value = node.value
    if value is None:
        return Literal(target, None)
    if isinstance(value, bool) or not isinstance(value, int) or not node.type.is_integer:
        return None
    if target.is_integer and INTEGER_ORDER.index(target.kind) > INTEGER_ORDER.index(node.type.kind):
        return Literal(target, value)
    if target.kind is Kind.DECIMAL:
        return Literal(target, fit_decimal(Decimal(value), target))
    if target.kind is Kind.DOUBLE:
        return Literal(target, float(value))
    return None


def natural_decimal(node: Expression) -> SqlType:
    """The DECIMAL type an argument takes where a parameter is any DECIMAL: a text constant has the digits it shows."""
    if node.type.is_integer:
        return decimal_of_integer(node.type)
    if isinstance(node, Literal) and is_unknown(node):
        try:
            return decimal_type_of(Decimal(str(node.value).strip()))
        except (InvalidOperation, ValueError, SqlError):
            return t.decimal(38, 18)  # NULL, or text that will be refused when it is read
    return node.type


def common_type_of(nodes: Sequence[Expression]) -> SqlType | None:
    """As ``common_type``, where text constants keep all they say: digits beyond a scale, characters beyond a length."""
    common = common_type([node.type for node in nodes])
    texts = [node for node in nodes if is_unknown(node) and isinstance(node, Literal) and node.value is not None]
    if common is None or not texts:
        return common
    if common.kind is Kind.VARCHAR:
        return t.VARCHAR
    if common.kind is Kind.DECIMAL:
        return common_type([common, *(natural_decimal(node) for node in texts if _is_number(node))])
    return common


def _is_number(node: Expression) -> bool:
    try:
        return isinstance(node, Literal) and Decimal(str(node.value).strip()).is_finite()
    except InvalidOperation:
        return False
