"""Expressions of continuous queries: PostgreSQL's operators and precedence, to the closed set of nodes of ``dialect``.

A precedence climber of its own rather than sqlglot's: functions stay what the user wrote, subscripts are not shifted,
non-associative operators are errors as in PostgreSQL, errors name PostgreSQL's token, and one level of brackets costs
four frames of Python's stack instead of twenty.
"""

from __future__ import annotations

from sqlglot import exp

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.sql import calls
from mvserver.sql.cursor import Cursor
from mvserver.sql.lexer import (
    BIT_STRING,
    END,
    HEX_STRING,
    IDENTIFIER,
    NUMBER,
    OPERATOR,
    PARAMETER,
    STRING,
    WORD,
    Token,
)
from mvserver.sql.names import NOT_A_NAME, RESERVED, label
from mvserver.sql.nodes import at
from mvserver.sql.typenames import at_type_literal, cast_type

# PostgreSQL 15's table of precedence, loosest first.
OR, AND, NOT, IS, COMPARE, RANGE, OTHER, ADD, MULTIPLY, POWER, ZONE, SIGN = range(1, 13)

_BINARY: dict[str, tuple[int, type[exp.Expression]]] = {
    "=": (COMPARE, exp.EQ), "<>": (COMPARE, exp.NEQ), "!=": (COMPARE, exp.NEQ),
    "<": (COMPARE, exp.LT), "<=": (COMPARE, exp.LTE), ">": (COMPARE, exp.GT), ">=": (COMPARE, exp.GTE),
    "||": (OTHER, exp.DPipe), "&": (OTHER, exp.BitwiseAnd), "|": (OTHER, exp.BitwiseOr), "#": (OTHER, exp.BitwiseXor),
    "<<": (OTHER, exp.BitwiseLeftShift), ">>": (OTHER, exp.BitwiseRightShift),
    "~": (OTHER, exp.RegexpLike), "~*": (OTHER, exp.RegexpILike), "~~": (OTHER, exp.Like), "~~*": (OTHER, exp.ILike),
    "+": (ADD, exp.Add), "-": (ADD, exp.Sub),
    "*": (MULTIPLY, exp.Mul), "/": (MULTIPLY, exp.Div), "%": (MULTIPLY, exp.Mod),
    "^": (POWER, exp.Pow),
}  # fmt: skip
_NEGATED: dict[str, type[exp.Expression]] = {
    "!~": exp.RegexpLike,
    "!~*": exp.RegexpILike,
    "!~~": exp.Like,
    "!~~*": exp.ILike,
}
_RANGE_WORDS = frozenset({"between", "in", "like", "ilike", "similar"})
_MATCHES: dict[str, type[exp.Expression]] = {"like": exp.Like, "ilike": exp.ILike, "similar": exp.SimilarTo}
_IS_WORDS = frozenset({"is", "isnull", "notnull"})
_BALANCE_FROM = 32  # shorter chains of AND and OR keep the shape of the text
_TYPE_WORDS = frozenset({"timestamp", "time", "double", "decimal", "numeric", "varchar", "character", "timestamp_ltz"})
_SUBQUERY_WORDS = frozenset({"select", "with", "values", "table"})
_UNITS = frozenset(
    {
        "microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year", "decade",
        "century", "millennium",
    }
)  # fmt: skip


