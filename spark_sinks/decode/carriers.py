"""How a type travels through Spark's JSON parser, and which of the parser's values are kept.

Spark's parser wraps small integers, rounds decimals and reads dates leniently. So each type has a *carrier* type that
the parser fills without loss, a test whether the carrier's value is one of the declared type, and the conversion.
"""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    TimeType,
    VarcharType,
)

from mvserver.limits import NUMBER_TEXT_BYTES_MAX
from spark_sinks.decode.columns import quoted, text

# Under its default locale Spark's parser leaves commas out of a quoted decimal: "1,5" would be 15. Under this one,
# where a comma is no part of a number, it takes no such text.
STRICT_DECIMALS = "'locale', 'de-CH'"
_DECIMAL_PRECISION_MAX = 38
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_TIME = r"^[0-9]{2}:[0-9]{2}(:[0-9]{2}(\\.[0-9]{1,6})?)?$"
_TIMESTAMP = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\\.[0-9]{1,9})?)?$"
_TIMESTAMP_ZONE = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\\.[0-9]{1,9})?)?"
    r"\\s*(Z|[+-][0-9]{2}(:?[0-9]{2})?)?$"
)


def carrier(kind: DataType) -> str:
    """The DDL of the type that Spark's parser fills."""
    if isinstance(kind, (ByteType, ShortType)):
        return "int"
    if isinstance(kind, DecimalType):
        # All 38 digits: those left of the point as declared, the rest to the right, so that a loss can be seen.
        return f"decimal({_DECIMAL_PRECISION_MAX},{_DECIMAL_PRECISION_MAX - (kind.precision - kind.scale)})"
    if isinstance(kind, (DateType, TimeType, TimestampType, TimestampNTZType, BinaryType, VarcharType, StringType)):
        return "string"
    if isinstance(kind, FloatType):
        return "double"
    if isinstance(kind, ArrayType):
        return f"array<{carrier(kind.elementType)}>"
    if isinstance(kind, MapType):
        return f"map<string,{carrier(kind.valueType)}>"
    if isinstance(kind, StructType):
        return "struct<" + ",".join(f"{quoted(f.name)}:{carrier(f.dataType)}" for f in kind.fields) + ">"
    return kind.simpleString()


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
    if isinstance(kind, ArrayType):
        if not needs_conversion(kind.elementType):
            return value
        return f"transform({value}, e{depth} -> {convert(kind.elementType, f'e{depth}', depth + 1)})"
    if isinstance(kind, MapType):
        if isinstance(kind.keyType, StringType) and not needs_conversion(kind.valueType):
            return value
        pair = (
            f"struct({from_text(kind.keyType, f'e{depth}.key')} as key, "
            f"{convert(kind.valueType, f'e{depth}.value', depth + 1)} as value)"
        )
        return f"map_from_entries(transform(map_entries({value}), e{depth} -> {pair}))"
    if isinstance(kind, StructType):
        if not any(needs_conversion(f.dataType) for f in kind.fields):
            return value
        parts = ", ".join(
            f"{text(f.name)}, {convert(f.dataType, f'{value}.{quoted(f.name)}', depth)}" for f in kind.fields
        )
        return f"CASE WHEN {value} IS NOT NULL THEN named_struct({parts}) END"
    return value


def valid(kind: DataType, value: str, depth: int = 0) -> str:
    """A condition that is true only where the carrier is not NULL and loses nothing by :func:`convert`."""
    if isinstance(kind, ByteType):
        return f"({value} BETWEEN -128 AND 127)"
    if isinstance(kind, ShortType):
        return f"({value} BETWEEN -32768 AND 32767)"
    if isinstance(kind, (DoubleType, FloatType)):
        bound = "1.7976931348623157E308D" if isinstance(kind, DoubleType) else "3.4028234663852886E38D"
        return f"({value} BETWEEN -{bound} AND {bound})"
    if isinstance(kind, DecimalType):
        return f"(try_cast({value} as {kind.simpleString()}) = {value})"
    if isinstance(kind, VarcharType):
        return f"(char_length({value}) <= {kind.length})"
    if isinstance(kind, (DateType, TimeType, TimestampType, TimestampNTZType, BinaryType)):
        return f"({convert(kind, value)} IS NOT NULL)"
    if isinstance(kind, ArrayType):
        inner = _valid_or_null(kind.elementType, f"v{depth}", depth + 1)
        return f"({value} IS NOT NULL)" if inner is None else f"forall({value}, v{depth} -> {inner})"
    if isinstance(kind, MapType):
        tests: list[str] = [
            test
            for test in (
                None
                if isinstance(kind.keyType, StringType)
                else f"{from_text(kind.keyType, f'v{depth}.key')} IS NOT NULL",
                _valid_or_null(kind.valueType, f"v{depth}.value", depth + 1),
            )
            if test is not None
        ]
        if not tests:
            return f"({value} IS NOT NULL)"
        return f"forall(map_entries({value}), v{depth} -> {' AND '.join(tests)})"
    if isinstance(kind, StructType):
        nested = [_valid_or_null(f.dataType, f"{value}.{quoted(f.name)}", depth) for f in kind.fields]
        kept = [test for test in nested if test is not None]
        return "(" + " AND ".join([f"{value} IS NOT NULL", *kept]) + ")"
    return f"({value} IS NOT NULL)"


