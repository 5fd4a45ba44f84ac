"""Functions of the dialect in the words of the first one. What is in no table here is refused by name."""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mvserver import limits, sqlstates
from mvserver.lenses.problems import ProblemError, problem, unsupported
from mvserver.lenses.program import Call, CastTo, Literal, Selection
from mvserver.lenses.written import Written, joined, written
from mvserver.quoting import quoted
from mvserver.sql.names import DRAWN_INTEGER, OWN_FUNCTION


class Nulls(enum.Enum):
    """What NULL arguments do to the result. The original refuses nullable arguments of STRICT and MAYBE."""

    STRICT = "NULL where an argument is"
    MAYBE = "may be NULL of any arguments"
    FIRST = "NULL where all arguments are"
    NEVER = "takes NULL, and never is NULL"
    ALWAYS = "takes NULL, and may be NULL"


@dataclass(frozen=True)
class Function:
    """``template`` has ``{0}`` … for arguments, ``{*}`` for all of them, and ``{@}`` for the place of the call. With
    ``of_time``, a record's ``_meta.timestamp`` is taken as the instant that it is."""

    template: str
    least: int
    most: int
    nulls: Nulls = Nulls.STRICT
    of_time: bool = False
    with_one: str | None = None  # the template of a call with one argument


def _plain(name: str, least: int, most: int | None = None, nulls: Nulls = Nulls.STRICT) -> Function:
    return Function(f"{name}({{*}})", least, least if most is None else most, nulls)


def _timed(template: str, arguments: int = 1, nulls: Nulls = Nulls.STRICT) -> Function:
    return Function(template, arguments, arguments, nulls, of_time=True)


def _chosen(name: str) -> Function:
    """An aggregate of the first so many values: of one where nothing is said."""
    return Function(f"{name}({{*}})", 1, 2, with_one=f"{name}({{0}}, 1)")


def _part(name: str) -> Function:
    return _timed(f"CAST({name}({{0}}) AS INTEGER)")


def _present(text: str) -> Function:
    """What is not of the record: the present time, or chance."""
    return Function(text, 0, 0, Nulls.NEVER)


