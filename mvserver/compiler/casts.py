"""The table of explicit casts, and PostgreSQL's meaning of each as Spark SQL text.

Where Spark's cast has the same meaning it is used; the others say what PostgreSQL does: doubles round half to even on
their way to integers, numerics half away from zero, booleans know PostgreSQL's spellings, doubles print in their
shortest form and in PostgreSQL's notation, and so on. With ``safe`` (TRY_CAST) what fails is NULL.
"""

from __future__ import annotations

from mvserver import limits, sqlstates
from mvserver.compiler.capabilities.spark_text import failure, spark_type, string
from mvserver.compiler.type_names import postgres_name
from mvserver.errors import SqlError
from mvserver.sql.types import Kind, SqlType

_INTEGERS = frozenset({Kind.TINYINT, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT})
_NUMBERS = _INTEGERS | {Kind.FLOAT, Kind.DOUBLE, Kind.DECIMAL}
_DATES = frozenset({Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_LTZ})
_FROM_TEXT = _NUMBERS | _DATES | {Kind.BOOLEAN, Kind.VARCHAR, Kind.VARBINARY, Kind.TIME}


def castable(source: SqlType, target: SqlType) -> bool:
    """PostgreSQL's casts between the types we share with it; TINYINT casts as SMALLINT does."""
    one, two = source.kind, target.kind
    if one is Kind.NULL or source == target:
        return True
    if one is Kind.VARCHAR:
        return two in _FROM_TEXT
    if two is Kind.VARCHAR:
        return one in _FROM_TEXT
    if one in _NUMBERS and two in _NUMBERS:
        return True
    if Kind.BOOLEAN in (one, two):
        return Kind.INTEGER in (one, two)
    if one in _DATES and two in _DATES:
        return True
    if two is Kind.TIME:
        return one in (Kind.TIMESTAMP, Kind.TIMESTAMP_LTZ)
    if one is Kind.ARRAY and two is Kind.ARRAY and source.element and target.element:
        return source.element.is_numeric and target.element.is_numeric and castable(source.element, target.element)
    return False


def check_cast(source: SqlType, target: SqlType, position: int | None) -> None:
    if not castable(source, target):
        raise SqlError(
            sqlstates.CANNOT_COERCE,
            f"cannot cast type {postgres_name(source)} to {postgres_name(target)}",
            position=position,
        )


def cast_text(text: str, source: SqlType, target: SqlType, *, safe: bool = False) -> str:
    """``text``, of type ``source``, as Spark SQL text of type ``target``."""
    one, two = source.kind, target.kind
    cast = "TRY_CAST" if safe else "CAST"
    if two is Kind.VARCHAR:
        written = text if one is Kind.VARCHAR else to_text(text, source)
        return written if target.length is None else f"substring({written}, 1, {target.length})"
    if two in _INTEGERS and one in (Kind.FLOAT, Kind.DOUBLE):
        return f"{cast}(rint(CAST({text} AS DOUBLE)) AS {spark_type(target)})"
    if two in _INTEGERS and one is Kind.DECIMAL:
        return f"{cast}(round({text}, 0) AS {spark_type(target)})"
    if two is Kind.DECIMAL and one in (Kind.FLOAT, Kind.DOUBLE):
        # PostgreSQL takes the 15 (6) digits that a double (real) surely has.
        digits = 14 if one is Kind.DOUBLE else 5
        return f"{cast}(format_string('%.{digits}e', CAST({text} AS DOUBLE)) AS {spark_type(target)})"
    if one is Kind.VARCHAR:
        return _from_text(text, target, cast, safe=safe)
    if two is Kind.TIME and one in _DATES:
        return f"CAST(date_format({text}, 'HH:mm:ss.SSSSSS') AS TIME(6))"
    if two is Kind.FLOAT and one in (Kind.DOUBLE, Kind.DECIMAL):
        return _to_real(text, safe=safe)
    return f"{cast}({text} AS {spark_type(target)})"


def _fail(sqlstate: str, message: str, *, safe: bool) -> str:
    return "NULL" if safe else failure(sqlstate, message)


