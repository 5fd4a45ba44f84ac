"""The product's own logical types: one table of them, their SQL spelling, and no code of any engine.

One frozen value, :class:`SqlType`, is used by declarations, the compiler, the catalog (as text) and the wire.
``str(t)`` is the canonical spelling and ``parse_type(str(t)) == t``.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.quoting import quoted
from mvserver.sql.lexer import fold
from mvserver.types import oids


@dataclass(frozen=True)
class Row:
    """What a kind of type is in each of the systems that its values cross; None where it has no place in one.

    ``oid`` is PostgreSQL's, and ``name`` its spelling in error messages. ``duckdb`` is how DuckDB's type is written
    here and ``printed`` how DuckDB prints it, where that differs. ``spark`` is Spark's DDL and ``spark_class`` its
    class in ``pyspark.sql.types``. ``spellings`` are what users may write, in upper case. Kinds whose types have parts
    (DECIMAL, VARCHAR(n), ARRAY, MAP, STRUCT) are spelled out by the rooms that spell types. ``lenses`` is false for
    scalars of which the interfaces of Lenses for functions have no values.
    """

    oid: int | None = None
    name: str | None = None
    duckdb: str | None = None
    spark: str | None = None
    spark_class: str | None = None
    printed: str | None = None
    spellings: tuple[str, ...] = ()
    lenses: bool = True

    @property
    def duckdb_printed(self) -> str | None:
        return self.printed or self.duckdb


class Kind(enum.Enum):
    """The families of types, one row each; the values are the canonical SQL names."""

    row: Row
    _value_: str

    def __new__(cls, canonical: str, row: Row) -> Kind:
        kind = object.__new__(cls)
        kind._value_ = canonical
        kind.row = row
        return kind

    BOOLEAN = (
        "BOOLEAN",
        Row(oids.BOOL, "boolean", "BOOLEAN", "BOOLEAN", "BooleanType", spellings=("BOOLEAN", "BOOL")),
    )
    TINYINT = (
        "TINYINT",
        Row(oids.INT2, "tinyint", "TINYINT", "TINYINT", "ByteType", spellings=("TINYINT",)),
    )
    SMALLINT = (
        "SMALLINT",
        Row(oids.INT2, "smallint", "SMALLINT", "SMALLINT", "ShortType", spellings=("SMALLINT", "INT2"), lenses=False),
    )
    INTEGER = (
        "INTEGER",
        Row(oids.INT4, "integer", "INTEGER", "INT", "IntegerType", spellings=("INTEGER", "INT", "INT4")),
    )
    BIGINT = (
        "BIGINT",
        Row(oids.INT8, "bigint", "BIGINT", "BIGINT", "LongType", spellings=("BIGINT", "INT8")),
    )
    FLOAT = (  # 4 bytes
        "FLOAT",
        Row(oids.FLOAT4, "real", "REAL", "FLOAT", "FloatType", "FLOAT", spellings=("FLOAT", "REAL", "FLOAT4")),
    )
    DOUBLE = (
        "DOUBLE",
        Row(
            oids.FLOAT8, "double precision", "DOUBLE", "DOUBLE", "DoubleType",
            spellings=("DOUBLE", "DOUBLE PRECISION", "FLOAT8"),
        ),
    )  # fmt: skip
    DECIMAL = "DECIMAL", Row(oids.NUMERIC, "numeric")  # precision <= 38
    VARCHAR = (
        "VARCHAR",
        Row(
            oids.TEXT, "text", "VARCHAR", "STRING", "StringType",
            spellings=("VARCHAR", "TEXT", "STRING", "CHARACTER VARYING"),
        ),
    )  # fmt: skip
    VARBINARY = (
        "VARBINARY",
        Row(oids.BYTEA, "bytea", "BLOB", "BINARY", "BinaryType", spellings=("VARBINARY", "BINARY", "BYTES", "BYTEA")),
    )
    DATE = "DATE", Row(oids.DATE, "date", "DATE", "DATE", "DateType", spellings=("DATE",), lenses=False)
    TIME = (
        "TIME",
        Row(oids.TIME, "time without time zone", "TIME", "TIME(6)", "TimeType", spellings=("TIME",)),
    )
    TIMESTAMP = (  # no zone, microseconds
        "TIMESTAMP",
        Row(
            oids.TIMESTAMP, "timestamp without time zone", "TIMESTAMP", "TIMESTAMP_NTZ", "TimestampNTZType",
            spellings=("TIMESTAMP", "TIMESTAMP WITHOUT TIME ZONE"),
        ),
    )  # fmt: skip
    TIMESTAMP_LTZ = (  # an instant, microseconds
        "TIMESTAMP_LTZ",
        Row(
            oids.TIMESTAMPTZ, "timestamp with time zone", "TIMESTAMPTZ", "TIMESTAMP_LTZ", "TimestampType",
            "TIMESTAMP WITH TIME ZONE",
            ("TIMESTAMP_LTZ", "TIMESTAMPTZ", "TIMESTAMP WITH TIME ZONE", "TIMESTAMP WITH LOCAL TIME ZONE"),
        ),
    )  # fmt: skip
    INTERVAL = "INTERVAL", Row(oids.INTERVAL, "interval", printed="INTERVAL", spellings=("INTERVAL",))  # in expressions
    ARRAY = "ARRAY", Row()
    MAP = "MAP", Row(oids.JSON)
    STRUCT = "STRUCT", Row(oids.JSON)
    NULL = "NULL", Row(oids.TEXT, "unknown", "VARCHAR", spellings=("NULL",))  # of an untyped NULL


@dataclass(frozen=True)
class SqlType:
    """A type. ``precision`` and ``scale`` are for DECIMAL, ``length`` for VARCHAR(n), the rest for nested types.

    ``spellings`` has, for each of a STRUCT's ``fields``, the name as it was declared where that is not the name: one
    without quotes is folded. Records may spell their fields so; it makes no other type.
    """

    kind: Kind
    precision: int | None = None
    scale: int | None = None
    length: int | None = None
    element: SqlType | None = None  # ARRAY's element, MAP's value
    key: SqlType | None = None  # MAP's key
    fields: tuple[tuple[str, SqlType], ...] = ()  # STRUCT's
    spellings: tuple[str | None, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        if self.kind is Kind.DECIMAL:
            return f"DECIMAL({self.precision}, {self.scale})"
        if self.kind is Kind.VARCHAR and self.length is not None:
            return f"VARCHAR({self.length})"
        if self.kind is Kind.ARRAY:
            return f"ARRAY<{self.element}>"
        if self.kind is Kind.MAP:
            return f"MAP<{self.key}, {self.element}>"
        if self.kind is Kind.STRUCT:
            inner = ", ".join(f"{spelling or quoted(name)} {t}" for name, t, spelling in self.spelled_fields)
            return f"STRUCT<{inner}>"
        return str(self.kind.value)

    @property
    def spelled_fields(self) -> tuple[tuple[str, SqlType, str | None], ...]:
        """Name, type and spelling of each field."""
        spellings = self.spellings or (None,) * len(self.fields)
        return tuple((name, kind, spelling) for (name, kind), spelling in zip(self.fields, spellings, strict=True))

    @property
    def is_integer(self) -> bool:
        return self.kind in INTEGER_KINDS

    @property
    def is_exact(self) -> bool:
        return self.kind in INTEGER_KINDS or self.kind is Kind.DECIMAL

    @property
    def is_approximate(self) -> bool:
        return self.kind in (Kind.FLOAT, Kind.DOUBLE)

    @property
    def is_numeric(self) -> bool:
        return self.is_exact or self.is_approximate

    @property
    def is_plain(self) -> bool:
        """Whether a value is one text: neither nested nor bytes."""
        return not self.is_nested and self.kind is not Kind.VARBINARY

    @property
    def is_nested(self) -> bool:
        return self.kind in (Kind.ARRAY, Kind.MAP, Kind.STRUCT)


INTEGER_KINDS = frozenset({Kind.TINYINT, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT})

BOOLEAN = SqlType(Kind.BOOLEAN)
TINYINT = SqlType(Kind.TINYINT)
SMALLINT = SqlType(Kind.SMALLINT)
INTEGER = SqlType(Kind.INTEGER)
BIGINT = SqlType(Kind.BIGINT)
FLOAT = SqlType(Kind.FLOAT)
DOUBLE = SqlType(Kind.DOUBLE)
VARCHAR = SqlType(Kind.VARCHAR)
VARBINARY = SqlType(Kind.VARBINARY)
DATE = SqlType(Kind.DATE)
TIME = SqlType(Kind.TIME)
TIMESTAMP = SqlType(Kind.TIMESTAMP)
TIMESTAMP_LTZ = SqlType(Kind.TIMESTAMP_LTZ)
INTERVAL = SqlType(Kind.INTERVAL)
NULL = SqlType(Kind.NULL)

DECIMAL_PRECISION_MAX = 38

_SPELLINGS: dict[str, SqlType] = {spelling: SqlType(kind) for kind in Kind for spelling in kind.row.spellings}
_DECLARED = ", ".join(
    "DECIMAL(p, s)" if kind is Kind.DECIMAL else kind.value
    for kind in Kind
    if kind is Kind.DECIMAL or kind.row.spark is not None
)
"""The scalar types that a column may have, for messages."""


def decimal(precision: int = 10, scale: int = 0) -> SqlType:
    """DECIMAL(p, s); raises 22023 outside 1..38 and 0..p."""
    if not 1 <= precision <= DECIMAL_PRECISION_MAX:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f"DECIMAL precision {precision} must be between 1 and {DECIMAL_PRECISION_MAX}",
        )
    if not 0 <= scale <= precision:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE, f"DECIMAL scale {scale} must be between 0 and precision {precision}"
        )
    return SqlType(Kind.DECIMAL, precision=precision, scale=scale)


def array(element: SqlType) -> SqlType:
    return SqlType(Kind.ARRAY, element=element)


def map_of(key: SqlType, value: SqlType) -> SqlType:
    return SqlType(Kind.MAP, key=key, element=value)


def struct(*fields: tuple[str, SqlType]) -> SqlType:
    return SqlType(Kind.STRUCT, fields=tuple(fields))


def parse_type(text: str) -> SqlType:
    """Read a type as a user or ``str(SqlType)`` spells it. Unquoted struct field names fold to lower case.

    Errors: 42601 for bad syntax, 42704 for an unknown type, 22023 for a bad precision.
    """
    parser = _TypeParser(text)
    result = parser.type()
    parser.end()
    return result


class _TypeParser:
    """A recursive-descent reader of type text; depth is bounded by the statement guard before it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self._at = 0

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self._at += 1
        return token

    def _expect(self, token: str) -> None:
        if self._next() != token:
            raise SqlError(sqlstates.SYNTAX_ERROR, f'syntax error in type "{self._text}": expected "{token}"')

    def end(self) -> None:
        if self._at < len(self._tokens):
            raise SqlError(sqlstates.SYNTAX_ERROR, f'syntax error in type "{self._text}" at or near "{self._peek()}"')

    def type(self) -> SqlType:
        word = self._next().upper()
        if word == "ARRAY":
            self._expect("<")
            element = self.type()
            self._expect(">")
            return array(element)
        if word == "MAP":
            self._expect("<")
            key = self.type()
            self._expect(",")
            value = self.type()
            self._expect(">")
            return map_of(key, value)
        if word in ("STRUCT", "ROW"):
            return self._struct()
        if word in ("DECIMAL", "NUMERIC", "DEC"):
            arguments = self._arguments()
            return decimal(*arguments) if arguments else decimal()
        result = self._simple(word)
        while self._peek() == "[":  # PostgreSQL's spelling of arrays
            self._next()
            self._expect("]")
            result = array(result)
        return result

    def _struct(self) -> SqlType:
        fields: list[tuple[str, SqlType]] = []
        spellings: list[str | None] = []
        self._expect("<")
        while True:
            written = self._next()
            name = written[1:-1].replace('""', '"') if written.startswith('"') else fold(written)
            if not name or name in "<>(),[]":
                raise SqlError(sqlstates.SYNTAX_ERROR, f'syntax error in type "{self._text}": a field name is missing')
            if self._peek() == ":":
                self._next()
            if any(name == seen for seen, _ in fields):
                raise SqlError(sqlstates.DUPLICATE_COLUMN, f'field "{name}" specified more than once')
            fields.append((name, self.type()))
            spellings.append(None if written.startswith('"') or written == name else written)
            following = self._next()
            if following == ">":
                return SqlType(Kind.STRUCT, fields=tuple(fields), spellings=_own_spellings(fields, spellings))
            if following != ",":
                raise SqlError(sqlstates.SYNTAX_ERROR, f'syntax error in type "{self._text}"')

    def _arguments(self) -> list[int]:
        if self._peek() != "(":
            return []
        self._next()
        values: list[int] = []
        while True:
            following = self._next()
            if not following.isdigit():
                raise SqlError(sqlstates.SYNTAX_ERROR, f'syntax error in type "{self._text}": a number is expected')
            values.append(int(following))
            following = self._next()
            if following == ")":
                return values
            if following != ",":
                raise SqlError(sqlstates.SYNTAX_ERROR, f'syntax error in type "{self._text}"')

    def _simple(self, word: str) -> SqlType:
        if word == "DOUBLE" and self._peek().upper() == "PRECISION":
            self._next()
        if word == "CHARACTER" and self._peek().upper() == "VARYING":
            self._next()
            word = "CHARACTER VARYING"
        arguments = self._arguments()
        if word in ("TIMESTAMP", "TIME"):
            word = self._time_zone(word)
        result = _SPELLINGS.get(word)
        if result is None:
            raise SqlError(
                sqlstates.UNDEFINED_OBJECT,
                f'type "{word.lower()}" does not exist',
                hint=f"Types are {_DECLARED}, ARRAY<t>, MAP<k, v> and STRUCT<f t, ...>.",
            )
        if arguments:
            return self._with_argument(result, arguments)
        return result

    def _time_zone(self, word: str) -> str:
        lead = self._peek().upper()
        if lead not in ("WITH", "WITHOUT"):
            return word
        self._next()
        local = self._peek().upper() == "LOCAL"
        if local:
            self._next()
        if self._next().upper() != "TIME" or self._next().upper() != "ZONE":
            raise SqlError(sqlstates.SYNTAX_ERROR, f'syntax error in type "{self._text}"')
        if word == "TIME":
            if lead == "WITH":
                raise SqlError(
                    sqlstates.FEATURE_NOT_SUPPORTED,
                    "type TIME WITH TIME ZONE is not supported",
                    hint="Use TIME, or TIMESTAMP_LTZ.",
                )
            return word
        return "TIMESTAMP_LTZ" if lead == "WITH" else "TIMESTAMP"

    def _with_argument(self, result: SqlType, arguments: list[int]) -> SqlType:
        if result.kind is Kind.VARCHAR and len(arguments) == 1 and arguments[0] >= 1:
            return SqlType(Kind.VARCHAR, length=arguments[0])
        if result.kind in (Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMP_LTZ) and len(arguments) == 1 and arguments[0] <= 9:
            if arguments[0] > 6:
                raise SqlError(
                    sqlstates.FEATURE_NOT_SUPPORTED,
                    f"{result} precision {arguments[0]} is not supported",
                    hint="Times are kept in microseconds: use a precision of at most 6.",
                )
            return result  # a smaller precision is accepted and kept as microseconds
        if result.kind is Kind.VARBINARY and len(arguments) == 1:
            return result
        raise SqlError(sqlstates.SYNTAX_ERROR, f"type modifier is not allowed for type {result}")


def _own_spellings(fields: Sequence[tuple[str, SqlType]], spellings: Sequence[str | None]) -> tuple[str | None, ...]:
    """A field of a record that is spelled as one field is named belongs to that one alone."""
    names = {name for name, _ in fields}
    kept = tuple(None if spelling in names else spelling for spelling in spellings)
    return kept if any(kept) else ()


def _tokens(text: str) -> list[str]:
    tokens: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char.isspace():
            at += 1
        elif char in "<>(),[]:":
            tokens.append(char)
            at += 1
        elif char == '"':
            end = at + 1
            while end < len(text):
                if text[end] == '"':
                    if text[end + 1 : end + 2] != '"':
                        break
                    end += 1
                end += 1
            tokens.append(text[at : end + 1])
            at = end + 1
        else:
            end = at
            while end < len(text) and not text[end].isspace() and text[end] not in '<>(),[]:"':
                end += 1
            tokens.append(text[at:end])
            at = end
    return tokens
