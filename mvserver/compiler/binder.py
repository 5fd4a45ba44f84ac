"""Trees to typed expressions: names become columns, calls become entries of the capability table.

The tree is the closed set of nodes that ``mvserver.sql.dialect`` documents. A node that is not bound here is refused by
name; nothing is passed on unread. Aggregate calls are handed to ``aggregate`` (the analyzer's), or refused in the
words that PostgreSQL has for the clause at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import reduce

from sqlglot import exp

from mvserver import sqlstates
from mvserver.compiler import patterns
from mvserver.compiler.aggregates import AGGREGATES, AggregateText
from mvserver.compiler.capabilities.lookup import call_function, call_operator
from mvserver.compiler.capabilities.refused import needs_constant, refusal
from mvserver.compiler.casts import check_cast
from mvserver.compiler.coercion import coerce, common_type, common_type_of
from mvserver.compiler.expressions import (
    AggregateReference,
    Case,
    Cast,
    ColumnReference,
    Expression,
    FieldAccess,
    KeyReference,
    Literal,
    walk,
)
from mvserver.compiler.intervals import parse_interval
from mvserver.compiler.literals import is_unknown, number_literal, typed_literal
from mvserver.compiler.own_functions import call_own, is_built_in, own_aggregate
from mvserver.compiler.row_functions import ROW_FUNCTIONS
from mvserver.compiler.scope import Scope, field
from mvserver.compiler.target_types import cast_target
from mvserver.compiler.type_names import postgres_name
from mvserver.compiler.unsettled import drawn_call
from mvserver.errors import SqlError
from mvserver.sql import types as t
from mvserver.sql.calls import FUNCTIONS_HINT
from mvserver.sql.names import OWN_FUNCTION
from mvserver.sql.nodes import position_of
from mvserver.sql.types import Kind, SqlType
from mvserver.types.intervals import unit_of

Aggregator = Callable[[AggregateText], Expression]
"""An aggregate call → what stands for it."""

GroupingCall = Callable[[Sequence[Expression], int | None], Expression]
"""The arguments of GROUPING and its position → what stands for it."""

_BINARY: Mapping[type[exp.Expression], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.Pow: "^",
    exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "#",
    exp.BitwiseLeftShift: "<<", exp.BitwiseRightShift: ">>",
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.NullSafeEQ: "is not distinct from", exp.NullSafeNEQ: "is distinct from",
    exp.DPipe: "||", exp.JSONExtract: "->", exp.JSONExtractScalar: "->>",
}  # fmt: skip


class Binder:
    """Binds the expressions of one SELECT. ``clause`` names where they stand, for errors."""

    def __init__(
        self,
        scope: Scope,
        clause: str,
        aggregate: Aggregator | None = None,
        grouping: GroupingCall | None = None,
        *,
        of_rows: bool = False,
    ) -> None:
        """``of_rows``: whether what is bound is computed of a row as it is, and of nothing that is kept."""
        self._scope = scope
        self._clause = clause
        self._aggregate = aggregate
        self._grouping = grouping
        self._of_rows = of_rows
        self._inside_aggregate = False
        self.column_positions: dict[Expression, int | None] = {}

    def bind(self, node: exp.Expression) -> Expression:
        handler = _HANDLERS.get(type(node))
        if handler is not None:
            return handler(self, node)
        sign = _BINARY.get(type(node))
        if sign is not None:
            return call_operator(sign, (self.bind(node.this), self.bind(node.expression)), position_of(node))
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"{type(node).__name__} is not supported in a continuous query",
            hint=FUNCTIONS_HINT,
            position=position_of(node),
        )

    def condition(self, node: exp.Expression, where: str) -> Expression:
        """A boolean expression; 42804 in PostgreSQL's words otherwise."""
        bound = self.bind(node)
        if is_unknown(bound) or bound.type.kind is Kind.BOOLEAN:
            return coerce(bound, t.BOOLEAN, position_of(node))
        raise SqlError(
            sqlstates.DATATYPE_MISMATCH,
            f"argument of {where} must be type boolean, not type {postgres_name(bound.type)}",
            position=position_of(node),
        )

    # --- names and constants ----------------------------------------------------------------------------------------
    def _column(self, node: exp.Expression) -> Expression:
        if isinstance(node.this, exp.Star):
            raise SqlError(sqlstates.SYNTAX_ERROR, "* is not allowed here", position=position_of(node))
        parts = [str(part.this) for part in node.parts]  # type: ignore[attr-defined]
        bound = self._scope.resolve(parts, position_of(node))
        root: Expression = bound
        self.column_positions.setdefault(root, position_of(node))
        while isinstance(root, FieldAccess):
            root = root.operand
            self.column_positions.setdefault(root, position_of(node))
        return bound

    def _dot(self, node: exp.Expression) -> Expression:
        if isinstance(node.expression, exp.Anonymous):
            place = node.this
            return self._qualified_call(node, [*(str(each.this) for each in place.parts), str(node.expression.this)])
        return field(self.bind(node.this), str(node.expression.this), position_of(node))

    def _literal(self, node: exp.Expression) -> Expression:
        if node.is_string:
            return Literal(t.NULL, str(node.this))
        try:
            return number_literal(str(node.this))
        except SqlError as error:
            error.position = position_of(node)
            raise

    def _null(self, node: exp.Expression) -> Expression:
        return Literal(t.NULL, None)

    def _boolean(self, node: exp.Expression) -> Expression:
        return Literal(t.BOOLEAN, bool(node.this))

    def _hexadecimal(self, node: exp.Expression) -> Expression:
        return Literal(t.VARBINARY, bytes.fromhex(str(node.this)))

    def _interval(self, node: exp.Expression) -> Expression:
        unit = node.args.get("unit")
        position = position_of(node)
        word = str(unit.this).split(" ")[-1] if unit is not None else None
        if word is not None and unit_of(word) is None:
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f"interval unit {word} is not supported",
                hint="Units are MICROSECOND, MILLISECOND, SECOND, MINUTE, HOUR, DAY, WEEK, MONTH and YEAR.",
                position=position,
            )
        try:
            return Literal(t.INTERVAL, parse_interval(str(node.this.this), unit_of(word) if word else "second"))
        except SqlError as error:
            error.position = position
            raise

    def _star(self, node: exp.Expression) -> Expression:
        raise SqlError(sqlstates.SYNTAX_ERROR, "* is not allowed here", position=position_of(node))

    # --- operators --------------------------------------------------------------------------------------------------
    def _negative(self, node: exp.Expression) -> Expression:
        operand = self.bind(node.this)
        if isinstance(operand, Literal) and operand.type.is_numeric and operand.value is not None:
            value = operand.value
            if isinstance(value, Decimal) and value:  # minus would round to the digits of Python's context
                return Literal(operand.type, value.copy_negate())
            return Literal(operand.type, -value)  # type: ignore[operator]
        return call_operator("-", (operand,), position_of(node))

    def _bit_not(self, node: exp.Expression) -> Expression:
        return call_operator("prefix ~", (self.bind(node.this),), position_of(node))

    def _connective(self, node: exp.Expression) -> Expression:
        word = "AND" if isinstance(node, exp.And) else "OR"
        sides = (self.condition(node.this, word), self.condition(node.expression, word))
        return call_operator(word.lower(), sides, position_of(node))

    def _not(self, node: exp.Expression) -> Expression:
        if isinstance(node.this, exp.Is):
            return self._is_test(node.this, negated=True)
        return call_operator("not", (self.condition(node.this, "NOT"),), position_of(node))

    def _is(self, node: exp.Expression) -> Expression:
        return self._is_test(node, negated=False)

    def _is_test(self, node: exp.Expression, *, negated: bool) -> Expression:
        right = node.expression
        middle = "not " if negated else ""
        if isinstance(right, exp.Null):
            return call_operator(f"is {middle}null", (self.bind(node.this),), position_of(node))
        if isinstance(right, exp.Boolean):
            word = "true" if right.this else "false"
            where = f"IS {middle}{word}".upper()
            return call_operator(f"is {middle}{word}", (self.condition(node.this, where),), position_of(node))
        where = f"IS {middle}unknown".upper()
        return call_operator(f"is {middle}null", (self.condition(node.this, where),), position_of(node))

    def _between(self, node: exp.Expression) -> Expression:
        subject, low, high = self.bind(node.this), self.bind(node.args["low"]), self.bind(node.args["high"])
        straight = _in_range(subject, low, high, position_of(node))
        if not node.args.get("symmetric"):
            return straight
        return call_operator("or", (straight, _in_range(subject, high, low, position_of(node))))

    def _in(self, node: exp.Expression) -> Expression:
        operands = [self.bind(node.this), *(self.bind(each) for each in node.expressions)]
        common = common_type_of(operands)
        if common is None:
            for other in operands[1:]:  # name the pair that does not compare
                call_operator("=", (operands[0], other), position_of(node))
        if _mixes_precisions(operands):
            return _among(operands[0], operands[1:], position_of(node))
        return call_operator("in", operands, position_of(node))

    def _like(self, node: exp.Expression) -> Expression:
        escape: str | None = None
        like = node
        if isinstance(node, exp.Escape):
            like = node.this
            given = self.bind(node.expression)
            if not isinstance(given, Literal) or not isinstance(given.value, str):
                raise needs_constant("ESCAPE", position_of(node))
            escape = given.value
        subject, pattern = self.bind(like.this), self.bind(like.expression)
        return patterns.match(_LIKES[type(like)], subject, pattern, escape, position_of(like))

    def _bracket(self, node: exp.Expression) -> Expression:
        subject = self.bind(node.this)
        if len(node.expressions) != 1 or isinstance(node.expressions[0], exp.Slice):
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                "array slices are not supported",
                hint="Select the elements one by one.",
                position=position_of(node),
            )
        if subject.type.kind not in (Kind.ARRAY, Kind.MAP):
            raise SqlError(
                sqlstates.DATATYPE_MISMATCH,
                f"cannot subscript type {postgres_name(subject.type)} because it does not support subscripting",
                position=position_of(node),
            )
        index = self.bind(node.expressions[0])
        wanted = subject.type.key if subject.type.kind is Kind.MAP else t.INTEGER
        if wanted is not None:
            index = self._implicitly(index, wanted, position_of(node))
        return call_operator("[]", (subject, index), position_of(node))

    def _implicitly(self, node: Expression, target: SqlType, position: int | None) -> Expression:
        if is_unknown(node) or common_type([node.type, target]) == target:
            return coerce(node, target, position)
        raise SqlError(
            sqlstates.DATATYPE_MISMATCH,
            f"subscript must have type {postgres_name(target)}, not {postgres_name(node.type)}",
            position=position,
        )

    def _zone(self, node: exp.Expression) -> Expression:
        return call_function("timezone", (self.bind(node.args["zone"]), self.bind(node.this)), position_of(node))

    # --- casts, CASE, ARRAY -----------------------------------------------------------------------------------------
    def _cast(self, node: exp.Expression) -> Expression:
        position = position_of(node)
        safe = isinstance(node, exp.TryCast)
        operand = self.bind(node.this)
        target = cast_target(node, operand)
        if isinstance(operand, Literal) and is_unknown(operand):
            try:
                return typed_literal(operand, target, position)
            except SqlError:
                if safe:
                    return Literal(target, None)
                raise
        check_cast(operand.type, target, position)
        return operand if operand.type == target else Cast(target, operand, safe)

    def _case(self, node: exp.Expression) -> Expression:
        subject = self.bind(node.this) if node.this is not None else None
        branches: list[tuple[Expression, Expression]] = []
        for branch in node.args["ifs"]:
            if subject is None:
                test = self.condition(branch.this, "CASE/WHEN")
            else:
                test = call_operator("=", (subject, self.bind(branch.this)), position_of(branch))
            branches.append((test, self.bind(branch.args["true"])))
        default = node.args.get("default")
        otherwise = self.bind(default) if default is not None else None
        results = [value for _, value in branches] + ([otherwise] if otherwise is not None else [])
        common = self._common(results, "CASE", position_of(node))
        return Case(
            common,
            tuple((test, coerce(value, common, position_of(node))) for test, value in branches),
            coerce(otherwise, common, position_of(node)) if otherwise is not None else None,
        )

    def _array(self, node: exp.Expression) -> Expression:
        elements = [self.bind(each) for each in node.expressions]
        if not elements:
            raise SqlError(
                sqlstates.INDETERMINATE_DATATYPE, "cannot determine type of empty array", position=position_of(node)
            )
        self._common(elements, "ARRAY", position_of(node))
        return call_function("array", elements, position_of(node))

    def _common(self, nodes: Sequence[Expression], what: str, position: int | None) -> SqlType:
        common = common_type_of(nodes)
        if common is None:
            known = [each.type for each in nodes if each.type.kind is not Kind.NULL]
            first = known[0]
            other = next(each for each in known if common_type([first, each]) is None)
            raise SqlError(
                sqlstates.DATATYPE_MISMATCH,
                f"{what} types {postgres_name(first)} and {postgres_name(other)} cannot be matched",
                position=position,
            )
        return common

    # --- calls ------------------------------------------------------------------------------------------------------
    def _call(self, node: exp.Expression) -> Expression:
        name = str(node.this)
        if name in AGGREGATES:
            return self._aggregate_call(node, None)
        position = position_of(node)
        if name in ROW_FUNCTIONS and not node.expressions:
            bound = self._scope.row_function(name, position)
            self.column_positions.setdefault(bound, position)
            return bound
        if name == "grouping":
            return self._grouping_call(node, position)
        aggregate = own_aggregate(node)
        if aggregate is not None:
            return self._aggregate_call(node, None, aggregate)
        for argument in node.expressions:
            if isinstance(argument, exp.Distinct):
                raise SqlError(
                    sqlstates.WRONG_OBJECT_TYPE,
                    f"DISTINCT specified, but {name} is not an aggregate function",
                    position=position,
                )
            if isinstance(argument, exp.Star):
                raise SqlError(
                    sqlstates.WRONG_OBJECT_TYPE,
                    f"{name}(*) specified, but {name} is not an aggregate function",
                    position=position,
                )
        if name == "row":
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                "ROW values are not supported in a continuous query",
                hint="List the fields as columns of their own.",
                position=position,
            )
        arguments = [self.bind(each) for each in node.expressions]
        own = None if is_built_in(name) else call_own((name,), arguments, position)
        own = own or drawn_call(name, arguments, position, of_rows=self._of_rows)
        return call_function(name, arguments, position) if own is None else own

    def _qualified_call(self, node: exp.Expression, parts: list[str]) -> Expression:
        call = node.expression
        position = position_of(call)
        aggregate = own_aggregate(node)
        if aggregate is not None:
            return self._aggregate_call(call, None, aggregate)
        found = call_own(parts, [self.bind(each) for each in call.expressions], position)
        if found is None:
            raise SqlError(
                sqlstates.UNDEFINED_FUNCTION,
                f"function {'.'.join(part for part in parts if part != OWN_FUNCTION)} does not exist",
                hint="LIST FUNCTIONS shows the functions of one's own. Their names are compared with regard to case.",
                position=position,
            )
        return found

    def _grouping_call(self, node: exp.Expression, position: int | None) -> Expression:
        if self._grouping is None:
            raise SqlError(
                sqlstates.GROUPING_ERROR,
                f"grouping operations are not allowed in {self._clause}",
                position=position,
            )
        return self._grouping([Binder(self._scope, self._clause).bind(each) for each in node.expressions], position)

    def _filter(self, node: exp.Expression) -> Expression:
        call = node.this.this if isinstance(node.this, exp.WithinGroup) else node.this
        aggregate = own_aggregate(call)
        if aggregate is not None:
            return self._aggregate_call(_called(node.this), node.expression.this, aggregate)
        if not isinstance(call, exp.Anonymous) or str(call.this) not in AGGREGATES:
            name = _name_of(call)
            raise refusal(name, position_of(node)) or SqlError(
                sqlstates.WRONG_OBJECT_TYPE,
                f"FILTER specified, but {name} is not an aggregate function",
                position=position_of(node),
            )
        return self._aggregate_call(node.this, node.expression.this)

    def _within_group(self, node: exp.Expression) -> Expression:
        aggregate = own_aggregate(node.this)
        if aggregate is not None:
            return self._aggregate_call(node, None, aggregate)
        call = node.this
        name = _name_of(call)
        if not isinstance(call, exp.Anonymous) or name not in AGGREGATES:
            raise refusal(name, position_of(node)) or SqlError(
                sqlstates.WRONG_OBJECT_TYPE,
                f"WITHIN GROUP specified, but {name} is not an aggregate function",
                position=position_of(node),
            )
        return self._aggregate_call(node, None)

    def _aggregate_call(
        self, node: exp.Expression, where: exp.Expression | None, path: tuple[str, ...] = ()
    ) -> Expression:
        """``node`` is the call, or WITHIN GROUP over it; ``path`` the name of a user's own."""
        call = _called(node.this) if isinstance(node, exp.WithinGroup) else node
        name, position = str(call.this), position_of(call)
        if self._inside_aggregate:
            raise SqlError(sqlstates.GROUPING_ERROR, "aggregate function calls cannot be nested", position=position)
        if self._aggregate is None:
            raise SqlError(
                sqlstates.GROUPING_ERROR,
                f"aggregate functions are not allowed in {self._clause}",
                position=position,
            )
        condition = Binder(self._scope, "FILTER").condition(where, "FILTER") if where is not None else None
        arguments, distinct = self._aggregate_arguments(call)
        order = list(node.expression.expressions) if isinstance(node, exp.WithinGroup) else None
        return self._aggregate(
            AggregateText(
                name,
                arguments,
                condition,
                distinct=distinct,
                order=None if order is None else tuple(self._inside(each.this) for each in order),
                descending=bool(order and order[0].args.get("desc")),
                position=position,
                path=path,
            )
        )

    def _aggregate_arguments(self, call: exp.Expression) -> tuple[tuple[Expression, ...] | None, bool]:
        """None for ``*``; whether DISTINCT is before them."""
        given = list(call.expressions)
        if len(given) == 1 and isinstance(given[0], exp.Star):
            return None, False
        distinct = len(given) == 1 and isinstance(given[0], exp.Distinct)
        if distinct:
            given = list(given[0].expressions)
        return tuple(self._inside(each) for each in given), distinct

    def _inside(self, node: exp.Expression) -> Expression:
        """What stands inside an aggregate call."""
        inner = Binder(self._scope, self._clause, self._aggregate)
        inner._inside_aggregate = True
        return inner.bind(node)