def from_text(kind: DataType, value: str) -> str:
    """The typed value of a text without loss, else NULL: the coercions of the docs ("12" into BIGINT is one)."""
    trimmed = f"trim({value})"
    name = kind.simpleString()
    if isinstance(kind, (StringType, VarcharType)):
        return value if isinstance(kind, StringType) else f"CASE WHEN {valid(kind, value)} THEN {value} END"
    if isinstance(kind, DecimalType):
        return _exactly(trimmed, carrier(kind), name)
    if name in ("tinyint", "smallint", "int", "bigint"):
        return _exactly(trimmed, "decimal(38,18)", name)
    if isinstance(kind, (DoubleType, FloatType)):
        number = f"try_cast({trimmed} as double)"
        return (
            f"CASE WHEN {_is_number(trimmed)} AND {valid(kind, number)} THEN try_cast({number} as {name}) "
            f"WHEN lower({trimmed}) IN ('nan', 'infinity', '+infinity', '-infinity') "
            f"THEN try_cast({trimmed} as {name}) END"
        )
    if name == "boolean":
        return f"CASE lower({trimmed}) WHEN 'true' THEN true WHEN 'false' THEN false END"
    if isinstance(kind, (ArrayType, MapType, StructType)):
        options = f"map('columnNameOfCorruptRecord', '_c', 'allowSingleQuotes', 'false', {STRICT_DECIMALS})"
        wrapped = f"from_json(concat('{{\"v\":', {value}, '}}'), {text(f'v {carrier(kind)}, _c string')}, {options})"
        # A one-element array binds the parsed value to a name, so that it is parsed once.
        body = f"CASE WHEN w._c IS NULL AND {valid(kind, 'w.v')} THEN {convert(kind, 'w.v')} END"
        return f"transform(array({wrapped}), w -> {body})[0]"
    return convert(kind, value if isinstance(kind, BinaryType) else trimmed)


def needs_conversion(kind: DataType) -> bool:
    return carrier(kind) != spelled(kind)


def outgrows_double(kind: DataType) -> bool:
    """Whether values of the type may have more digits than a double keeps."""
    if isinstance(kind, ArrayType):
        return outgrows_double(kind.elementType)
    if isinstance(kind, MapType):
        return outgrows_double(kind.valueType)
    if isinstance(kind, StructType):
        return any(outgrows_double(f.dataType) for f in kind.fields)
    return isinstance(kind, (DecimalType, LongType))


def is_nested(kind: DataType) -> bool:
    return isinstance(kind, (ArrayType, MapType, StructType))


def _valid_or_null(kind: DataType, value: str, depth: int) -> str | None:
    """For nested values, where NULL is a value: None when every carrier value is fine."""
    test = valid(kind, value, depth)
    return None if test == f"({value} IS NOT NULL)" else f"({value} IS NULL OR {test})"


def _if_matches(value: str, pattern: str, then: str) -> str:
    return f"CASE WHEN {value} RLIKE '{pattern}' THEN {then} END"


def _exactly(value: str, wide_type: str, name: str) -> str:
    """A number in text as type ``name`` where that keeps its value."""
    wide = f"try_cast({value} as {wide_type})"
    return f"CASE WHEN {_is_number(value)} AND try_cast({wide} as {name}) = {wide} THEN try_cast({wide} as {name}) END"


def _is_number(value: str) -> str:
    """A long text is none: the pattern, and the reading of its digits, would take the square of its length."""
    pattern = "^[+-]?([0-9]+\\\\.?[0-9]*|\\\\.[0-9]+)([eE][+-]?[0-9]+)?$"
    return f"(octet_length({value}) <= {NUMBER_TEXT_BYTES_MAX} AND {value} RLIKE '{pattern}')"
