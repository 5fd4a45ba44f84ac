"""Function calls of continuous queries, and the special forms that become calls.

Every call is ``exp.Anonymous``: which functions exist and what they mean is the capability table's business, so the
parser neither knows nor renames any. Only forms with a grammar of their own are listed here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from sqlglot import exp

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.sql.cursor import Cursor
from mvserver.sql.lexer import IDENTIFIER, NUMBER, STRING, WORD, Token
from mvserver.sql.names import RESERVED
from mvserver.sql.nodes import at, data_type
from mvserver.sql.typenames import cast_type, type_name

WITHOUT_BRACKETS = frozenset(
    {
        "current_date", "current_time", "current_timestamp", "localtime", "localtimestamp", "current_user",
        "session_user", "user", "current_role", "current_catalog", "current_schema",
    }
)  # fmt: skip
_WITH_PRECISION = frozenset({"current_time", "current_timestamp", "localtime", "localtimestamp"})
QUANTIFIERS = frozenset({"any", "all", "some"})
USE_IN = "Use IN with a list of values."
FUNCTIONS_HINT = "The functions of continuous queries are listed in docs/sql/functions.md."
_OPERATOR_LEVEL = 7  # above IN and the comparisons: POSITION(a IN b)


class Expressions(Protocol):
    """The reader of expressions that calls and windows stand among."""

    @property
    def cursor(self) -> Cursor: ...

    def expression(self, power: int = 0) -> exp.Expression:
        """The next expression, as far as operators bind more strongly than ``power``."""

    def unit(self) -> str | None:
        """A unit of time, singular and upper-case, or None when none follows."""


def without_brackets(parser: Expressions, token: Token) -> exp.Expression:
    """CURRENT_TIMESTAMP and its like, which are functions without brackets."""
    cursor = parser.cursor
    cursor.advance()
    arguments: list[exp.Expression] = []
    if cursor.at_operator("("):
        if token.text == "current_schema":
            cursor.advance()
            cursor.expect_operator(")")
        elif token.text in _WITH_PRECISION:
            cursor.advance()
            precision = cursor.current
            if precision.kind is not NUMBER:
                raise cursor.syntax_error()
            cursor.expect_integer()
            cursor.expect_operator(")")
            arguments.append(at(exp.Literal.number(precision.text), precision))
        else:
            raise cursor.syntax_error()
    return at(exp.Anonymous(this=token.text, expressions=arguments), token)


def qualified_call(parser: Expressions, tokens: list[Token]) -> exp.Expression:
    """A call whose name has a schema: pg_catalog, or one that has functions of users."""
    if len(tokens) == 1:
        return call(parser, tokens[0], read_name=False)
    schema = ".".join(token.text for token in tokens[:-1])
    found = call(parser, tokens[-1], read_name=False)
    if schema == "pg_catalog":
        return found
    inner = found
    while isinstance(inner, exp.Filter | exp.WithinGroup):
        inner = inner.this
    if not isinstance(inner, exp.Anonymous) or len(tokens) > 3:
        raise SqlError(sqlstates.INVALID_SCHEMA_NAME, f'schema "{schema}" does not exist', position=tokens[0].position)
    names = [at(exp.to_identifier(token.text), token) for token in tokens[:-1]]
    place = exp.Column(this=names[-1], table=names[0] if len(names) > 1 else None)
    around = inner.parent
    qualified = at(exp.Dot(this=place, expression=inner), tokens[0])
    if around is None:
        return qualified
    around.set("this", qualified)
    return found


def call(parser: Expressions, token: Token, *, read_name: bool = True) -> exp.Expression:
    """``name(...)`` with what may follow the bracket; the cursor is at the name, or at the bracket."""
    cursor = parser.cursor
    word = token.text if token.kind is WORD else ""
    if word in RESERVED and word not in ("cast", "array", "any", "all", "some"):
        raise cursor.syntax_error(token)
    if read_name:
        cursor.advance()
    cursor.expect_operator("(")
    special = _SPECIAL.get(word)
    if special is not None:
        return _followed(parser, special(parser, token), token)
    result = at(exp.Anonymous(this=token.text, expressions=_arguments(parser)), token)
    return _followed(parser, result, token)


def _arguments(parser: Expressions) -> list[exp.Expression]:
    """Arguments of an ordinary call and the closing bracket."""
    cursor = parser.cursor
    if cursor.accept_operator(")"):
        return []
    if cursor.at_operator("*"):
        star = cursor.advance()
        cursor.expect_operator(")")
        return [at(exp.Star(), star)]
    start = cursor.current
    distinct = cursor.accept_word("distinct")
    if not distinct and cursor.at_word("all") and cursor.peek().text != "(":
        cursor.advance()
    items = [_argument(parser)]
    while cursor.accept_operator(","):
        items.append(_argument(parser))
    if cursor.at_word("order", "by"):
        raise cursor.not_supported(
            "ORDER BY in an aggregate is not supported in continuous queries",
            hint="Its values are in the order of their event times; those of DISTINCT are in their own order.",
        )
    cursor.expect_operator(")")
    return [at(exp.Distinct(expressions=items), start)] if distinct else items


def _argument(parser: Expressions) -> exp.Expression:
    cursor = parser.cursor
    if cursor.at_name() and cursor.peek().text in ("=>", ":="):
        raise cursor.not_supported("named arguments are not supported", hint="Give the arguments by position.")
    if cursor.at_word("variadic"):
        raise cursor.not_supported("VARIADIC is not supported", hint="Write the arguments one by one.")
    return parser.expression()


def _followed(parser: Expressions, result: exp.Expression, token: Token) -> exp.Expression:
    """FILTER, and what cannot follow a call in a continuous query."""
    cursor = parser.cursor
    if cursor.current.kind is not WORD:
        return result
    if cursor.at_word("within", "group"):
        result = at(exp.WithinGroup(this=result, expression=_within_group(parser)), token)
    if cursor.at_word("filter") and cursor.peek().text == "(":
        cursor.advance()
        cursor.advance()
        where = cursor.current
        cursor.expect_word("where")
        condition = parser.expression()
        cursor.expect_operator(")")
        result = at(exp.Filter(this=result, expression=at(exp.Where(this=condition), where)), token)
    if cursor.at_word("over") and (cursor.peek().text == "(" or cursor.peek().kind in (WORD, IDENTIFIER)):
        raise cursor.not_supported(
            "window functions (OVER) are not supported in continuous queries",
            hint="Use the window function where you read the view: SELECT ... OVER (...) FROM view.",
        )
    if cursor.at_word("ignore", "nulls") or cursor.at_word("respect", "nulls"):
        raise cursor.not_supported(
            f"{cursor.current.text.upper()} NULLS is not supported in continuous queries",
            hint="Aggregates leave NULLs out; only ARRAY_AGG keeps them, and FILTER (WHERE ...) takes them from it.",
        )
    return result


def _within_group(parser: Expressions) -> exp.Order:
    """``WITHIN GROUP (ORDER BY ...)``; where NULLs would stand makes no difference, since none is looked at."""
    cursor = parser.cursor
    start = cursor.current
    cursor.expect_word("within", "group")
    cursor.expect_operator("(")
    cursor.expect_word("order", "by")
    items = [_ordered(parser)]
    while cursor.accept_operator(","):
        items.append(_ordered(parser))
    cursor.expect_operator(")")
    return at(exp.Order(expressions=items), start)


def _ordered(parser: Expressions) -> exp.Ordered:
    cursor = parser.cursor
    start = cursor.current
    operand = parser.expression()
    if cursor.at_word("using"):
        raise cursor.not_supported("ORDER BY ... USING is not supported", hint="Use ASC or DESC.")
    descending = cursor.accept_word("desc")
    if not descending:
        cursor.accept_word("asc")
    if cursor.accept_word("nulls"):
        cursor.expect_any("first", "last")
    return at(exp.Ordered(this=operand, desc=descending), start)


# --- special forms: called after the opening bracket, they read the closing one ---------------------------------------
def _plain(token: Token, name: str, arguments: list[exp.Expression]) -> exp.Expression:
    return at(exp.Anonymous(this=name, expressions=arguments), token)


def _cast(parser: Expressions, token: Token) -> exp.Expression:
    cursor = parser.cursor
    operand = parser.expression()
    cursor.expect_word("as")
    target = cast_type(cursor)
    if cursor.at_word("format"):
        raise cursor.not_supported(
            "CAST with FORMAT is not supported", hint="Use TO_TIMESTAMP, TO_DATE or DATE_FORMAT."
        )
    cursor.expect_operator(")")
    node: type[exp.Expression] = exp.Cast if token.text == "cast" else exp.TryCast
    return at(node(this=operand, to=target), token)


def _extract(parser: Expressions, token: Token) -> exp.Expression:
    cursor = parser.cursor
    unit = cursor.current
    if unit.kind not in (WORD, IDENTIFIER, STRING):
        raise cursor.syntax_error()
    cursor.advance()
    cursor.expect_word("from")
    operand = parser.expression()
    cursor.expect_operator(")")
    return _plain(token, "extract", [at(exp.Literal.string(unit.text.lower()), unit), operand])


def _position(parser: Expressions, token: Token) -> exp.Expression:
    cursor = parser.cursor
    needle = parser.expression(_OPERATOR_LEVEL - 1)
    cursor.expect_word("in")
    haystack = parser.expression(_OPERATOR_LEVEL - 1)
    cursor.expect_operator(")")
    return _plain(token, "position", [needle, haystack])


def _substring(parser: Expressions, token: Token) -> exp.Expression:
    cursor = parser.cursor
    if cursor.at_operator(")"):
        return _plain(token, token.text, _arguments(parser))
    operand = parser.expression(_OPERATOR_LEVEL - 1)
    if cursor.accept_word("from"):
        arguments = [operand, parser.expression()]
        if cursor.accept_word("for"):
            arguments.append(parser.expression())
        cursor.expect_operator(")")
        return _plain(token, token.text, arguments)
    if cursor.accept_word("for"):
        length = parser.expression()
        start: exp.Expression = exp.Literal.number(1)
        if cursor.accept_word("from"):
            start = parser.expression()
        cursor.expect_operator(")")
        return _plain(token, token.text, [operand, start, length])
    if cursor.at_word("similar"):
        raise cursor.not_supported("SUBSTRING with SIMILAR is not supported", hint="Use REGEXP_EXTRACT.")
    return _plain(token, token.text, _remaining(parser, operand))


def _remaining(parser: Expressions, first: exp.Expression) -> list[exp.Expression]:
    cursor = parser.cursor
    items = [first]
    while cursor.accept_operator(","):
        items.append(parser.expression())
    cursor.expect_operator(")")
    return items


def _trim(parser: Expressions, token: Token) -> exp.Expression:
    cursor = parser.cursor
    name = "btrim"
    explicit = cursor.at_any({"both", "leading", "trailing"})
    if explicit:
        name = {"both": "btrim", "leading": "ltrim", "trailing": "rtrim"}[cursor.advance().text]
    if cursor.accept_word("from"):
        operand = parser.expression()
        return _plain(token, name, _remaining(parser, operand))
    first = parser.expression()
    if cursor.accept_word("from"):
        operand = parser.expression()
        cursor.expect_operator(")")
        return _plain(token, name, [operand, first])
    return _plain(token, name, _remaining(parser, first))


def _overlay(parser: Expressions, token: Token) -> exp.Expression:
    cursor = parser.cursor
    operand = parser.expression()
    if not cursor.accept_word("placing"):
        return _plain(token, "overlay", _remaining(parser, operand))
    arguments = [operand, parser.expression()]
    cursor.expect_word("from")
    arguments.append(parser.expression())
    if cursor.accept_word("for"):
        arguments.append(parser.expression())
    cursor.expect_operator(")")
    return _plain(token, "overlay", arguments)


def _ceil_floor(parser: Expressions, token: Token) -> exp.Expression:
    cursor = parser.cursor
    name = "ceil" if token.text == "ceiling" else token.text
    if cursor.at_operator(")"):
        return _plain(token, name, _arguments(parser))
    operand = parser.expression()
    if cursor.accept_word("to"):
        unit = cursor.current
        found = parser.unit()
        if found is None:
            raise cursor.syntax_error()
        cursor.expect_operator(")")
        return _plain(token, name, [operand, at(exp.Literal.string(found.lower()), unit)])
    return _plain(token, name, _remaining(parser, operand))


def _timestamp_arithmetic(parser: Expressions, token: Token) -> exp.Expression:
    cursor = parser.cursor
    unit = cursor.current
    found = parser.unit() if cursor.peek().text == "," else None
    if found is None:
        return _plain(token, token.text, _arguments(parser))
    return _plain(token, token.text, _remaining(parser, at(exp.Literal.string(found.lower()), unit)))


def _json_value(parser: Expressions, token: Token) -> exp.Expression:
    cursor = parser.cursor
    if cursor.at_operator(")"):
        return _plain(token, "json_value", _arguments(parser))
    arguments = [parser.expression()]
    while cursor.accept_operator(","):
        arguments.append(parser.expression())
    returning = type_name(cursor) if cursor.accept_word("returning") else None
    while not cursor.at_operator(")"):
        start = cursor.current
        how = cursor.expect_any("null", "error", "default")
        if how == "default":
            parser.expression()
        cursor.expect_word("on")
        cursor.expect_any("empty", "error")
        if how != "null":
            raise cursor.not_supported(
                f"{how.upper()} ON EMPTY and {how.upper()} ON ERROR are not supported in JSON_VALUE",
                hint="JSON_VALUE gives NULL then; use COALESCE for a default.",
                token=start,
            )
    cursor.expect_operator(")")
    result = _plain(token, "json_value", arguments)
    return result if returning is None else at(exp.TryCast(this=result, to=data_type(returning)), token)


def _refused(parser: Expressions, token: Token) -> exp.Expression:
    name = token.text.upper()
    raise parser.cursor.not_supported(
        f"{name} with a sub-query or an array is not supported in continuous queries",
        hint="Join the relations; whether an array has a value is told by ARRAY_CONTAINS(array, value).",
        token=token,
    )


_SPECIAL: dict[str, Callable[[Expressions, Token], exp.Expression]] = {
    "cast": _cast,
    "try_cast": _cast,
    "extract": _extract,
    "position": _position,
    "substring": _substring,
    "trim": _trim,
    "overlay": _overlay,
    "ceil": _ceil_floor,
    "ceiling": _ceil_floor,
    "floor": _ceil_floor,
    "timestampadd": _timestamp_arithmetic,
    "timestampdiff": _timestamp_arithmetic,
    "json_value": _json_value,
    "exists": _refused,
    "array": _refused,
    "any": _refused,
    "some": _refused,
    "all": _refused,
}