_OF_ROWS = (ColumnReference, KeyReference, AggregateReference)


def _is_of_rows(node: Expression) -> bool:
    return any(isinstance(part, _OF_ROWS) for part in walk(node))


def _mixes_precisions(operands: Sequence[Expression]) -> bool:
    """Whether binary and other numbers meet, so that it matters which of them are compared with each other."""
    kinds = {each.type.kind for each in operands if each.type.is_numeric}
    return len(kinds) > 1 and any(each.type.is_approximate for each in operands)


def _in_range(subject: Expression, low: Expression, high: Expression, position: int | None) -> Expression:
    if not _mixes_precisions((subject, low, high)):
        return call_operator("between", (subject, low, high), position)
    bounds = (call_operator(">=", (subject, low), position), call_operator("<=", (subject, high), position))
    return call_operator("and", bounds, position)


def _among(subject: Expression, others: Sequence[Expression], position: int | None) -> Expression:
    """IN as PostgreSQL reads it: several constants are a list of one type, anything else is compared by itself."""
    listed = [each for each in others if not _is_of_rows(each)]
    alone: Sequence[Expression] = [each for each in others if _is_of_rows(each)]
    if len(listed) < 2:
        listed, alone = [], others
    tests = [call_operator("in", (subject, *listed), position)] if listed else []
    tests += [call_operator("=", (subject, each), position) for each in alone]
    return reduce(lambda one, other: call_operator("or", (one, other), position), tests)


