"""The table of explicit casts, and PostgreSQL's meaning of each as Spark SQL text.

Where Spark's cast has the same meaning it is used; the others say what PostgreSQL does: doubles round half to even on
their way to integers, numerics half away from zero, booleans know PostgreSQL's spellings, doubles print in their
shortest form and in PostgreSQL's notation, and so on. With ``safe`` (TRY_CAST) what fails is NULL.
"""

from __future__ import annotations

from mvserver import limits, sqlstates
from mvserver.compiler.capabilities.spark_text import FAILURE_MARK, bound_once, failure, spark_type, string
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
        read = f"{cast}(format_string('%.{digits}e', mv_wide) AS {spark_type(target)})"  # which writes NULL as a word
        return bound_once("mv_wide", f"CAST({text} AS DOUBLE)", f"CASE WHEN mv_wide IS NOT NULL THEN {read} END")
    if one is Kind.VARCHAR:
        return _from_text(text, target, cast, safe=safe)
    if two is Kind.TIME and one in _DATES:
        return f"CAST(date_format({text}, 'HH:mm:ss.SSSSSS') AS TIME(6))"
    if two is Kind.FLOAT and one in (Kind.DOUBLE, Kind.DECIMAL):
        return _to_real(text, safe=safe)
    if two is Kind.FLOAT and one in (Kind.INTEGER, Kind.BIGINT):
        # Spark leaves the cast to FLOAT out where one to DOUBLE follows, and with it the digits that it takes away.
        return bound_once("mv_real", f"CAST({text} AS FLOAT)", "mv_real")
    return f"{cast}({text} AS {spark_type(target)})"


def _fail(sqlstate: str, message: str, *, safe: bool) -> str:
    return "NULL" if safe else failure(sqlstate, message)


def _to_real(text: str, *, safe: bool) -> str:
    def out_of_range(how: str) -> str:
        return _fail(sqlstates.NUMERIC_VALUE_OUT_OF_RANGE, f"value out of range: {how}", safe=safe)

    real = "CAST(mv_wide AS FLOAT)"
    checked = (
        f"CASE WHEN abs({real}) = CAST('Infinity' AS FLOAT) AND abs(mv_wide) < CAST('Infinity' AS DOUBLE) "
        f"THEN {out_of_range('overflow')} WHEN {real} = 0 AND mv_wide <> 0 THEN {out_of_range('underflow')} "
        f"ELSE {real} END"
    )
    return bound_once("mv_wide", f"CAST({text} AS DOUBLE)", checked)


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
        # Java would also read digits of other scripts, type suffixes and hexadecimal: a "?" makes the cast refuse them.
        approximate = target.is_approximate
        text = f"regexp_replace({text}, {string(_JAVA_FLOAT if approximate else _NO_NUMBER)}, '?')"
        if approximate:
            return bound_once("mv_text", text, _in_range(target, cast, safe=safe))
    if kind is Kind.VARBINARY:
        return bound_once("mv_text", text, _bytes(safe=safe))
    if kind in _DATES:
        return bound_once("mv_text", text, _moment(target, cast, safe=safe))
    if kind is Kind.TIME:
        return bound_once("mv_text", text, _time(cast, safe=safe))
    return f"{cast}({text} AS {spark_type(target)})"


_NO_NUMBER = r"[^\t-\r -~]"
_JAVA_FLOAT = rf"(?<![nN])[dDfF]\s*$|[xX]|{_NO_NUMBER}"


def _in_range(target: SqlType, cast: str, *, safe: bool) -> str:
    """The number of ``mv_text``; Java makes Infinity or 0 of one that is too large or too small."""
    infinite, some = "lower(mv_text) LIKE '%inf%'", f"mv_text RLIKE {string('^[^eE]*[1-9]')}"
    message = f"value is out of range for type {postgres_name(target)}"
    failed = _fail(sqlstates.NUMERIC_VALUE_OUT_OF_RANGE, message, safe=safe)
    changed = f"abs(mv_number) = CAST('Infinity' AS DOUBLE) AND NOT {infinite} OR mv_number = 0 AND {some}"
    return bound_once("mv_number", f"{cast}(mv_text AS {spark_type(target)})", f"IF({changed}, {failed}, mv_number)")


