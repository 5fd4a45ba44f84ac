"""Reads expressions: the operators of the dialect, calls, CASE and CAST, with bounds on depth and length."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from mvserver import limits, sqlstates
from mvserver.lenses.cursor import Cursor
from mvserver.lenses.lexer import TokenKind
from mvserver.lenses.problems import Place, problem, syntax, unsupported
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

RESERVED = frozenset(
    {
        "select", "from", "where", "group", "by", "as", "join", "inner", "left", "right", "outer", "full", "on",
        "within", "lateral", "window", "eventtime", "grace", "and", "or", "not", "in", "like", "is", "null", "case",
        "when", "then", "else", "end", "insert", "into", "with", "set", "store", "having", "order", "limit", "union",
    }
)  # fmt: skip
_SPANS = {
    "y": "YEAR", "M": "MONTH", "w": "WEEK", "d": "DAY", "h": "HOUR", "m": "MINUTE", "s": "SECOND"
}  # fmt: skip
_SPAN = re.compile(r"([0-9]{1,9})([yMwdhms])")
_COMPARISONS = ("=", "==", "!=", "<>", "<=", ">=", "<", ">")


class Expressions:
    """``dashed`` are the names with dashes that the statement reads from: they may stand before a field."""

    def __init__(self, cursor: Cursor, dashed: Sequence[str]) -> None:
        self._cursor = cursor
        self._dashed = sorted(dashed, key=len, reverse=True)
        self._depth = 0

    def expression(self) -> Expression:
        with self._deeper():
            return self._chain("or", lambda: self._chain("and", self._negation))

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        self._depth += 1
        try:
            if self._depth > limits.STATEMENT_DEPTH_MAX:
                raise problem(
                    self._cursor.current.place,
                    sqlstates.STATEMENT_TOO_COMPLEX,
                    f"brackets, calls and CASEs nest more than {limits.STATEMENT_DEPTH_MAX} deep",
                    "Compute parts of it in a WITH.",
                )
            yield
        finally:
            self._depth -= 1

    def _long(self, length: int, place: Place) -> None:
        if length > limits.STATEMENT_CHAIN_MAX:
            raise problem(
                place,
                sqlstates.STATEMENT_TOO_COMPLEX,
                f"a chain of operators has more than {limits.STATEMENT_CHAIN_MAX} operands",
                "Use IN, or compute parts of it in a WITH.",
            )

    def _chain(self, word: str, operand: Callable[[], Expression]) -> Expression:
        place = self._cursor.current.place
        operands = [operand()]
        while self._cursor.accept_word(word):
            operands.append(operand())
            self._long(len(operands), place)
        return operands[0] if len(operands) == 1 else Chain(word.upper(), tuple(operands), place)

    def _negation(self) -> Expression:
        place = self._cursor.current.place
        if self._cursor.accept_word("not"):
            with self._deeper():
                return Unary("NOT", self._negation(), place)
        return self._comparison()

    def _comparison(self) -> Expression:
        cursor = self._cursor
        left = self._sum()
        place = cursor.current.place
        if cursor.current.kind is TokenKind.OPERATOR and cursor.current.text in _COMPARISONS:
            operator = {"==": "=", "!=": "<>"}.get(cursor.current.text, cursor.current.text)
            cursor.advance()
            return Binary(operator, left, self._sum(), place)
        if cursor.accept_word("is"):
            negated = cursor.accept_word("not")
            cursor.expect_word("null")
            return IsNull(left, negated, place)
        negated = cursor.at_word("not", "like") or cursor.at_word("not", "in")
        if negated:
            cursor.advance()
        if cursor.accept_word("like"):
            return Binary("NOT LIKE" if negated else "LIKE", left, self._sum(), place)
        if cursor.accept_word("in"):
            cursor.expect_operator("(")
            return InList(left, self._list(), negated, place)
        return left

    def _list(self) -> tuple[Expression, ...]:
        """Up to the closing bracket."""
        items = [self.expression()]
        while self._cursor.accept_operator(","):
            items.append(self.expression())
        self._cursor.expect_operator(")")
        return tuple(items)

    def _sum(self) -> Expression:
        return self._binary(("+", "-", "||"), lambda: self._binary(("*", "/", "%"), self._signed))

    def _binary(self, operators: Sequence[str], operand: Callable[[], Expression]) -> Expression:
        cursor, place, length = self._cursor, self._cursor.current.place, 1
        left = operand()
        while cursor.current.kind is TokenKind.OPERATOR and cursor.current.text in operators:
            at = cursor.current.place
            operator = cursor.advance().text
            left = Binary(operator, left, operand(), at)
            length += 1
            self._long(length, place)
        return left

    def _signed(self) -> Expression:
        place = self._cursor.current.place
        if self._cursor.accept_operator("-"):
            with self._deeper():
                return Unary("-", self._signed(), place)
        if self._cursor.accept_operator("+"):
            with self._deeper():
                return self._signed()
        return self._primary()

    def _primary(self) -> Expression:
        cursor, token = self._cursor, self._cursor.current
        if token.kind is TokenKind.STRING:
            return Literal("string", cursor.advance().text, token.place)
        if token.kind is TokenKind.NUMBER:
            return Literal("number", cursor.advance().text, token.place)
        if token.kind is TokenKind.DURATION:
            return self._span()
        if cursor.accept_operator("("):
            inner = self.expression()
            cursor.expect_operator(")")
            return inner
        if token.kind is TokenKind.NAME:
            return self.selection()
        if token.kind is not TokenKind.WORD:
            raise cursor.unexpected("An expression is expected")
        if token.word in ("true", "false"):
            return Literal("boolean", cursor.advance().text.upper(), token.place)
        if token.word == "null":
            cursor.advance()
            return Literal("null", "NULL", token.place)
        if token.word == "case":
            return self._case()
        called = cursor.peek().kind is TokenKind.OPERATOR and cursor.peek().text == "("
        if called and token.word not in RESERVED:
            return self._call()
        return self.selection()

    def _span(self) -> Span:
        token = self._cursor.current
        found = _SPAN.fullmatch(token.text)
        if found is None:
            raise self._cursor.unexpected("A length of time is a number with y, M, w, d, h, m or s, as 1d")
        self._cursor.advance()
        return Span(int(found[1]), _SPANS[found[2]], token.place)

    def _call(self) -> Expression:
        cursor = self._cursor
        name = cursor.advance()
        cursor.advance()
        if name.word == "cast":
            operand = self.expression()
            cursor.expect_word("as")
            kind = self._type()
            cursor.expect_operator(")")
            return CastTo(operand, kind, name.place)
        if cursor.at_operator("*") and cursor.peek().text == ")":
            cursor.advance()
            cursor.advance()
            return Call(name.text.upper(), (), True, name.place)
        if cursor.at_word("distinct"):
            raise unsupported(
                cursor.current.place, f"{name.text.upper()}(DISTINCT ...) is not supported",
                "COLLECT_UNIQUE, MAXK_UNIQUE and MINK_UNIQUE are of different values: SIZEOF(COLLECT_UNIQUE(x)) counts "
                "them.",
            )  # fmt: skip
        arguments = () if cursor.accept_operator(")") else self._list()
        return Call(name.text.upper(), arguments, False, name.place, name.text)

    def _type(self) -> str:
        cursor = self._cursor
        if cursor.current.kind is not TokenKind.WORD:
            raise cursor.unexpected("A type is expected")
        name = cursor.advance().text.upper()
        if not cursor.accept_operator("("):
            return name
        numbers: list[str] = []
        while True:
            number = cursor.advance()
            if number.kind is not TokenKind.NUMBER:
                raise syntax(number.place, "a type's length is a number")
            numbers.append(number.text)
            if cursor.accept_operator(")"):
                return f"{name}({', '.join(numbers)})"
            cursor.expect_operator(",")

    def _case(self) -> Expression:
        cursor = self._cursor
        place = cursor.advance().place
        operand = None if cursor.at_word("when") else self.expression()
        branches = []
        while cursor.accept_word("when"):
            condition = self.expression()
            cursor.expect_word("then")
            branches.append((condition, self.expression()))
        if not branches:
            raise cursor.unexpected("WHEN is expected")
        otherwise = self.expression() if cursor.accept_word("else") else None
        cursor.expect_word("end")
        return Case(operand, tuple(branches), otherwise, place)

    # --- selections -------------------------------------------------------------------------------------------------
    def selection(self) -> Selection:
        cursor, place = self._cursor, self._cursor.current.place
        parts = [self._first_part()]
        while cursor.at_operator("."):
            if cursor.peek().text == "*":
                break  # a wildcard, which its reader takes
            cursor.advance()
            parts.append(self._part())
        if len(parts) > limits.STATEMENT_DEPTH_MAX:
            raise problem(place, sqlstates.STATEMENT_TOO_COMPLEX, "a selection has too many parts")
        return Selection(tuple(parts), place)

    def _first_part(self) -> str:
        """A name with dashes that FROM has is one part; else a dash is a minus."""
        cursor = self._cursor
        for name in self._dashed:
            start = cursor.current.place.offset
            if cursor.text.startswith(name + ".", start):
                while cursor.current.place.offset < start + len(name):
                    cursor.advance()
                return name
        return self._part(first=True)

    def _part(self, *, first: bool = False) -> str:
        token = self._cursor.current
        if token.kind is TokenKind.NAME:
            if not token.text:
                raise syntax(token.place, "a name in back-quotes is empty")
            return self._cursor.advance().text
        if token.kind is TokenKind.WORD and not (first and token.word in RESERVED):
            return self._cursor.advance().text
        raise self._cursor.unexpected("A field is expected")