_MANY = 64
_WHITE = r"[\s\v\x{1c}-\x{1f}\x{1680}\x{2000}-\x{2006}\x{2008}-\x{200a}\x{2028}\x{2029}\x{205f}\x{3000}]+"
_PARSED = Function("to_timestamp_ltz({0}, {1})", 2, 2, Nulls.MAYBE)
_TEXTS: Mapping[str, Function] = {
    "ABBREVIATE": _plain("abbreviate", 2),
    "BASE64": _plain("to_base64", 1),
    "CAPITALIZE": Function("(upper(left({0}, 1)) || substring({0}, 2))", 1, 1),
    "CENTER": _plain("center", 3),
    "CHOP": Function("left({0}, -1)", 1, 1),
    "CONCAT": _plain("concat", 1, _MANY),
    "CONCATENATE": _plain("concat", 1, _MANY),
    "CONTAINS": Function("(strpos({0}, {1}) > 0)", 2, 2),
    "DECODE64": _plain("from_base64", 1),
    "DELETEWHITESPACE": Function(f"regexp_replace({{0}}, '{_WHITE}', '', 'g')", 1, 1),
    "DIGITS": Function(r"regexp_replace({0}, '\P{Nd}+', '', 'g')", 1, 1),
    "DROPLEFT": Function("substring({0}, ({1}) + 1)", 2, 2),
    "DROPRIGHT": Function("left({0}, greatest(length({0}) - ({1}), 0))", 2, 2),
    "ENDSWITH": _plain("endswith", 2),
    "INDEXOF": Function("(strpos({0}, {1}) - 1)", 2, 2),
    "LEFTPAD": _plain("lpad", 3),
    "LEN": _plain("length", 1),
    "LENGTH": _plain("length", 1),
    "LOWER": _plain("lower", 1),
    "LOWERCASE": _plain("lower", 1),
    "LPAD": _plain("lpad", 3),
    "MKSTRING": Function("CAST({0} AS VARCHAR)", 1, 1),
    "REGEX": _plain("regexp_match", 2, nulls=Nulls.MAYBE),
    "REGEXP": _plain("regexp_match", 2, nulls=Nulls.MAYBE),
    "REGEX_MATCHES": _plain("regexp_groups", 2),
    "REPLACE": _plain("replace", 3),
    "REVERSE": _plain("reverse", 1),
    "RIGHTPAD": _plain("rpad", 3),
    "RPAD": _plain("rpad", 3),
    "STARTSWITH": _plain("starts_with", 2),
    "STRIPACCENTS": _plain("strip_accents", 1),
    "SUBSTR": _plain("text_slice", 2, 3),
    "SUBSTRING": _plain("text_slice", 2, 3),
    "SWAPCASE": _plain("swapcase", 1),
    "TAKELEFT": _plain("left", 2),
    "TAKERIGHT": _plain("right", 2),
    "TRIM": _plain("btrim", 1),
    "TRUNCATE": Function("left({0}, greatest({1}, 0))", 2, 2),
    "UNCAPITALIZE": Function("(lower(left({0}, 1)) || substring({0}, 2))", 1, 1),
    "UPPER": _plain("upper", 1),
    "UPPERCASE": _plain("upper", 1),
}
_DISTANCE = (
    "(2 * 6371008.8 * asin(sqrt(least(1, power(sin(radians(({2}) - ({0})) / 2), 2) "
    "+ cos(radians({0})) * cos(radians({2})) * power(sin(radians(({3}) - ({1})) / 2), 2)))))"
)
"""In metres, on a sphere of the Earth's mean radius."""
_NUMBERS: Mapping[str, Function] = {
    **{
        name: _plain(name.lower(), 1)
        for name in (
            "ABS", "ACOS", "ASIN", "ATAN", "CBRT", "CEIL", "COS", "COSH", "DEGREES", "FLOOR", "RADIANS", "SIGN", "SIN",
            "SINH", "SQRT", "TAN", "TANH",
        )
    },
    "MAX": _plain("greatest", 2, _MANY),
    "MIN": _plain("least", 2, _MANY),
    "DISTANCE": Function(_DISTANCE, 4, 4),
    "MOD": Function("({0} % {1})", 2, 2),
    "NEG": Function("(- {0})", 1, 1),
    "POW": _plain("power", 2),
    "POWER": _plain("power", 2),
    "RANDINT": _present(f"{DRAWN_INTEGER}({{@}})"),
    "ROUND": _plain("round", 1, 2),
}  # fmt: skip


def _time_of_day(scale: int) -> Function:
    """Of a number of units of 10 to the power of -``scale`` seconds since any midnight, before or behind it."""
    day = 86_400 * 10**scale
    return Function(f"CAST(to_timestamp_ltz((({{0}} % {day}) + {day}) % {day}, {scale}) AS TIME)", 1, 1)