# Spark would also read years and months alone, times of today, years before 1, and zones that PostgreSQL reads in
# another way. It cuts further digits of a second off, which PostgreSQL rounds.
_MOMENT = (
    r"^\s*(?!0000)[0-9]{4,6}-[0-9]{1,2}-[0-9]{1,2}"
    r"([ T][0-9]{1,2}:[0-9]{1,2}(:[0-9]{1,2}([.][0-9]*)?)?\s*(Z|UTC|[+-](0?[0-9]|1[0-5])(:?[0-9]{2})?)?)?\s*$"
)


# Half to even, as PostgreSQL.
_ROUNDED_UP = "[.][0-9]{6}([6-9]|5[0-9]*[1-9])|[.][0-9]{5}[13579]50*([^0-9]|$)"


def _moment(target: SqlType, cast: str, *, safe: bool) -> str:
    """The date or timestamp of ``mv_text``."""
    prefix = (
        f"{FAILURE_MARK}{sqlstates.INVALID_DATETIME_FORMAT}:invalid input syntax for type {postgres_name(target)}: "
    )
    wrong = "NULL" if safe else f"raise_error(concat({string(prefix)}, '\"', left(mv_text, 1000), '\"'))"
    if target.kind is Kind.DATE:
        read = f"CAST({cast}(mv_text AS TIMESTAMP_NTZ) AS DATE)"
    else:
        rounded = f"IF(mv_text RLIKE {string(_ROUNDED_UP)}, INTERVAL '0.000001' SECOND, INTERVAL '0' SECOND)"
        read = f"({cast}(mv_text AS {spark_type(target)}) + {rounded})"
    return f"CASE WHEN mv_text RLIKE {string(_MOMENT)} THEN {read} WHEN mv_text IS NOT NULL THEN {wrong} END"


def _time(cast: str, *, safe: bool) -> str:
    """The time of ``mv_text``; Spark's times have no 24:00."""
    moment = f"({cast}(concat('1970-01-01 ', trim(mv_text)) AS TIMESTAMP_NTZ) + INTERVAL '0.000001' SECOND)"
    wrong = _fail(sqlstates.DATETIME_FIELD_OVERFLOW, "date/time field value out of range", safe=safe)
    rounded = f"IF(CAST({moment} AS DATE) > DATE '1970-01-01', {wrong}, date_format({moment}, 'HH:mm:ss.SSSSSS'))"
    return f"{cast}(IF(mv_text RLIKE {string(_ROUNDED_UP)}, {rounded}, mv_text) AS TIME(6))"


def _bytes(*, safe: bool) -> str:
    """The bytes of ``mv_text``: hexadecimal digits, or its own. Escapes of the older form are refused."""

    digits = "substring(mv_text, 3)"
    wrong = _fail(sqlstates.INVALID_PARAMETER_VALUE, "invalid hexadecimal data", safe=safe)
    odd = f"octet_length(mv_text) % 2 = 1 OR {digits} RLIKE '[^0-9a-fA-F]'"
    hexadecimal = f"IF({odd}, {wrong}, unhex({digits}))"
    escaped = _fail(sqlstates.INVALID_TEXT_REPRESENTATION, "invalid input syntax for type bytea", safe=safe)
    own = f"IF(instr(mv_text, {string(chr(92))}) > 0, {escaped}, encode(mv_text, 'UTF-8'))"
    return f"IF(startswith(mv_text, {string(chr(92) + 'x')}), {hexadecimal}, {own})"


def to_text(text: str, source: SqlType) -> str:
    """PostgreSQL's text of a value."""
    kind = source.kind
    if kind in (Kind.FLOAT, Kind.DOUBLE):
        return _float_text(text, kind)
    if kind is Kind.VARBINARY:
        return f"concat({string(chr(92) + 'x')}, lower(hex({text})))"
    if kind in _DATES:  # Spark writes a sign before years of five digits
        zone = "'+00'" if kind is Kind.TIMESTAMP_LTZ else "''"
        return f"concat(trim(LEADING '+' FROM CAST({text} AS STRING)), {zone})"
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