def _called(node: exp.Expression) -> exp.Expression:
    """A call without the schema before its name."""
    return node.expression if isinstance(node, exp.Dot) else node


def _name_of(call: exp.Expression) -> str:
    call = _called(call)
    return str(call.this) if isinstance(call, exp.Anonymous) else type(call).__name__.lower()


_LIKES: Mapping[type[exp.Expression], str] = {
    exp.Like: "like",
    exp.ILike: "ilike",
    exp.SimilarTo: "similar to",
    exp.RegexpLike: "~",
    exp.RegexpILike: "~*",
}

_HANDLERS: Mapping[type[exp.Expression], Callable[[Binder, exp.Expression], Expression]] = {
    exp.Column: Binder._column,
    exp.Dot: Binder._dot,
    exp.Literal: Binder._literal,
    exp.Null: Binder._null,
    exp.Boolean: Binder._boolean,
    exp.HexString: Binder._hexadecimal,
    exp.Interval: Binder._interval,
    exp.Star: Binder._star,
    exp.Neg: Binder._negative,
    exp.BitwiseNot: Binder._bit_not,
    exp.And: Binder._connective,
    exp.Or: Binder._connective,
    exp.Not: Binder._not,
    exp.Is: Binder._is,
    exp.Between: Binder._between,
    exp.In: Binder._in,
    exp.Escape: Binder._like,
    exp.Bracket: Binder._bracket,
    exp.AtTimeZone: Binder._zone,
    exp.Cast: Binder._cast,
    exp.TryCast: Binder._cast,
    exp.Case: Binder._case,
    exp.Array: Binder._array,
    exp.Anonymous: Binder._call,
    exp.Filter: Binder._filter,
    exp.WithinGroup: Binder._within_group,
    **dict.fromkeys(_LIKES, Binder._like),
}
