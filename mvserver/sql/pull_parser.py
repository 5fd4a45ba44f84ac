"""sqlglot's Postgres parser, made to refuse what PostgreSQL refuses.

sqlglot reads many dialects generously: clauses in any order, joins without ON, commas with nothing behind them. A
server must not: what it lets pass here would fail later with an error that names nothing of the user's text, or mean
something else. Each override below closes one such gap, adds source properties, or makes a long list or chain cheap.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.parsers.postgres import PostgresParser
from sqlglot.tokenizer_core import Token as GlotToken
from sqlglot.tokenizer_core import TokenType

from mvserver import interrupts, limits, sqlstates
from mvserver.errors import SqlError
from mvserver.sql import guard, literal_runs, pull_functions
from mvserver.sql.cursor import Cursor
from mvserver.sql.nodes import position_of
from mvserver.sql.properties import property_list
from mvserver.sql.split import StatementTokens
from mvserver.sql.statements.base import Properties
from mvserver.sql.windows import WINDOWS

_AS_WRITTEN = frozenset(
    {
        "DATE_BIN",  # the origin would become a name
        "TO_CHAR",
        "TO_DATE",
        "INITCAP",
        "VAR_SAMP",
        "REGEXP_LIKE",
        "JSON_EXTRACT_PATH",
        "JSON_EXTRACT_PATH_TEXT",
        "MAKE_INTERVAL",
    }
)
"""Functions of which sqlglot's node would not tell how they were written, or would be spelled in another way."""
_GRAMMAR = frozenset({"ARRAY", "CASE", "CAST", "COALESCE", "EXISTS", "NULLIF", "ROW"})
GRAMMAR_WORDS = frozenset({
    "all", "any", "array", "case", "cast", "coalesce", "exists", "greatest", "grouping", "least", "nullif", "row",
    "some", "trim", "variadic",
})  # fmt: skip
"""What looks like a call and is grammar: quoted or with a schema before it, each is a function that does not exist."""
_QUERY_WORDS = frozenset({TokenType.SELECT, TokenType.WITH, TokenType.VALUES})
_NOT_POSTGRESQLS = frozenset({
    "ARGMAX", "ARGMIN", "ARG_MAX", "ARG_MIN", "CEIL", "CHAR", "CHR", "CONVERT", "DECODE", "FLOOR", "GAP_FILL", "MATCH",
    "MAX_BY", "MIN_BY", "OPENJSON", "SAFE_CAST", "TRY_CAST", "TRY_CONVERT", "WEIGHT_STRING",
})  # fmt: skip
"""Calls that have a grammar of their own in sqlglot, and none in PostgreSQL."""
CALLED = "called"
"""In the ``meta`` of a call: its name as it was written, the number of its arguments or None where its grammar is its
own, and the offset of the name."""
WORD = "word"
"""In the ``meta`` of a type: the word that it was written with."""
AS_OF = "as of"
"""In the ``meta`` of a table: the time or the token as of which it is read, or the number of the parameter."""
BARE = "bare"
"""In the ``meta`` of an array that was written in brackets alone."""
_AROUND_CALLS = (exp.Window, exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)
_NOT_WORDS = frozenset({TokenType.NUMBER, TokenType.STRING, TokenType.SENTINEL})
_LENGTHS = frozenset({TokenType.NUMBER, TokenType.INTERVAL})
_BALANCE_FROM = 32
_ONE_UNIT = re.compile(r"\s*-?[0-9]+(?:\.[0-9]+)?\s*[a-zA-Z]*\s*")
_INTERVAL_FIELDS = frozenset({"year", "month", "day", "hour", "minute", "second"})
_NO_UNIT = GlotToken(TokenType.SENTINEL, "")
_CHANGES = frozenset({"insert", "update", "delete", "merge"})
_IS_WHAT = frozenset({"null", "true", "false", "unknown", "distinct", "json", "document", "normalized"})
_JOIN_WORDS = frozenset(
    {
        TokenType.LEFT,
        TokenType.RIGHT,
        TokenType.FULL,
        TokenType.INNER,
        TokenType.CROSS,
        TokenType.NATURAL,
        TokenType.OUTER,
    }
)
_TYPE_ARGUMENTS = frozenset({TokenType.NUMBER, TokenType.COMMA, TokenType.DASH})
_BEHIND_MODIFIER = frozenset({TokenType.COMMA, TokenType.R_PAREN})
_PLACES = (TokenType.STRING, TokenType.PARAMETER)
_SQUARE = (TokenType.L_BRACKET, TokenType.R_BRACKET)
_COMPARISONS = frozenset({exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE})
_RANKS = {
    TokenType.WHERE: 1,
    TokenType.GROUP_BY: 2,
    TokenType.HAVING: 3,
    TokenType.WINDOW: 4,
    TokenType.ORDER_BY: 5,
    TokenType.LIMIT: 6,
    TokenType.OFFSET: 6,
    TokenType.FETCH: 6,
    TokenType.FOR: 7,
}


