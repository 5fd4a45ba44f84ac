"""Types on their way through Spark's JSON parser, and which of the parser's values are kept.

Spark's parser wraps small integers, rounds decimals and reads dates leniently. So each type has a *carrier* type that
the parser fills without loss, a test whether the carrier's value is one of the declared type, and the conversion.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    TimeType,
    VarcharType,
)

from spark_sinks.decode.columns import NUL, SPELLING, quoted, text
from spark_sinks.decode.numbers import approximate_number, exact_number, in_range

# Under its default locale Spark's parser leaves commas out of a quoted decimal: "1,5" would be 15. Under this one,
# where a comma is no part of a number, it takes no such text.
STRICT_DECIMALS = "'locale', 'de-CH'"
_DECIMAL_PRECISION_MAX = 38
# PostgreSQL has no year 0. What is finer than a microsecond must be zero.
_DAY = "(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}"
_SECONDS = r"[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6}+0*+)?)?"
_DATE = f"^{_DAY}$"
_TIME = f"^{_SECONDS}$"
_TIMESTAMP = f"^{_DAY}[ T]{_SECONDS}$"
_TIMESTAMP_ZONE = rf"^{_DAY}[ T]{_SECONDS}\s*(Z|[+-][0-9]{{2}}(:?[0-9]{{2}})?)?$"


def spelling_of(field: StructField) -> str | None:
    """How a field was declared, where that is not its name."""
    return field.metadata.get(SPELLING)


def names_of(field: StructField) -> tuple[str, ...]:
    """The names that a record's field may have, the first one going first."""
    spelling = spelling_of(field)
    return (field.name,) if spelling is None else (spelling, field.name)


def carrier(kind: DataType) -> str:
    """The DDL of the type that Spark's parser fills. A field is called as it was declared."""
    if isinstance(kind, (ByteType, ShortType)):
        return "int"
    if isinstance(kind, DecimalType):
        # All 38 digits: those left of the point as declared, the rest to the right, so that a loss can be seen.
        return f"decimal({_DECIMAL_PRECISION_MAX},{carried_scale(kind)})"
    if isinstance(kind, (DateType, TimeType, TimestampType, TimestampNTZType, BinaryType, VarcharType, StringType)):
        return "string"
    if isinstance(kind, FloatType):
        return "double"
    if isinstance(kind, ArrayType):
        return f"array<{carrier(kind.elementType)}>"
    if isinstance(kind, MapType):
        return f"map<string,{carrier(kind.valueType)}>"
    if isinstance(kind, StructType):
        return "struct<" + ",".join(f"{quoted(names_of(f)[0])}:{carrier(f.dataType)}" for f in kind.fields) + ">"
    return kind.simpleString()


def carried_scale(kind: DecimalType) -> int:
    """How many digits after the point a carrier keeps; the parser rounds what is beyond."""
    return int(_DECIMAL_PRECISION_MAX - (kind.precision - kind.scale))


def spelled(kind: DataType) -> str:
    """The type's own DDL, as CAST takes it."""
    if isinstance(kind, VarcharType):
        return "string"
    if isinstance(kind, ArrayType):
        return f"array<{spelled(kind.elementType)}>"
    if isinstance(kind, MapType):
        return f"map<{spelled(kind.keyType)},{spelled(kind.valueType)}>"
    if isinstance(kind, StructType):
        return "struct<" + ",".join(f"{quoted(f.name)}:{spelled(f.dataType)}" for f in kind.fields) + ">"
    return kind.simpleString()


def convert(kind: DataType, value: str, depth: int = 0) -> str:
    """The typed value of a carrier that passed :func:`valid` (NULL stays NULL)."""
    if isinstance(kind, (ByteType, ShortType, DecimalType, FloatType)):
        return f"try_cast({value} as {kind.simpleString()})"
    if isinstance(kind, DateType):
        return _if_matches(value, _DATE, f"try_cast({value} as date)")
    if isinstance(kind, TimeType):
        return _if_matches(value, _TIME, f"try_cast({value} as time(6))")
    if isinstance(kind, TimestampNTZType):
        return _if_matches(value, _TIMESTAMP, f"try_cast({value} as timestamp_ntz)")
    if isinstance(kind, TimestampType):
        return _if_matches(value, _TIMESTAMP_ZONE, f"try_cast({value} as timestamp)")
    if isinstance(kind, BinaryType):
        return f"try_to_binary({value}, 'base64')"
    if not needs_conversion(kind):
        return value
    if isinstance(kind, ArrayType):
        return f"transform({value}, e{depth} -> {convert(kind.elementType, f'e{depth}', depth + 1)})"
    if isinstance(kind, MapType):
        if isinstance(kind.keyType, StringType) and not needs_conversion(kind.valueType):
            return one_entry_a_key(value)
        pair = (
            f"struct({from_text(kind.keyType, f'e{depth}.key')} as key, "
            f"{convert(kind.valueType, f'e{depth}.value', depth + 1)} as value)"
        )
        pairs = f"transform(map_entries({value}), e{depth} -> {pair})"
        # A record with a key that is none is rejected, but its value is evaluated all the same, and must not fail.
        return f"map_from_entries(filter({pairs}, e{depth} -> e{depth}.key IS NOT NULL))"
    if isinstance(kind, StructType):
        parts = ", ".join(f"{text(f.name)}, {convert(f.dataType, carried_field(value, f), depth)}" for f in kind.fields)
        return f"CASE WHEN {value} IS NOT NULL THEN named_struct({parts}) END"
    return value