_DATES: Mapping[str, Function] = {
    **dict.fromkeys(("CURRENT_DATETIME", "DATETIME", "NOW"), _present("now()")),
    **{name: _part(name.lower()) for name in ("HOUR", "MINUTE", "MONTH", "QUARTER", "SECOND", "WEEK", "YEAR")},
    "CONVERT_DATETIME": Function("date_format(to_timestamp_ltz({0}, {1}), {2})", 3, 3, Nulls.MAYBE),
    "CURDATE": _present("current_date"),
    "CURTIME": _present("localtime"),
    "DATE": Function("current_date", 0, 1, with_one="CAST(to_timestamp_ltz(({0}) * 86400, 0) AS DATE)"),
    "DAY": _part("dayofmonth"),
    "EXTRACT_DATE": _timed("CAST({0} AS DATE)"),
    "EXTRACT_TIME": _timed("CAST({0} AS TIME)"),
    "FORMAT_DATE": _timed("date_format({0}, {1})", 2),
    "FORMAT_TIME": Function("date_format(DATE '1970-01-01' + {0}, {1})", 2, 2),
    "FORMAT_TIMESTAMP": _timed("date_format({0}, {1})", 2),
    "MONTH_TEXT": _timed("to_char({0}, 'FMMonth')"),
    "PARSE_DATE": Function("CAST(to_timestamp_ltz({0}, {1}) AS DATE)", 2, 2, Nulls.MAYBE),
    "PARSE_TIME_MICROS": Function("CAST(to_timestamp_ltz({0}, {1}) AS TIME)", 2, 2, Nulls.MAYBE),
    "PARSE_TIME_MILLIS": Function("CAST(to_timestamp_ltz({0}, {1}) AS TIME)", 2, 2, Nulls.MAYBE),
    "PARSE_TIMESTAMP_MICROS": _PARSED,
    "PARSE_TIMESTAMP_MILLIS": _PARSED,
    "TIMESTAMP": Function("(({0} + {1}) AT TIME ZONE {2})", 3, 3),
    "TIME_MICROS": _time_of_day(6),
    "TIME_MILLIS": _time_of_day(3),
    "TIMESTAMP_MICROS": Function("to_timestamp_ltz({0}, 6)", 1, 1),
    "TIMESTAMP_MILLIS": Function("to_timestamp_ltz({0}, 3)", 1, 1),
    "TO_DATE": Function("CAST(to_timestamp_ltz({0}, {1}) AS DATE)", 2, 2, Nulls.MAYBE),
    "TO_DATETIME": _PARSED,
    "TOMORROW": _present("(now() + INTERVAL '1 DAY')"),
    "TO_TIMESTAMP": _plain("to_timestamp_ltz", 1, 2, Nulls.MAYBE),
    "YESTERDAY": _present("(now() - INTERVAL '1 DAY')"),
}
_OBFUSCATION: Mapping[str, Function] = {
    "ANONYMIZE": _plain("anonymize", 1),
    "EMAIL": _plain("mask_email", 1),
    "INITIALS": _plain("initials", 1),
    "MASK": _plain("anonymize", 1),
    **{f"FIRST{count}": Function(f"keep_first({{0}}, {count})", 1, 1) for count in (1, 2, 3, 4)},
    **{f"LAST{count}": Function(f"keep_last({{0}}, {count})", 1, 1) for count in (1, 2, 3, 4)},
}
_WORDS: Mapping[str, tuple[str, str]] = {
    "smallint": ("SMALLINT", "Int"),
    "integer": ("INT", "Int"),
    "bigint": ("LONG", "Long"),
    "real": ("FLOAT", "Float"),
    "double precision": ("DOUBLE", "Double"),
    "numeric": ("DECIMAL", "BigDecimal"),
    "boolean": ("BOOLEAN", "Boolean"),
    "text": ("STRING", "String"),
    "character varying": ("STRING", "String"),
    "bytea": ("BYTES", "ByteArray"),
    "time without time zone": ("TIME", "TimeMicros"),
    "timestamp without time zone": ("TIMESTAMP", "TimestampMicros"),
    "timestamp with time zone": ("TIMESTAMP", "TimestampMicros"),
}
"""By the first dialect's name of a type: that of CAST, and the stem of the original's class of such values."""


def _by_type(words: Mapping[str, str], otherwise: str) -> str:
    cases = " ".join(f"WHEN '{name}' THEN '{word}'" for name, word in words.items())
    return f"(CASE pg_typeof({{0}}) {cases} ELSE {otherwise} END)"


def _typed() -> str:
    words = {name: word for name, (word, _) in _WORDS.items()}
    arrays = {f"{name}[]": f"{word}[]" for name, word in words.items()}
    return _by_type(words | arrays, "upper(split_part(pg_typeof({0}), '<', 1))")


def _dumped() -> str:
    stems = {name: stem for name, (_, stem) in _WORDS.items()}
    name = f"replace('io.lenses.sql.model.#Value@#Value(', '#', {_by_type(stems, 'initcap(pg_typeof({0}))')})"
    value = f"concat({name}, CAST({{0}} AS VARCHAR), ')')"
    return f"(CASE WHEN {{0}} IS NULL THEN 'io.lenses.sql.model.NullValue$@NullValue' ELSE {value} END)"


_TEXTS_ALWAYS = ("DUMP", "TYPEOF")
"""Calls whose result is a text, and never NULL."""
_DUMPED_TEXT = "concat('io.lenses.sql.model.StringValue@StringValue(', {0}, ')')"
"""DUMP of such a text, which stands there once: nested calls would multiply else."""

