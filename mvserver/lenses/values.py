"""Expressions as text of the first dialect. Texts are VARCHAR there, so nothing is converted unless CAST says so."""

from __future__ import annotations

from mvserver import sqlstates
from mvserver.lenses.functions import called, cast_type, instant, is_aggregate, may_be_own
from mvserver.lenses.metadata import HEADER_FUNCTIONS, HEADERS
from mvserver.lenses.problems import problem
from mvserver.lenses.program import (
    Binary,
    Call,
    Case,
    CastTo,
    Chain,
    Expression,
    InList,
    IsNull,
    Literal,
    Selection,
    Span,
    Unary,
)
from mvserver.lenses.rows import META
from mvserver.lenses.scope import Scope
from mvserver.lenses.walking import children
from mvserver.lenses.written import Written, joined, written
from mvserver.quoting import constant


def expression(node: Expression, scope: Scope, *, aggregates: bool = False) -> Written:
    """``aggregates``: whether aggregates may stand here."""
    return _Translator(scope, aggregates).text(node)


def aggregates_in(node: Expression) -> bool:
    """Whether an aggregate is called anywhere in it."""
    if isinstance(node, Call) and is_aggregate(node):
        return True
    return any(map(aggregates_in, children(node)))


def may_aggregate(node: Expression) -> bool:
    """Whether an aggregate, or what may be one of a user's own, is called anywhere in it."""
    if isinstance(node, Call) and (is_aggregate(node) or may_be_own(node)):
        return True
    return any(map(may_aggregate, children(node)))


class _Translator:
    def __init__(self, scope: Scope, aggregates: bool) -> None:
        self._scope = scope
        self._aggregates = aggregates
        self._inside = False  # of an aggregate

    def text(self, node: Expression) -> Written:
        """The whole dispatch: each kind of node has its own words."""
        match node:
            case Literal():
                return self.literal(node)
            case Selection():
                return self._scope.text(node)
            case Call():
                return self.call(node)
            case CastTo():
                return self.cast(node)
            case Chain():
                return self.chain(node)
            case Binary():
                return self.binary(node)
            case Unary():
                return self.unary(node)
            case IsNull():
                return self.is_null(node)
            case InList():
                return self.in_list(node)
            case Case():
                return self.case(node)
            case Span():
                return written(node.place, f"INTERVAL '{node.amount} {node.unit}'")

    def literal(self, node: Literal) -> Written:
        return written(node.place, f"CAST({constant(node.text)} AS VARCHAR)" if node.kind == "string" else node.text)

    def call(self, node: Call) -> Written:
        if node.name == "UUID" and not node.arguments and not node.star:
            return self._uuid(node)
        if node.name == "HEADERKEYS" and not node.arguments and not node.star:
            return self._scope.text(Selection((META, HEADERS), node.place))
        if node.name in HEADER_FUNCTIONS and len(node.arguments) == 1:
            header, type_ = self._header(node, node.arguments[0]), HEADER_FUNCTIONS[node.name]
            return header if type_ is None else written(node.place, "CAST(", header, f" AS {type_})")
        if not is_aggregate(node):
            return called(node, lambda index: self.text(node.arguments[index]))
        if not self._aggregates or self._inside:
            where = "inside of another aggregate" if self._inside else "here"
            raise problem(
                node.place, sqlstates.GROUPING_ERROR, f"aggregate {node.name} is not allowed {where}",
                "Give the SELECT with GROUP BY a name with WITH, and let what reads it compute with the aggregate.",
            )  # fmt: skip
        self._inside = True
        try:
            return called(node, lambda index: self.text(node.arguments[index]))
        finally:
            self._inside = False

    def _uuid(self, node: Call) -> Written:
        """Of the record's place and of the call's own, so that it is the same whenever the record is read."""
        topic, partition, offset = (
            self._scope.text(Selection((META, each), node.place)) for each in ("topic", "partition", "offset")
        )
        result = written(
            node.place, "regexp_replace(md5(concat(", topic, ", ' ', ", partition, ", ' ', ", offset,
            f", ' {node.place.offset}')), ",
        )  # fmt: skip
        return result.add(r"'^(.{8})(.{4}).(.{3}).(.{3})(.{12})$', '\1-\2-3\3-8\4-\5')")

    def _header(self, node: Call, name: Expression) -> Written:
        if not isinstance(name, Literal) or name.kind != "string":
            raise problem(
                node.place, sqlstates.INVALID_PARAMETER_VALUE, "the name of a header is a text",
                f"Write it in quotes: {node.name}('name').",
            )  # fmt: skip
        return self._scope.text(Selection((META, HEADERS, name.text), node.place))

    def cast(self, node: CastTo) -> Written:
        kind = cast_type(node)
        if isinstance(node.operand, Literal) and node.operand.kind == "string":
            return written(node.place, f"CAST({constant(node.operand.text)} AS {kind})")
        return written(node.place, "CAST(", self.text(node.operand), f" AS {kind})")

    def chain(self, node: Chain) -> Written:
        parts = [self.text(operand) for operand in node.operands]
        return written("(", joined(f" {node.operator} ", parts), ")")

    def binary(self, node: Binary) -> Written:
        left, operator, right = node.left, node.operator, node.right
        if operator.endswith("LIKE") and isinstance(right, Literal) and right.kind == "string":
            return written("(", self.text(left), node.place, f" {operator} ", right.place, constant(right.text), ")")
        sides = [self.text(side) for side in (left, right)]
        if isinstance(left, Span) or isinstance(right, Span):  # what a length of time is added to is a moment
            sides = [instant(side, text) for side, text in zip((left, right), sides, strict=True)]
        return written("(", sides[0], node.place, f" {operator} ", sides[1], ")")

    def unary(self, node: Unary) -> Written:
        return written("(", node.place, f"{node.operator} ", self.text(node.operand), ")")

    def is_null(self, node: IsNull) -> Written:
        return written("(", self.text(node.operand), node.place, f" IS {'NOT ' if node.negated else ''}NULL)")

    def in_list(self, node: InList) -> Written:
        items = joined(", ", [self.text(item) for item in node.items])
        return written("(", self.text(node.operand), node.place, f" {'NOT ' if node.negated else ''}IN (", items, "))")

    def case(self, node: Case) -> Written:
        result = written(node.place, "CASE")
        if node.operand is not None:
            result.add(" ", self.text(node.operand))
        for condition, value in node.branches:
            result.add(" WHEN ", self.text(condition), " THEN ", self.text(value))
        if node.otherwise is not None:
            result.add(" ELSE ", self.text(node.otherwise))
        return result.add(" END")