class _WrongArguments(Exception):  # noqa: N818 - caught where the function's name is known
    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.count = count


def _is_name(token: GlotToken) -> bool:
    if token.token_type in _NOT_WORDS:
        return False
    return token.token_type == TokenType.IDENTIFIER or token.text[:1].isalpha() or token.text[:1] == "_"


def index_at(statement: StatementTokens, start: int) -> int:
    """The index of our token that begins at an offset (or inside which one of sqlglot's begins)."""
    return bisect_right(statement.tokens, start, key=lambda token: token.start) - 1


class ContinuousOnly(SqlError):  # noqa: N818 - also a finding: the query is of another kind
    """The query has a clause that is about rows as they come. ``start`` is the clause's offset."""

    def __init__(self, what: str, start: int) -> None:
        super().__init__(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"{what} is supported in a continuous query only",
            hint="Create a materialized view of it, and read that.",
            position=start + 1,
        )


class PullError(ParseError):
    """A syntax error at a token; sqlglot's own text is of no use to a PostgreSQL user."""

    def __init__(self, token: GlotToken, description: str) -> None:
        super().__init__(description)
        self.token = token


def _generate_series(args: list[Any]) -> exp.Expr:
    """sqlglot reads the step as an interval of one unit."""
    if len(args) > 2:
        step = args[2].this if isinstance(args[2], exp.Interval) and args[2].args.get("unit") is None else args[2]
        if isinstance(step, exp.Literal) and step.is_string and not step.name.strip().lstrip("+-").isdigit():
            args[2] = exp.Interval(this=step) if _ONE_UNIT.fullmatch(step.name) is None else exp.to_interval(step.name)
    return exp.ExplodingGenerateSeries.from_arg_list(args)


def _to_timestamp(args: list[Any]) -> exp.Expr:
    if len(args) == 1:
        return exp.UnixToTime(this=args[0])
    return exp.Anonymous(this="to_timestamp", expressions=args)


def _note_call(found: exp.Expr | None, token: GlotToken, arguments: int | None) -> None:
    """Notes at the call how its name was written and how many arguments it has, which sqlglot's nodes do not tell."""
    call = found
    while isinstance(call, _AROUND_CALLS):
        call = call.this
    if isinstance(call, exp.Expr) and CALLED not in call.meta:
        name = token.text if token.token_type == TokenType.IDENTIFIER else token.text.lower()
        call.meta[CALLED] = (name, arguments, token.start)


def _cast_behind(found: exp.Expr | None) -> exp.Expr | None:
    """``date '2024-01-01'::text`` casts the date to text; sqlglot casts the text first, and that to a date."""
    casts: list[exp.Cast] = []
    inner = found
    while isinstance(inner, exp.Cast):
        casts.append(inner)
        inner = inner.this
    if len(casts) > 1 and isinstance(inner, exp.Literal):
        first, *others = (cast.to for cast in casts)
        for cast, kind in zip(casts, (*others, first), strict=True):
            cast.set("to", kind)
            cast.type = kind
    return found


