"""Which expressions may be NULL, and where one is used that the original would refuse.

A field is never NULL where its declaration says so, as are the keys of a TABLE; WHERE and CASE may rule NULL out. An
outer join takes that away. What is told of an operand is not told again of what is made of it.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from mvserver import sqlstates
from mvserver.lenses import metadata
from mvserver.lenses.functions import Nulls, function_of, is_aggregate
from mvserver.lenses.problems import Place, Problem, ProblemError
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

_HINT = "Use COALESCE or AS_NON_NULLABLE, or leave NULL out: WHERE ... IS NOT NULL."
_ALWAYS_THERE = tuple((META, field) for field in metadata.FIELDS)


class Null(enum.Enum):
    NEVER = "never"
    MAYBE = "maybe"
    TOLD = "maybe, which is told already"


class Nullability:
    """Of the expressions of one SELECT, which are all known to be right. ``findings`` grow as they are looked at."""

    def __init__(self, scope: Scope, where: Expression | None = None) -> None:
        self._scope = scope
        columns = {scope.reference(alias, name) for alias, rows in scope.sources for name in rows.not_null}
        self._known = columns | self._ruled_out(where, truth=True)
        self.findings: list[Problem] = []

    def condition(self, where: Expression | None) -> None:
        if where is not None and self.of(where) is Null.MAYBE:
            self._find(where.place, "WHERE")

    def never(self, text: str) -> bool:
        """Of what names a column."""
        return text in self._known

    def of(self, node: Expression) -> Null:
        match node:
            case Span():
                return Null.NEVER
            case Literal():
                return Null.MAYBE if node.kind == "null" else Null.NEVER
            case Selection():
                return self._selection(node)
            case Call():
                return self._call(node)
            case CastTo():
                return self.of(node.operand)
            case IsNull():
                self.of(node.operand)
                return Null.NEVER
            case Case():
                return self._case(node)
            case Chain():
                return self._strict(node.operator, node.operands)
            case Binary():
                return self._strict(node.operator, (node.left, node.right), node.place)
            case Unary():
                return self._strict(node.operator, (node.operand,), node.place)
            case InList():
                return self._strict("NOT IN" if node.negated else "IN", (node.operand, *node.items), node.place)

    # --- nodes ------------------------------------------------------------------------------------------------------
    def _selection(self, node: Selection) -> Null:
        if node.parts[-2:] in _ALWAYS_THERE and not self._scope.may_miss(node):
            return Null.NEVER
        return Null.NEVER if self.never(self._scope.text(node).text) else Null.MAYBE

    def _call(self, node: Call) -> Null:
        found = function_of(node)
        if found is None:  # UUID and HEADERASSTRING are of the record
            return Null.NEVER if node.name == "UUID" else Null.MAYBE
        if found.nulls in (Nulls.STRICT, Nulls.MAYBE) and not is_aggregate(node):
            strict = self._strict(node.name, node.arguments, node.place)
            return Null.MAYBE if found.nulls is Nulls.MAYBE and strict is Null.NEVER else strict
        given = [self.of(argument) for argument in node.arguments]
        if found.nulls is Nulls.NEVER:
            return Null.NEVER
        if found.nulls is Nulls.ALWAYS:
            return Null.MAYBE
        if found.nulls is Nulls.FIRST:
            return _all(given)
        return _any(given)

    def _strict(self, name: str, operands: Sequence[Expression], place: Place | None = None) -> Null:
        given = [self.of(operand) for operand in operands]
        if Null.MAYBE not in given:
            return _any(given)
        self._find(place or operands[given.index(Null.MAYBE)].place, name)
        return Null.TOLD

    def _case(self, node: Case) -> Null:
        if node.operand is not None:
            self._strict("CASE", (node.operand, *(condition for condition, _ in node.branches)), node.place)
        found: list[Null] = []
        denied: set[str] = set()
        for condition, value in node.branches:
            ruled_out = set() if node.operand is not None else self._ruled_out(condition, truth=True)
            with self._knowing(denied | ruled_out):
                if node.operand is None and self.of(condition) is Null.MAYBE:
                    self._find(condition.place, "WHEN")
                found.append(self.of(value))
            if node.operand is None:
                denied |= self._ruled_out(condition, truth=False)
        with self._knowing(denied):
            found.append(Null.MAYBE if node.otherwise is None else self.of(node.otherwise))
        return _any(found)

    # --- what is known ----------------------------------------------------------------------------------------------
    @contextmanager
    def _knowing(self, texts: set[str]) -> Iterator[None]:
        before = self._known
        self._known = before | texts
        yield
        self._known = before

    def _ruled_out(self, condition: Expression | None, *, truth: bool) -> set[str]:
        """The columns that are not NULL where the condition is true, or false."""
        match condition:
            case Chain(operator, operands) if operator == ("AND" if truth else "OR"):
                return {text for each in operands for text in self._ruled_out(each, truth=truth)}
            case Unary("NOT", operand):
                return self._ruled_out(operand, truth=not truth)
            case IsNull(Selection() as named, negated) if negated is truth:
                return self._named(named)
            case Call("ISNOTNULL" | "EXISTS", (Selection() as named,)) if truth:
                return self._named(named)
            case Call("ISNULL", (Selection() as named,)) if not truth:
                return self._named(named)
        return set()

    def _named(self, selection: Selection) -> set[str]:
        """Nothing where WHERE is before a window, and names what is not there behind it."""
        try:
            return {self._scope.text(selection).text}
        except ProblemError:
            return set()

    def _find(self, place: Place, name: str) -> None:
        message = f"{name} is given a value that may be NULL"
        self.findings.append(Problem(place, sqlstates.NULL_VALUE_NOT_ALLOWED, message, _HINT))


def _any(given: Sequence[Null]) -> Null:
    return Null.MAYBE if Null.MAYBE in given else Null.TOLD if Null.TOLD in given else Null.NEVER


def _all(given: Sequence[Null]) -> Null:
    return Null.NEVER if Null.NEVER in given else _any(given)