def one_entry_a_key(value: str) -> str:
    """A map as the parser gives it, in which a key may be there twice: the last one counts, as the session is set."""
    return f"map_from_entries(map_entries({value}))"


def carried_field(value: str, field: StructField) -> str:
    """A field of a carrier."""
    return f"{value}.{quoted(names_of(field)[0])}"


def valid(kind: DataType, value: str, if_zero: str, depth: int = 0) -> str:
    """A condition that is true only where the carrier is not NULL and loses nothing by :func:`convert`. It does not
    see what the parser has lost before (:mod:`spark_sinks.decode.json_text`); ``if_zero`` is whether a FLOAT or DOUBLE
    that is zero was one."""
    if isinstance(kind, ByteType):
        return f"({value} BETWEEN -128 AND 127)"
    if isinstance(kind, ShortType):
        return f"({value} BETWEEN -32768 AND 32767)"
    if isinstance(kind, (DoubleType, FloatType)):
        return in_range(kind, value, if_zero)
    if isinstance(kind, DecimalType):
        return f"(try_cast({value} as {kind.simpleString()}) = {value})"
    if isinstance(kind, VarcharType):
        return f"(char_length({value}) <= {kind.length})"
    if isinstance(kind, (DateType, TimeType, TimestampType, TimestampNTZType, BinaryType)):
        return f"({convert(kind, value)} IS NOT NULL)"
    if isinstance(kind, ArrayType):
        inner = _valid_or_null(kind.elementType, f"v{depth}", if_zero, depth + 1)
        return f"({value} IS NOT NULL)" if inner is None else f"forall({value}, v{depth} -> {inner})"
    if isinstance(kind, MapType):
        tests: list[str] = [
            test
            for test in (
                None
                if isinstance(kind.keyType, StringType)
                else f"{from_text(kind.keyType, f'v{depth}.key')} IS NOT NULL",
                _valid_or_null(kind.valueType, f"v{depth}.value", if_zero, depth + 1),
            )
            if test is not None
        ]
        if not tests:
            return f"({value} IS NOT NULL)"
        return f"forall(map_entries({value}), v{depth} -> {' AND '.join(tests)})"
    if isinstance(kind, StructType):
        nested = [_valid_or_null(f.dataType, carried_field(value, f), if_zero, depth) for f in kind.fields]
        kept = [test for test in nested if test is not None]
        return "(" + " AND ".join([f"{value} IS NOT NULL", *kept]) + ")"
    return f"({value} IS NOT NULL)"


def from_text(kind: DataType, value: str) -> str:
    """The typed value of a text without loss, else NULL: the coercions of the docs ("12" into BIGINT is one)."""
    if isinstance(kind, (StringType, VarcharType)):
        fits = f" AND {valid(kind, value, 'true')}" if isinstance(kind, VarcharType) else ""
        return f"CASE WHEN NOT contains({value}, {NUL}){fits} THEN {value} END"
    trimmed = f"trim({value})"
    if isinstance(kind, (ByteType, ShortType, IntegerType, LongType, DecimalType)):
        return exact_number(kind, trimmed)
    if isinstance(kind, (DoubleType, FloatType)):
        return approximate_number(kind, trimmed)
    if isinstance(kind, BooleanType):
        return f"CASE lower({trimmed}) WHEN 'true' THEN true WHEN 'false' THEN false END"
    return convert(kind, value if isinstance(kind, BinaryType) else trimmed)


def needs_conversion(kind: DataType) -> bool:
    """Whether a carrier is not the value itself."""
    if isinstance(kind, ArrayType):
        return needs_conversion(kind.elementType)
    if isinstance(kind, StructType):
        return any(spelling_of(f) is not None or needs_conversion(f.dataType) for f in kind.fields)
    return isinstance(kind, MapType) or carrier(kind) != spelled(kind)


def leaves(kind: DataType, name: str) -> Iterator[tuple[str | None, DataType]]:
    """The scalars that a value is made of, with the name that stands before each in JSON; the values of an array or
    map have none."""
    if isinstance(kind, ArrayType):
        yield from leaves(kind.elementType, "")
    elif isinstance(kind, MapType):
        yield from leaves(kind.valueType, "")
    elif isinstance(kind, StructType):
        for field in kind.fields:
            for each in names_of(field):
                yield from leaves(field.dataType, each)
    else:
        yield name or None, kind


def is_nested(kind: DataType) -> bool:
    return isinstance(kind, (ArrayType, MapType, StructType))


def _valid_or_null(kind: DataType, value: str, if_zero: str, depth: int) -> str | None:
    """For nested values, where NULL is a value: None when every carrier value is fine."""
    test = valid(kind, value, if_zero, depth)
    return None if test == f"({value} IS NOT NULL)" else f"({value} IS NULL OR {test})"


def _if_matches(value: str, pattern: str, then: str) -> str:
    return f"CASE WHEN {value} RLIKE {text(pattern)} THEN {then} END"