class ExpressionParser:
    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor

    def expression(self, power: int = 0) -> exp.Expression:
        """Everything that binds tighter than ``power``."""
        cursor = self.cursor
        left = self._prefix()
        closed = 99  # the loosest operator that may not follow (non-associative ones do not chain)
        while True:
            token = cursor.current
            kind = token.kind
            if kind is END:
                return left
            if kind is OPERATOR:
                text = token.text
                found = _BINARY.get(text)
                if found is None:
                    if text in _NEGATED and power < OTHER:
                        left = self._negated_operator(left, token)
                        continue
                    return left
                binding, node = found
                if binding <= power:
                    return left
                if binding == COMPARE:
                    if closed == COMPARE:
                        raise cursor.syntax_error()
                    closed = COMPARE
                cursor.advance()
                if binding == COMPARE and cursor.at_any(calls.QUANTIFIERS) and cursor.peek().text == "(":
                    raise cursor.not_supported("ANY and ALL are not supported in continuous queries", hint=calls.USE_IN)
                left = at(node(this=left, expression=self.expression(binding)), token)
            elif kind is WORD:
                text = token.text
                if text == "and":
                    if power >= AND:
                        return left
                    left = self._chain(left, "and", AND, exp.And)
                elif text == "or":
                    if power >= OR:
                        return left
                    left = self._chain(left, "or", OR, exp.Or)
                elif text in _RANGE_WORDS or (text == "not" and cursor.peek().text in _RANGE_WORDS):
                    if power >= RANGE:
                        return left
                    if closed == RANGE:
                        raise cursor.syntax_error()
                    closed = RANGE
                    left = self._range(left)
                elif text in _IS_WORDS:
                    if power >= IS:
                        return left
                    if closed == IS:
                        raise cursor.syntax_error()
                    closed = IS
                    left = self._is(left)
                elif text == "at" and cursor.at_word("at", "time", "zone"):
                    if power >= ZONE:
                        return left
                    cursor.expect_word("at", "time", "zone")
                    left = at(exp.AtTimeZone(this=left, zone=self.expression(ZONE)), token)
                elif text == "collate":
                    raise cursor.not_supported(
                        "COLLATE is not supported in continuous queries",
                        hint="Text is compared by its code points; LOWER(text) compares without regard to case.",
                    )
                elif text == "overlaps":
                    raise cursor.not_supported(
                        "OVERLAPS is not supported in continuous queries",
                        hint="Compare the bounds: start1 < end2 AND start2 < end1.",
                    )
                else:
                    return left
            else:
                return left

    # --- binary -----------------------------------------------------------------------------------------------------
    def _chain(self, first: exp.Expression, word: str, power: int, node: type[exp.Expression]) -> exp.Expression:
        """``a AND b AND c``: balanced when long, so that its depth is the logarithm of its length."""
        cursor = self.cursor
        operands = [first]
        operators: list[Token] = []
        while cursor.at_word(word):
            operators.append(cursor.advance())
            operands.append(self.expression(power))
        if len(operands) < _BALANCE_FROM:
            left = operands[0]
            for token, right in zip(operators, operands[1:], strict=True):
                left = at(node(this=left, expression=right), token)
            return left
        while len(operands) > 1:
            paired = [
                at(node(this=operands[i], expression=operands[i + 1]), operators[0])
                for i in range(0, len(operands) - 1, 2)
            ]
            if len(operands) % 2:
                paired.append(operands[-1])
            operands = paired
        return operands[0]

    def _negated_operator(self, left: exp.Expression, token: Token) -> exp.Expression:
        self.cursor.advance()
        inner = at(_NEGATED[token.text](this=left, expression=self.expression(OTHER)), token)
        return at(exp.Not(this=inner), token)

    def _range(self, left: exp.Expression) -> exp.Expression:
        cursor = self.cursor
        negated = cursor.accept_word("not")
        token = cursor.advance()
        word = token.text
        result: exp.Expression
        if word == "between":
            symmetric = cursor.accept_word("symmetric")
            if not symmetric:
                cursor.accept_word("asymmetric")
            low = self.expression(RANGE)
            cursor.expect_word("and")
            result = exp.Between(this=left, low=low, high=self.expression(RANGE), symmetric=symmetric or None)
        elif word == "in":
            result = self._in(left)
        else:
            if word == "similar":
                cursor.expect_word("to")
            if cursor.at_any(calls.QUANTIFIERS):
                raise cursor.not_supported(
                    f"{word.upper()} ANY and {word.upper()} ALL are not supported in continuous queries",
                    hint="Write the patterns as a chain of ORs or ANDs, or as one regular expression with ~.",
                )
            result = at(_MATCHES[word](this=left, expression=self.expression(RANGE)), token)
            if cursor.accept_word("escape"):
                escape = cursor.current
                if escape.kind is not STRING:
                    raise cursor.syntax_error()
                cursor.advance()
                result = exp.Escape(this=result, expression=at(exp.Literal.string(escape.text), escape))
        at(result, token)
        return at(exp.Not(this=result), token) if negated else result

    def _in(self, left: exp.Expression) -> exp.In:
        cursor = self.cursor
        cursor.expect_operator("(")
        self._refuse_subquery()
        items: list[exp.Expression] = []
        while True:
            token = cursor.current
            following = cursor.peek().text
            if (token.kind is NUMBER or token.kind is STRING) and (following == "," or following == ")"):
                cursor.advance()  # the fast way through lists of a hundred thousand literals
                items.append(exp.Literal(this=token.text, is_string=token.kind is STRING))
            else:
                items.append(self.expression())
            if cursor.accept_operator(")"):
                return exp.In(this=left, expressions=items)
            cursor.expect_operator(",")

    def _is(self, left: exp.Expression) -> exp.Expression:
        cursor = self.cursor
        token = cursor.advance()
        if token.text != "is":
            found = at(exp.Is(this=left, expression=exp.Null()), token)
            return at(exp.Not(this=found), token) if token.text == "notnull" else found
        negated = cursor.accept_word("not")
        if cursor.accept_word("distinct", "from"):
            node: type[exp.Expression] = exp.NullSafeEQ if negated else exp.NullSafeNEQ
            return at(node(this=left, expression=self.expression(IS)), token)
        word = cursor.expect_any("null", "true", "false", "unknown", "json", "document", "normalized")
        operand: exp.Expression
        if word == "null":
            operand = exp.Null()
        elif word == "unknown":
            operand = exp.Var(this="UNKNOWN")
        elif word in ("true", "false"):
            operand = exp.Boolean(this=word == "true")
        else:
            raise cursor.not_supported(
                f"IS {word.upper()} is not supported in continuous queries",
                hint="IS takes NULL, TRUE, FALSE, UNKNOWN and DISTINCT FROM.",
                token=token,
            )
        result = at(exp.Is(this=left, expression=operand), token)
        return at(exp.Not(this=result), token) if negated else result

    # --- prefix and primary -----------------------------------------------------------------------------------------
    def _prefix(self) -> exp.Expression:
        cursor = self.cursor
        token = cursor.current
        if token.kind is WORD and token.text == "not":
            cursor.advance()
            return at(exp.Not(this=self.expression(NOT)), token)
        if token.kind is OPERATOR:
            if token.text == "-":
                cursor.advance()
                return at(exp.Neg(this=self.expression(SIGN)), token)
            if token.text == "+":
                cursor.advance()
                return self.expression(SIGN)
            if token.text == "~":
                cursor.advance()
                return at(exp.BitwiseNot(this=self.expression(OTHER)), token)
        return self._postfix(self._primary())

    def _postfix(self, left: exp.Expression) -> exp.Expression:
        cursor = self.cursor
        while cursor.current.kind is OPERATOR:
            token = cursor.current
            if token.text == "::":
                cursor.advance()
                left = at(exp.Cast(this=left, to=cast_type(cursor)), token)
            elif token.text == "[":
                cursor.advance()
                if cursor.at_operator(":"):
                    raise cursor.not_supported(
                        "array slices are not supported in continuous queries", hint="Select the elements one by one."
                    )
                index = self.expression()
                if cursor.at_operator(":"):
                    raise cursor.not_supported(
                        "array slices are not supported in continuous queries", hint="Select the elements one by one."
                    )
                cursor.expect_operator("]")
                left = at(exp.Bracket(this=left, expressions=[index]), token)
            elif token.text == "->":
                cursor.advance()
                left = self._arrow(left, token)
            elif token.text == "->>":
                cursor.advance()
                left = at(exp.JSONExtractScalar(this=left, expression=self._json_key()), token)
            elif token.text == "." and not isinstance(left, exp.Literal):
                cursor.advance()
                if cursor.at_operator("*"):
                    raise cursor.not_supported(
                        "expanding a struct with .* is not supported", hint="Name its fields, as in a->b."
                    )
                name_token = cursor.current
                field = at(exp.Identifier(this=label(cursor), quoted=name_token.kind is IDENTIFIER), name_token)
                left = at(exp.Dot(this=left, expression=field), token)
            else:
                break
        return left

    def _arrow(self, left: exp.Expression, arrow: Token) -> exp.Expression:
        cursor = self.cursor
        token = cursor.current
        if token.kind is WORD or token.kind is IDENTIFIER:
            cursor.advance()
            field = at(exp.Identifier(this=token.text, quoted=token.kind is IDENTIFIER), token)
            return at(exp.Dot(this=left, expression=field), arrow)
        return at(exp.JSONExtract(this=left, expression=self._json_key()), arrow)

    def _json_key(self) -> exp.Expression:
        token = self.cursor.current
        if token.kind is not STRING and token.kind is not NUMBER:
            raise self.cursor.syntax_error()
        self.cursor.advance()
        return at(exp.Literal(this=token.text, is_string=token.kind is STRING), token)

    def _primary(self) -> exp.Expression:
        cursor = self.cursor
        token = cursor.current
        kind = token.kind
        if kind is NUMBER or kind is STRING:
            cursor.advance()
            return at(exp.Literal(this=token.text, is_string=kind is STRING), token)
        if kind is WORD:
            return self._word(token)
        if kind is IDENTIFIER:
            return self.name()
        if kind is OPERATOR and token.text == "(":
            return self._parenthesised(token)
        if kind is PARAMETER:
            raise SqlError(
                sqlstates.UNDEFINED_PARAMETER,
                f"there is no parameter ${token.text}",
                hint="A continuous query is stored with its definition, so it cannot take parameters.",
                position=token.position,
            )
        if kind is HEX_STRING:
            cursor.advance()
            if len(token.text) % 2:
                raise SqlError(
                    sqlstates.INVALID_TEXT_REPRESENTATION,
                    "invalid hexadecimal data: odd number of digits",
                    position=token.position,
                )
            return at(exp.HexString(this=token.text), token)
        if kind is BIT_STRING:
            raise cursor.not_supported("bit strings are not supported", hint="Write a number, or a text.")
        raise cursor.syntax_error()

    def _parenthesised(self, token: Token) -> exp.Expression:
        cursor = self.cursor
        cursor.advance()
        self._refuse_subquery()
        first = self.expression()
        if cursor.accept_operator(")"):
            return first
        items = [first]
        while cursor.accept_operator(","):
            items.append(self.expression())
        cursor.expect_operator(")")
        row = at(exp.Anonymous(this="row", expressions=items), token)
        row.meta["parenthesised"] = True
        return row

    def _refuse_subquery(self) -> None:
        if self.cursor.at_any(_SUBQUERY_WORDS) and (
            self.cursor.current.text != "table" or self.cursor.peek().kind in (WORD, IDENTIFIER)
        ):
            raise self.cursor.not_supported(
                "sub-queries in expressions are not supported in continuous queries",
                hint="Join the relations, or compute the inner query as a view of its own.",
            )

    def _word(self, token: Token) -> exp.Expression:
        cursor = self.cursor
        word = token.text
        following = cursor.peek()
        if word == "null":
            cursor.advance()
            return at(exp.Null(), token)
        if word in ("true", "false"):
            cursor.advance()
            return at(exp.Boolean(this=word == "true"), token)
        if word == "case":
            return self._case()
        if word == "interval":
            interval = self.interval()
            if interval is not None:
                return interval
        if word in calls.WITHOUT_BRACKETS:
            return calls.without_brackets(self, token)
        if following.kind is STRING and word not in RESERVED:
            return self._typed_literal(token)
        if word in _TYPE_WORDS and following.text in ("(", "with", "without", "precision") and at_type_literal(cursor):
            return self._typed_literal(token)
        if following.kind is OPERATOR:
            if following.text == "(":
                return calls.call(self, token)
            if following.text == "[" and word in ("array", "map"):
                cursor.advance()
                cursor.advance()
                items = self.list_until("]")
                if word == "array":
                    return at(exp.Array(expressions=items), token)
                return at(exp.Anonymous(this="map", expressions=items), token)
        if word in NOT_A_NAME:
            raise cursor.syntax_error()
        return self.name()

    def _typed_literal(self, token: Token) -> exp.Expression:
        target = cast_type(self.cursor)
        text = self.cursor.current
        if text.kind is not STRING:
            raise self.cursor.syntax_error()
        self.cursor.advance()
        literal = at(exp.Literal.string(text.text), text)
        cast = at(exp.Cast(this=literal, to=target), token)
        cast.meta["typed_literal"] = True
        return cast

    def name(self) -> exp.Expression:
        """A column, dotted; ``pg_catalog.lower(x)`` is a call."""
        cursor = self.cursor
        tokens = [cursor.advance()]
        while cursor.at_operator("."):
            following = cursor.peek()
            if following.kind is not WORD and following.kind is not IDENTIFIER:
                break
            cursor.advance()
            tokens.append(cursor.advance())
        if cursor.at_operator("("):
            return calls.qualified_call(self, tokens)
        parts = [at(exp.Identifier(this=token.text, quoted=token.kind is IDENTIFIER), token) for token in tokens]
        leading = parts[:4]
        arguments = dict(zip(("this", "table", "db", "catalog"), reversed(leading), strict=False))
        column: exp.Expression = at(exp.Column(**arguments), tokens[0])
        for part, token in zip(parts[4:], tokens[4:], strict=True):
            column = at(exp.Dot(this=column, expression=part), token)
        return column

    def _case(self) -> exp.Expression:
        cursor = self.cursor
        start = cursor.advance()
        operand = None if cursor.at_word("when") else self.expression()
        branches: list[exp.If] = []
        while True:
            when = cursor.current
            cursor.expect_word("when")
            condition = self.expression()
            cursor.expect_word("then")
            branches.append(at(exp.If(this=condition, true=self.expression()), when))
            if not cursor.at_word("when"):
                break
        otherwise = self.expression() if cursor.accept_word("else") else None
        cursor.expect_word("end")
        return at(exp.Case(this=operand, ifs=branches, default=otherwise), start)

    def interval(self) -> exp.Interval | None:
        """``INTERVAL '...' [unit [TO unit]]`` or ``INTERVAL n unit``; None when the word is a column's name."""
        cursor = self.cursor
        token = cursor.current
        following = cursor.peek()
        if following.kind is not STRING and following.kind is not NUMBER:
            return None
        cursor.advance()
        value = cursor.advance()
        unit = self.unit()
        if unit is not None and cursor.accept_word("to"):
            upper = self.unit()
            if upper is None:
                raise cursor.syntax_error()
            unit = f"{unit} TO {upper}"
        if unit is None and value.kind is NUMBER:
            raise cursor.syntax_error()
        literal = at(exp.Literal.string(value.text), value)
        return at(exp.Interval(this=literal, unit=exp.Var(this=unit) if unit else None), token)

    def unit(self) -> str | None:
        """A unit of time, singular and upper-case, or None when none follows."""
        token = self.cursor.current
        if token.kind is not WORD:
            return None
        word = token.text if token.text in _UNITS else token.text.removesuffix("s")
        if word not in _UNITS:
            return None
        self.cursor.advance()
        return word.upper()

    def list_until(self, closing: str) -> list[exp.Expression]:
        """A comma list, perhaps empty, and the bracket that closes it."""
        cursor = self.cursor
        if cursor.accept_operator(closing):
            return []
        items = [self.expression()]
        while cursor.accept_operator(","):
            items.append(self.expression())
        cursor.expect_operator(closing)
        return items