_OTHERS: Mapping[str, Function] = {
    "AS_NON_NULLABLE": Function("required({0})", 1, 1, Nulls.NEVER),
    "AS_NULLABLE": Function("{0}", 1, 1, Nulls.ALWAYS),
    "COALESCE": _plain("coalesce", 1, _MANY, Nulls.FIRST),
    "DUMP": Function(_dumped(), 1, 1, Nulls.NEVER),
    "ELEMENT_OF": Function("({0})[({1}) + 1]", 2, 2, Nulls.MAYBE),
    "EXISTS": Function("({0} IS NOT NULL)", 1, 1, Nulls.NEVER),
    "FLATTEN": _plain("flatten", 1),
    "IN_ARRAY": Function("array_contains({1}, {0})", 2, 2),
    "ISNOTNULL": Function("({0} IS NOT NULL)", 1, 1, Nulls.NEVER),
    "ISNULL": Function("({0} IS NULL)", 1, 1, Nulls.NEVER),
    "JSON_EXTRACT_ALL": _plain("json_path_all", 2, nulls=Nulls.MAYBE),
    "JSON_EXTRACT_FIRST": _plain("json_path_first", 2, nulls=Nulls.MAYBE),
    "REPEAT": Function("array_repeat({0}, {1})", 2, 2, Nulls.ALWAYS),
    "SIZEOF": _plain("cardinality", 1),
    "TYPEOF": Function(_typed(), 1, 1, Nulls.NEVER),
    "ZIP": _plain("array_zip", 4, 16),
    "ZIP_ALL": _plain("array_zip_all", 4, 16),
}
SCALARS: Mapping[str, Function] = {**_TEXTS, **_NUMBERS, **_DATES, **_OBFUSCATION, **_OTHERS}

AGGREGATES: Mapping[str, Function] = {
    "AVG": _plain("avg", 1),
    "BOTTOMK": _chosen("least_frequent"),
    "COLLECT": _plain("array_agg", 1, 2),
    "COLLECT_UNIQUE": Function("array_agg(DISTINCT {*})", 1, 2),
    "COUNT": _plain("count", 1, nulls=Nulls.NEVER),
    "FIRST": _plain("first_value", 1),
    "LAST": _plain("last_value", 1),
    "MAX": _plain("max", 1),
    "MAXK": _chosen("topk"),
    "MAXK_UNIQUE": _chosen("topkdistinct"),
    "MIN": _plain("min", 1),
    "MINK": _chosen("bottomk"),
    "MINK_UNIQUE": _chosen("bottomkdistinct"),
    "SUM": _plain("sum", 1),
    "TOPK": _chosen("most_frequent"),
}
_COUNTED = frozenset(name for name, each in AGGREGATES.items() if each.most == 2)

_PATHS = ("JSON_EXTRACT_ALL", "JSON_EXTRACT_FIRST")
_REFUSED = {
    "LAST_OFFSET": "Which record is the last one depends on when that is asked. _meta.offset is that of the record.",
}

_TYPES = {
    "BIGINT": "BIGINT", "BOOLEAN": "BOOLEAN", "BOOL": "BOOLEAN", "BYTES": "VARBINARY", "DATE": "DATE",
    "DOUBLE": "DOUBLE", "FLOAT": "FLOAT", "INT": "INTEGER", "INTEGER": "INTEGER", "LONG": "BIGINT",
    "SMALLINT": "SMALLINT", "STRING": "VARCHAR", "TIME": "TIME", "TIMESTAMP": "TIMESTAMP", "VARCHAR": "VARCHAR",
}  # fmt: skip
_DECIMAL = re.compile(r"DECIMAL\([0-9]+(, [0-9]+)?\)")
_HOLE = re.compile(r"\{(\*|@|[0-9])\}")


def function_of(call: Call) -> Function | None:
    return (AGGREGATES if is_aggregate(call) else SCALARS).get(call.name)


def is_aggregate(call: Call) -> bool:
    name = call.name
    if name in ("MAX", "MIN"):
        return len(call.arguments) == 1
    return name in AGGREGATES