def _to_real(text: str, *, safe: bool) -> str:
    wide = f"CAST({text} AS DOUBLE)"
    broken = f"abs(CAST({wide} AS FLOAT)) = CAST('Infinity' AS FLOAT) AND abs({wide}) < CAST('Infinity' AS DOUBLE)"
    failed = _fail(sqlstates.NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow", safe=safe)
    return f"IF({broken}, {failed}, CAST({wide} AS FLOAT))"


def _from_text(text: str, target: SqlType, cast: str, *, safe: bool) -> str:
    kind = target.kind
    if kind is Kind.BOOLEAN:
        word = f"lower(trim({text}))"
        spelled = (
            f"CASE WHEN {word} IN ('t','tr','tru','true','y','ye','yes','on','1') THEN 'true' "
            f"WHEN {word} IN ('f','fa','fal','fals','false','n','no','of','off','0') THEN 'false' ELSE {text} END"
        )
        return f"{cast}({spelled} AS BOOLEAN)"
    if target.is_numeric:
        # Reading digits takes the square of their number; so long a text is no number of any type here.
        text = f"IF(octet_length({text}) > {limits.NUMBER_TEXT_BYTES_MAX}, concat(left({text}, 50), '...'), {text})"
    if kind in (Kind.FLOAT, Kind.DOUBLE):
        # Java would also read type suffixes and hexadecimal: a "?" makes the cast refuse them.
        plain = f"regexp_replace({text}, {string(_JAVA_FLOAT)}, '?')"
        return f"{cast}({plain} AS {spark_type(target)})"
    if kind is Kind.VARBINARY:
        hexadecimal = f"unhex(substring({text}, 3))"
        return f"IF({text} LIKE {string(chr(92) * 2 + 'x%')}, {hexadecimal}, encode({text}, 'UTF-8'))"
    if kind is Kind.DATE:
        return f"CAST({cast}({text} AS TIMESTAMP_NTZ) AS DATE)"
    return f"{cast}({text} AS {spark_type(target)})"


_JAVA_FLOAT = r"(?<![nN])[dDfF]\s*$|[xX]"


def to_text(text: str, source: SqlType) -> str:
    """PostgreSQL's text of a value."""
    kind = source.kind
    if kind in (Kind.FLOAT, Kind.DOUBLE):
        return _float_text(text, kind)
    if kind is Kind.VARBINARY:
        return f"concat({string(chr(92) + 'x')}, lower(hex({text})))"
    if kind is Kind.TIMESTAMP_LTZ:
        return f"concat(CAST({text} AS STRING), '+00')"
    return f"CAST({text} AS STRING)"


_POINT_ZERO = string("[.]0$")
_POINT_ZEROS = string("[.]?0+$")
_ZERO_BEFORE_E = string("[.]0E")
_POSITIVE_E = string("E([0-9])")
_SEVEN_DIGITS = string("^(-?)([0-9])([0-9]{6})(?:[.]([0-9]+))?$")
_ZEROS_BEFORE_E = string("[.]?0+e")
_ONE_DIGIT_E = string("E([+-])([0-9])$")


def _float_text(text: str, kind: Kind) -> str:
    """Java writes 1.0 and 1.0E10; PostgreSQL 1 and 10000000000, with an exponent from 1e+15 (real: 1e+06) on and below
    1e-04."""
    java = f"CAST({text} AS STRING)"
    limit = "1e15D" if kind is Kind.DOUBLE else "1e6D"
    wide = f"abs(CAST({text} AS DOUBLE))"
    plain = f"regexp_replace({java}, {_POINT_ZERO}, '')"
    decimal = f"regexp_replace(CAST(CAST({java} AS DECIMAL(38,22)) AS STRING), {_POINT_ZEROS}, '')"
    signed = f"regexp_replace(regexp_replace({java}, {_ZERO_BEFORE_E}, 'E'), {_POSITIVE_E}, 'E+$1')"
    scientific = f"lower(regexp_replace({signed}, {_ONE_DIGIT_E}, 'E$10$2'))"
    if kind is Kind.FLOAT:  # from 1e6 to 1e7 Java still writes all digits
        moved = f"regexp_replace({plain}, {_SEVEN_DIGITS}, '$1$2.$3$4e+06')"
        plain = f"IF({wide} >= 1e6D, regexp_replace({moved}, {_ZEROS_BEFORE_E}, 'e'), {plain})"
    return (
        f"CASE WHEN {java} NOT LIKE '%E%' THEN {plain} "
        f"WHEN {wide} >= 1e-4D AND {wide} < {limit} THEN {decimal} ELSE {scientific} END"
    )