def _placed(parse: Any) -> Any:
    """The parser of a constant that sqlglot gives no place."""

    def placed(self: PullParser, token: GlotToken) -> exp.Expr:
        found: exp.Expr = parse(self, token)
        found.update_positions(token)
        return found

    return placed


def _is_array_word(node: exp.Expr | None) -> bool:
    """Whether it is the word before a constructor's brackets: no column of that name, quoted or behind a dot."""
    if not isinstance(node, exp.Column) or node.args.get("table") is not None:
        return False
    word = node.this
    return isinstance(word, exp.Identifier) and not word.quoted and word.name.lower() == "array"


class PullParser(PostgresParser):
    """sqlglot's parser with our errors and a few overridden productions."""

    # Nothing but queries: INSERT and its like are names here, so a CTE cannot change data.
    STATEMENT_PARSERS: ClassVar[dict[Any, Any]] = {}

    statement: StatementTokens
    _steps = 0
    _types_open = 0

    # What PostgreSQL has not stays as it was written, and does not become a function of another name. So do patterns:
    # sqlglot's own form of them cannot tell Day from DAY.
    FUNCTIONS: ClassVar[dict[str, Any]] = {
        word: build
        for word, build in PostgresParser.FUNCTIONS.items()
        if word not in _AS_WRITTEN and (word.lower() in pull_functions.table() or word in _GRAMMAR)
    } | {"TO_TIMESTAMP": _to_timestamp, "GENERATE_SERIES": _generate_series}

    PRIMARY_PARSERS: ClassVar[dict[Any, Any]] = {  # an error may stand at such a constant
        **PostgresParser.PRIMARY_PARSERS,
        **{
            kind: _placed(PostgresParser.PRIMARY_PARSERS[kind])
            for kind in (TokenType.TRUE, TokenType.FALSE, TokenType.NULL)
        },
    }
    PLACEHOLDER_PARSERS: ClassVar[dict[Any, Any]] = {  # a question mark is an operator, a colon stands between bounds
        kind: parse
        for kind, parse in PostgresParser.PLACEHOLDER_PARSERS.items()
        if kind not in (TokenType.PLACEHOLDER, TokenType.COLON)
    }
    RANGE_PARSERS: ClassVar[dict[Any, Any]] = {  # x FOR y IN z makes a list in other dialects
        kind: parse for kind, parse in PostgresParser.RANGE_PARSERS.items() if kind != TokenType.FOR
    }
    TYPE_LITERAL_PARSERS: ClassVar[dict[Any, Any]] = {}  # json '…' is a cast, as every type before a text
    ARRAY_CONSTRUCTORS: ClassVar[dict[str, Any]] = {}  # what is before the brackets may be a column: _parse_bracket
    OPTIONAL_ALIAS_TOKEN_CTE = False
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {  # initcap is a macro: sqlglot's spelling of it is not PostgreSQL's
        word: parse
        for word, parse in PostgresParser.FUNCTION_PARSERS.items()
        if word != "INITCAP" and word not in _NOT_POSTGRESQLS
    }

    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        word: parse for word, parse in PostgresParser.NO_PAREN_FUNCTION_PARSERS.items() if word not in ("IF", "NEXT")
    }

    def _parse_limit(self, this: Any = None, top: bool = False, skip_limit_token: bool = False) -> Any:
        """``FETCH NEXT``: the word is a name elsewhere."""
        is_fetch = self._curr is not None and self._curr.token_type == TokenType.FETCH and self._next is not None
        if is_fetch and self._next.text.upper() == "NEXT":
            self._advance(2)
            unsaid = self._match_texts(("ROW", "ROWS"), advance=False)
            count = None if unsaid else self._parse_field(tokens=self.FETCH_TOKENS)
            return self.expression(exp.Fetch(direction="NEXT", count=count, limit_options=self._parse_limit_options()))
        return super()._parse_limit(this, top, skip_limit_token)

    # --- linear and interruptible -----------------------------------------------------------------------------------
    def _advance(self, times: int = 1) -> None:
        """Every step forwards or back comes through here. sqlglot tries productions and goes back; where a text makes
        it do so at each of its levels, the steps would double with each level."""
        super()._advance(times)
        self._steps += 1
        if not self._steps % interrupts.EVERY:
            interrupts.check()
            if self._steps > limits.PARSE_STEPS_PER_TOKEN_MAX * (self._tokens_size + interrupts.EVERY):
                raise guard.too_deep(self._curr.start + 1 if self._curr else None)

    def _can_parse_limit_or_offset(self) -> bool:
        """In PostgreSQL both words are reserved: without AS they are no name, whatever follows."""
        return self._match_set(self.AMBIGUOUS_ALIAS_TOKENS, advance=False)

    def _parse_type(self, parse_interval: bool = True, fallback_to_identifier: bool = False) -> exp.Expr | None:
        """A type stands before a value only in ``type 'text'``; sqlglot would read the arguments of ``date(…)`` or the
        items of ``ARRAY[…]`` as a type's, and then once more."""
        typed_text = self._curr.token_type in self.TYPE_TOKENS and self._is_typed_text()
        if self._curr.token_type in self.TYPE_TOKENS and not typed_text and not fallback_to_identifier:
            if parse_interval and self._curr.token_type == TokenType.INTERVAL and (found := self._parse_interval()):
                return self._parse_column_ops(found)
            return self._parse_column()
        value = super()._parse_type(parse_interval, fallback_to_identifier)
        return _cast_behind(value) if typed_text else value

    def _is_typed_text(self) -> bool:
        """Whether a type's name is followed by a text, behind ``(numbers)`` and WITH TIME ZONE where they stand."""
        tokens, at, size = self._tokens, self._index + 1, self._tokens_size
        if at < size and tokens[at].token_type == TokenType.L_PAREN:
            at += 1
            while at < size and tokens[at].token_type in _TYPE_ARGUMENTS:
                at += 1
            if at == size or tokens[at].token_type != TokenType.R_PAREN:
                return False
            at += 1
        if at + 2 < size and tokens[at].text in ("with", "without") and tokens[at + 1].text == "time":
            at += 3
        return at < size and tokens[at].token_type == TokenType.STRING

    def raise_error(self, message: str, token: GlotToken | None = None) -> None:
        raise PullError(self._curr, message)

    def validate_expression(self, expression: Any, args: Any = None) -> Any:
        if args is not None and isinstance(expression, exp.Func):
            if expression.error_messages(args):
                raise _WrongArguments(len(args))
            return expression
        return super().validate_expression(expression, args)

    def _parse_statement(self) -> exp.Expr | None:
        """The inside of a CTE."""
        if self._curr.token_type == TokenType.VAR and self._curr.text in _CHANGES:
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f"{self._curr.text.upper()} in WITH is not supported",
                position=self._curr.start + 1,
            )
        return super()._parse_statement()

    def _parse_cube_or_rollup(self, with_prefix: bool = False) -> exp.Cube | exp.Rollup | None:
        """Of any expressions, comparisons among them."""
        for word, kind in ((TokenType.CUBE, exp.Cube), (TokenType.ROLLUP, exp.Rollup)):
            if not with_prefix and self._match(word):
                return kind(expressions=self._parse_wrapped_csv(self._parse_disjunction))
        return super()._parse_cube_or_rollup(with_prefix)

    def _parse_function_call(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        token = self._curr
        self._arguments: int | None = None
        if self._next.token_type == TokenType.L_PAREN and token.text.lower() in GRAMMAR_WORDS:
            if token.token_type == TokenType.IDENTIFIER or self._prev.token_type == TokenType.DOT:
                kwargs["anonymous"] = True
            elif token.text == "array":
                self._check_array_query()
        try:
            found = super()._parse_function_call(*args, **kwargs)
            _note_call(found, token, self._arguments)
            self._arguments = None  # those of an inner call are none of the outer one's
            return found
        except _WrongArguments as error:
            raise SqlError(
                sqlstates.UNDEFINED_FUNCTION,
                f"function {token.text} with {error.count} arguments does not exist",
                hint="No function matches the given name and argument types.",
                position=token.start + 1,
            ) from None

    def _check_array_query(self) -> None:
        """Behind ARRAY stands a query in brackets."""
        at = self._index + 1
        while at < self._tokens_size and self._tokens[at].token_type == TokenType.L_PAREN:
            at += 1
        if at < self._tokens_size and self._tokens[at].token_type not in _QUERY_WORDS:
            raise PullError(self._tokens[at], "a query is missing")

    def _parse_function_args(self, alias: bool = False) -> list[exp.Expr]:
        found = super()._parse_function_args(alias)
        several = [item for item in found if isinstance(item, exp.Distinct)]
        self._arguments = len(found) + sum(max(len(item.expressions) - 1, 0) for item in several)
        return found

    def _parse_bracket(self, this: exp.Expr | None = None) -> exp.Expr | None:
        """A list without ARRAY before it is noted as such; a long one of literals behind ARRAY is one node."""
        bare = this is None and self._curr.token_type == TokenType.L_BRACKET
        if _is_array_word(this) and self._curr.token_type == TokenType.L_BRACKET:
            literals = literal_runs.bracketed(self._tokens, self._index, self._tokens_size, _SQUARE)
            if literals is not None and len(literals[0]) > limits.LITERALS_APART_MAX:
                self._advance(literals[1] - self._index)
                return self._parse_bracket(
                    exp.Array(expressions=literal_runs.items(literals[0]), bracket_notation=True)
                )
            this = None
        found = super()._parse_bracket(this)
        array = found
        while bare and isinstance(array, exp.Bracket):
            array = array.this
        if bare and isinstance(array, exp.Array):
            array.meta[BARE] = True
        return found

    def _parse_date_part(self) -> exp.Expr:
        found = super()._parse_date_part()
        found.meta["date_part"] = True  # else the same node as extract's
        return found

    def _parse_types(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        """sqlglot knows no arrays of oid, regclass and their like, and takes any expression for a type's modifier or an
        array's length, which it may then read once more."""
        start = self._index
        self._types_open += 1
        try:
            found = super()._parse_types(*args, **kwargs)
        finally:
            self._types_open -= 1
        if type(found) is exp.DataType:
            while start + 2 < self._tokens_size and self._tokens[start + 1].token_type == TokenType.DOT:
                start += 2  # behind the schema
            word = self._tokens[start]
            found.meta.setdefault(WORD, word.text if word.token_type == TokenType.IDENTIFIER else word.text.lower())
        while isinstance(found, exp.ObjectIdentifier | exp.PseudoType | exp.DataType) and self._is_array_mark():
            self._advance(2)
            found = exp.DataType(this=exp.DType.ARRAY, expressions=[found], nested=True)
        return found

    def _parse_type_size(self) -> exp.DataTypeParam | None:
        negative = self._curr.token_type == TokenType.DASH and self._next.token_type == TokenType.NUMBER
        if not negative and self._next.token_type not in _BEHIND_MODIFIER:
            self.raise_error("a type's modifier is a constant")
        return super()._parse_type_size()

    def _parse_array_length(self) -> exp.Expr | None:
        if self._curr.token_type not in (TokenType.NUMBER, TokenType.R_BRACKET):
            self.raise_error("an array's length is a number")
        return self._parse_number()

    def _is_array_mark(self) -> bool:
        return self._curr.token_type == TokenType.L_BRACKET and self._next.token_type == TokenType.R_BRACKET

    def _parse_interval(
        self, require_interval: bool = True, parse_function_unit: bool = True
    ) -> exp.Add | exp.Interval | None:
        """sqlglot takes a constant behind ``interval '1 day' +`` for another interval, whatever it is cast to."""
        following = self._tokens[self._index + 1] if self._index + 1 < self._tokens_size else None
        behind = following is not None and following.token_type == TokenType.STRING
        if not (behind and self._curr.token_type == TokenType.INTERVAL):
            return super()._parse_interval(require_interval, parse_function_unit)
        self._advance()
        text = self._parse_primary()
        assert text is not None  # noqa: S101 - a text is one
        return self._parse_interval_span(text, parse_function_unit)

    def _parse_interval_span(self, this: exp.Expr, parse_function_unit: bool = True) -> exp.Interval:
        follows = self._curr
        quoted = follows.token_type == TokenType.IDENTIFIER
        if quoted or follows.text.lower() not in _INTERVAL_FIELDS:  # sqlglot takes any name for a unit
            self._curr = _NO_UNIT
        found = super()._parse_interval_span(this, parse_function_unit)
        if self._curr is _NO_UNIT:
            self._curr = follows
        several = this.is_string and not _ONE_UNIT.fullmatch(this.name) and exp.INTERVAL_STRING_RE.search(this.name)
        return exp.Interval(this=this) if several else found  # sqlglot keeps '1 day' of '1 day 02:00:00'

    # --- what sqlglot lets pass and PostgreSQL does not -------------------------------------------------------------
    def _parse_csv(self, parse_method: Any, sep: TokenType = TokenType.COMMA) -> list[Any]:
        if self._types_open and parse_method == self._parse_disjunction:
            parse_method = self._parse_array_length
        first = parse_method()
        items = [] if first is None else [first]
        literals = len(first.expressions) if isinstance(first, exp.Tuple) else 0
        while self._curr.token_type == sep:
            if first is None:
                self.raise_error("something is missing before the comma")
            self._advance()
            item = parse_method()
            if item is None:
                self.raise_error("something is missing behind the comma")
            items.append(item)
            if not isinstance(item, exp.Tuple):
                continue
            literals += len(item.expressions)
            wide = literals > limits.ROW_LITERALS_APART_MAX and parse_method == self._parse_value
            if wide or len(items) > limits.LITERALS_APART_MAX:
                run = literal_runs.rows(self._tokens, self._index, self._tokens_size, len(item.expressions))
                if run is not None:
                    items.append(run[0])
                    self._advance(run[1] - self._index)
        return items

    def _parse_projections(self) -> tuple[list[exp.Expr], list[exp.Expr] | None]:
        projections = super()._parse_projections()
        if not projections[0] and self._prev.token_type in (TokenType.DISTINCT, TokenType.ALL):
            self.raise_error("a select list is missing")
        return projections

    def _parse_value(self, values: bool = True) -> exp.Tuple | None:
        if self._curr.token_type != TokenType.L_PAREN:
            self.raise_error("a row is missing")
        return super()._parse_value(values)

    def _parse_alias(self, this: exp.Expr | None, explicit: bool = False) -> exp.Expr | None:
        if this is not None and self._curr.token_type == TokenType.ALIAS:
            if not _is_name(self._next):
                self._advance()
                self.raise_error("a name is missing")
            if self._next.token_type in self.RESERVED_TOKENS:  # any word can be a name after AS
                self._advance(2)
                return exp.Alias(this=this, alias=exp.Identifier(this=self._prev.text, quoted=True))
        return super()._parse_alias(this, explicit)

    def _parse_table_alias(self, alias_tokens: Any = None) -> exp.TableAlias | None:
        if self._curr.token_type == TokenType.ALIAS and not (
            _is_name(self._next) or self._next.token_type == TokenType.L_PAREN
        ):
            self._advance()
            self.raise_error("a name is missing")
        return super()._parse_table_alias(alias_tokens)

    def _parse_extract(self) -> exp.Extract | exp.Anonymous:
        if self._curr and self._next.token_type != TokenType.FROM:
            self._advance()
            self.raise_error("FROM is missing")
        return super()._parse_extract()

    def _parse_lambda(self, alias: bool = False) -> exp.Expr | None:
        found = super()._parse_lambda(alias)
        if isinstance(found, exp.Distinct) and not found.expressions:
            self.raise_error("an argument is missing")
        return found

    def _parse_is(self, this: exp.Expr | None) -> exp.Expr | None:
        index = self._index
        self._match(TokenType.NOT)
        if self._curr.text not in _IS_WHAT:
            self.raise_error("no such predicate")
        self._retreat(index)
        negated = self._match(TokenType.NOT)
        if self._match_text_seq("UNKNOWN"):
            unknown = exp.Is(this=this, expression=exp.Null())
            return exp.Not(this=unknown) if negated else unknown
        self._retreat(index)
        return super()._parse_is(this)

    def _parse_case(self) -> exp.Expr | None:
        if self._curr.token_type == TokenType.END:
            self.raise_error("WHEN is missing")
        return super()._parse_case()

    def _build_predicate(self, klass: Any, this: Any, expression: Any, *args: Any, **kwargs: Any) -> exp.Expr:
        if klass in _COMPARISONS and type(this) in _COMPARISONS:  # a < b < c
            right = position_of(expression) or self._prev.start + 1  # a literal has none, but is one token
            operator = self.statement.tokens[max(index_at(self.statement, right - 1) - 1, 0)]
            raise Cursor(self.statement).syntax_error(operator)
        return super()._build_predicate(klass, this, expression, *args, **kwargs)

    def _parse_join(self, *args: Any, **kwargs: Any) -> exp.Join | None:
        if self._match(TokenType.COMMA):
            return exp.Join(this=self._parse_table(alias_tokens=kwargs.get("alias_tokens")))
        start = self._index
        join = super()._parse_join(*args, **kwargs)
        if join is None:
            if self._curr.token_type in _JOIN_WORDS and start == self._index:
                while self._curr.token_type in _JOIN_WORDS:
                    self._advance()
                self.raise_error("JOIN is missing")
            return None
        needs_condition = join.kind != "CROSS" and not join.method
        if needs_condition and not join.args.get("on") and not join.args.get("using"):
            self.raise_error("ON is missing")
        return join

    def _parse_query_modifiers(self, this: Any) -> Any:
        """The clauses in PostgreSQL's order."""
        if not isinstance(this, self.MODIFIABLES):
            return this
        for join in self._parse_joins():
            this.append("joins", join)
        last = 0 if isinstance(this, exp.Select) else _RANKS[TokenType.WINDOW]
        while True:
            token = self._curr
            token_type = token.token_type
            rank = _RANKS.get(token_type)
            if rank is None:
                return this
            if rank < last:
                self.raise_error("clause in the wrong place")
            parse: Any = self.QUERY_MODIFIER_PARSERS[token_type]
            key, expression = parse(self)
            if self._curr is token:  # FOR without UPDATE or SHARE: it would be tried for ever
                self._advance()
                self.raise_error("no such clause")
            if expression:
                if this.args.get(key):
                    raise PullError(token, "clause given twice")
                if key == "group" and not any(expression.args.values()):
                    self.raise_error("a key is missing")
                this.set(key, expression)
            last = rank

    def _parse_select_query(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        if self._curr.token_type == TokenType.FROM:
            self.raise_error("FROM without SELECT")  # DuckDB's order, not PostgreSQL's
        return super()._parse_select_query(*args, **kwargs)

    def _parse_into(self) -> exp.Into | None:
        if self._curr.token_type == TokenType.INTO:
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                "SELECT INTO is not supported",
                hint="Use CREATE MATERIALIZED VIEW ... AS SELECT.",
                position=self._curr.start + 1,
            )
        return None

    # --- long lists and chains --------------------------------------------------------------------------------------
    def _parse_disjunction(self) -> exp.Expr | None:
        this = self._parse_conjunction()
        if self._curr.token_type == TokenType.OR:
            return self._chain(this, TokenType.OR, exp.Or, self._parse_conjunction)
        return this

    def _parse_conjunction(self) -> exp.Expr | None:
        this = self._parse_equality()
        if self._curr.token_type == TokenType.AND:
            return self._chain(this, TokenType.AND, exp.And, self._parse_equality)
        return this

    def _chain(self, first: exp.Expr | None, operator: TokenType, node: type[exp.Connector], operand: Any) -> exp.Expr:
        """The operands of one chain; a long one becomes a balanced tree, whose depth is the logarithm of its length."""
        if first is None:
            self.raise_error("an operand is missing")
        operands: list[Any] = [first]
        while self._match(operator):
            following = operand()
            if following is None:
                self.raise_error("an operand is missing")
            operands.append(following)
        if len(operands) < _BALANCE_FROM:
            left = operands[0]
            for right in operands[1:]:
                left = node(this=left, expression=right)
            return left  # type: ignore[no-any-return]
        while len(operands) > 1:
            paired = [node(this=operands[i], expression=operands[i + 1]) for i in range(0, len(operands) - 1, 2)]
            operands = paired + operands[len(operands) - len(operands) % 2 :]
        return operands[0]  # type: ignore[no-any-return]

    def _parse_in(self, this: exp.Expr | None, alias: bool = False) -> exp.In:
        if self._curr.token_type != TokenType.L_PAREN or self._next.token_type == TokenType.R_PAREN:
            self._match(TokenType.L_PAREN)
            self.raise_error("a list is missing")
        literals = literal_runs.bracketed(self._tokens, self._index, self._tokens_size)
        if literals is None:
            return super()._parse_in(this, alias)
        self._advance(literals[1] - self._index)
        return exp.In(this=this, expressions=literal_runs.items(literals[0]))

    # --- source properties ------------------------------------------------------------------------------------------
    def _parse_table_hints(self) -> list[exp.Expr] | None:
        return None  # WITH (...) after a source is ours

    def _parse_table(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        first = self._curr
        if first.text.lower() in WINDOWS and self._next.token_type == TokenType.L_PAREN:
            raise ContinuousOnly(f"a window ({first.text.upper()})", first.start)
        if first.token_type == TokenType.STRING:
            self.raise_error("a name is missing")  # DuckDB takes a text for one, of a file
        table = super()._parse_table(*args, **kwargs)
        if isinstance(table, exp.Table) and isinstance(table.this, exp.Dot):
            name = ".".join(part.name for part in table.parts)
            raise SqlError(
                sqlstates.SYNTAX_ERROR,
                f"improper qualified name (too many dotted names): {name}",
                position=first.start + 1,
            )
        if isinstance(table, exp.Table):
            table.set("only", None)  # no relation has children
            version = table.args.pop("version", None)
            if version is not None:
                place = version.expression
                table.meta[AS_OF] = int(place.name) if isinstance(place, exp.Parameter) else place.name
        if (
            isinstance(table, exp.Table)
            and self._curr.token_type == TokenType.WITH
            and self._next.token_type == TokenType.L_PAREN
        ):
            self._advance()
            table.meta["properties"] = self._properties()
            if not table.args.get("alias"):
                table.set("alias", self._parse_table_alias())
        if isinstance(table, exp.Table):
            self._refuse_within()
        return table

    def _parse_version(self) -> exp.Version | None:
        """``AS OF 'time or token'``, or of a parameter, behind a table's name, before its alias. It may be cast to the
        type that it has anyway, as drivers do that write values into the text."""
        at, tokens = self._index, self._tokens
        if self._curr.text.lower() != "as" or self._next is None or self._next.text.lower() != "of":
            return None
        if at + 2 >= self._tokens_size or tokens[at + 2].token_type not in _PLACES:
            return None  # an alias
        self._advance(2)
        place = self._parse_primary() or self._parse_placeholder()
        if self._match(TokenType.DCOLON):
            kind = self._parse_types()
            if not isinstance(kind, exp.DataType) or kind.this is not exp.DType.TIMESTAMPTZ:
                self.raise_error("AS OF takes no other type")
        return exp.Version(this="TIMESTAMP", kind="AS OF", expression=place)

    def _refuse_within(self) -> None:
        """After a table without an alias, the word was taken for one."""
        for word, length in ((self._prev, self._curr), (self._curr, self._next)):
            if word.text.lower() == "within" and length.token_type in _LENGTHS:
                raise ContinuousOnly("JOIN ... WITHIN", word.start)

    def _properties(self) -> Properties:
        cursor = Cursor(self.statement, index_at(self.statement, self._curr.start))
        properties = property_list(cursor)
        end = cursor.current.start
        while self._curr and self._curr.start < end:
            self._advance()
        return properties