def may_be_own(call: Call) -> bool:
    """Whether it may be a user's function: the first dialect knows, and whether that is an aggregate."""
    return function_of(call) is None and call.name not in AGGREGATES and bool(call.spelled)


def called(call: Call, argument: Callable[[int], Written]) -> Written:
    """The call in the first dialect."""
    if call.name in _REFUSED:
        raise unsupported(call.place, f"function {call.name} is not supported", _REFUSED[call.name])
    found = function_of(call)
    if may_be_own(call):
        return _own(call, argument)
    if found is None:
        raise problem(call.place, sqlstates.UNDEFINED_FUNCTION, f"function {call.name} does not exist")
    if call.star:
        if call.name != "COUNT":
            raise problem(call.place, sqlstates.SYNTAX_ERROR, f"{call.name}(*) is not known", "Only COUNT(*) is.")
        return written(call.place, "count(*)")
    if not found.least <= len(call.arguments) <= found.most:
        raise _wrong_number(call, found)
    if call.name in _PATHS and not isinstance(call.arguments[1], Literal):
        raise unsupported(
            call.place, f"the path of {call.name} is a text that stands there", "Write it in quotes, as '$.name'."
        )
    if call.name in _COUNTED and len(call.arguments) == 2 and not _is_count(call.arguments[1]):
        raise problem(
            call.place,
            sqlstates.INVALID_PARAMETER_VALUE,
            f"the second argument of {call.name} is a whole number from 1 to {limits.TOP_VALUES_MAX}",
        )
    template = found.template
    if len(call.arguments) == 1 and found.with_one is not None:
        template = found.with_one
    if call.name == "DUMP" and isinstance(call.arguments[0], Call) and call.arguments[0].name in _TEXTS_ALWAYS:
        template = _DUMPED_TEXT
    if found.of_time:
        return _filled(template, call, lambda index: instant(call.arguments[index], argument(index)))
    return _filled(template, call, argument)


def instant(given: object, text: Written) -> Written:
    """A record's time, which is a number, as the instant that it is; all else as it is."""
    if isinstance(given, Selection) and given.parts[-2:] == ("_meta", "timestamp"):
        return written("to_timestamp_ltz(", text, ", 3)")
    return text


def _own(call: Call, argument: Callable[[int], Written]) -> Written:
    """A function of a user's, under its name as written: the first dialect finds it, or says that there is none."""
    arguments = joined(", ", [argument(i) for i in range(len(call.arguments))])
    return written(call.place, f"{OWN_FUNCTION}.{quoted(call.spelled)}(", arguments, ")")


def _is_count(argument: object) -> bool:
    if not isinstance(argument, Literal) or argument.kind != "number" or not argument.text.isdigit():
        return False
    return len(argument.text) < 10 and 1 <= int(argument.text) <= limits.TOP_VALUES_MAX


def _wrong_number(call: Call, found: Function) -> ProblemError:
    wanted = str(found.least) if found.least == found.most else f"{found.least} to {found.most}"
    plural = "" if wanted == "1" else "s"
    return problem(
        call.place,
        sqlstates.UNDEFINED_FUNCTION,
        f"function {call.name} takes {wanted} argument{plural} and is given {len(call.arguments)}",
    )


def _filled(template: str, call: Call, argument: Callable[[int], Written]) -> Written:
    argument = functools.cache(argument)  # some stand in the text several times
    result, at = written(call.place), 0
    for hole in _HOLE.finditer(template):
        result.add(template[at : hole.start()])
        if hole[1] == "*":
            result.add(joined(", ", [argument(i) for i in range(len(call.arguments))]))
        elif hole[1] == "@":
            result.add(str(call.place.offset))
        else:
            result.add(argument(int(hole[1])))
        at = hole.end()
    return result.add(template[at:])


def cast_type(cast: CastTo) -> str:
    found = _TYPES.get(cast.type)
    if found is None and _DECIMAL.fullmatch(cast.type):
        found = cast.type
    if found is None:
        raise problem(
            cast.place,
            sqlstates.UNDEFINED_OBJECT,
            f"type {cast.type} does not exist",
            f"Types are {', '.join(sorted(_TYPES))} and DECIMAL(p, s).",
        )
    return found
