"""DuckDB's errors as PostgreSQL's: one SQLSTATE and one message in PostgreSQL's words for each.

A streamed result raises its errors through Arrow as ``OSError`` with the same text, so the mapping reads the text's
prefix ("Conversion Error: ...") and not only the exception's class.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from mvserver import limits, sqlstates
from mvserver.compiler.failures import raised
from mvserver.dialect.allow_list import undefined_name
from mvserver.dialect.errors.type_texts import bad_text, pg_name
from mvserver.dialect.functions.from_text import SEPARATOR
from mvserver.dialect.functions.long_texts import too_large
from mvserver.errors import SqlError
from mvserver.pgcatalog.macros import RAISED
from spark_sinks.duckdb.disk_errors import disk_error
from spark_sinks.duckdb.history.log import AHEAD, NOWHERE, OTHER, REFUSED, TOO_OLD
from spark_sinks.duckdb.ledger import damage

_PREFIX = re.compile(r"^(?:Invalid Error: )?(?P<kind>[A-Za-z][A-Za-z ]*?) ?(?:Error|error|ERROR): (?P<body>.*)$", re.S)
_RAISED = re.compile(rf"Could not convert string '{RAISED}(?P<text>.*)' to INT64", re.S)  # by a macro, in these words
_CLAUSE = re.compile(r"\n\s*LINE \d+:.*$", re.S)

TOO_WIDE = "subquery must return only one column"

_Rule = tuple[re.Pattern[str], Callable[[re.Match[str]], SqlError]]


def _rule(pattern: str, build: Callable[[re.Match[str]], SqlError]) -> _Rule:
    return re.compile(pattern, re.S), build


def _undefined_function(match: re.Match[str]) -> SqlError:
    return SqlError(
        sqlstates.UNDEFINED_FUNCTION,
        f"function {undefined_name(match['name'])} does not exist",
        hint="No function matches the given name and argument types. You might need to add explicit type casts.",
    )


_PAST = {
    TOO_OLD: (sqlstates.SNAPSHOT_TOO_OLD, "the history of a materialized view does not go back so far"),
    OTHER: (sqlstates.SNAPSHOT_TOO_OLD, "the token is of no history that the materialized view has now"),
    AHEAD: (sqlstates.INVALID_PARAMETER_VALUE, "a materialized view cannot be read as of what is to come"),
    NOWHERE: (sqlstates.INVALID_PARAMETER_VALUE, "a materialized view is read as of a time or a resume token"),
}


def _not_kept(match: re.Match[str]) -> SqlError:
    """A view AS OF a place that its history has not."""
    sqlstate, message = _PAST[match["kind"]]
    return SqlError(
        sqlstate, message, detail=f"Its history is kept from {match['since']} on, behind token {match['token']}."
    )


def _signature(text: str) -> str:
    """``sum(VARCHAR, INTEGER)`` with PostgreSQL's type names."""
    name, _, arguments = text.partition("(")
    inner = arguments.rpartition(")")[0]
    parts = [pg_name(part) for part in re.split(r",\s*(?![^(]*\))", inner)] if inner else []
    return f"{name.strip().strip(chr(34))}({', '.join(parts)})"


def _operator_or_function(match: re.Match[str]) -> SqlError:
    signature = _signature(match["call"])
    name = signature.partition("(")[0]
    if re.fullmatch(r"\W+", name):
        operands = signature.partition("(")[2][:-1].split(", ")
        shown = f" {name} ".join(operands) if len(operands) == 2 else f"{name} {operands[0]}"
        return SqlError(
            sqlstates.UNDEFINED_FUNCTION,
            f"operator does not exist: {shown}",
            hint="No operator matches the given name and argument types. You might need to add explicit type casts.",
        )
    return _undefined_function(re.match(r"(?P<name>.*)", signature, re.S) or match)


def _out_of_range(match: re.Match[str]) -> SqlError:
    if pg_name(match["type"]) == "interval":
        return SqlError(sqlstates.DATETIME_FIELD_OVERFLOW, "interval out of range")
    return SqlError(sqlstates.NUMERIC_VALUE_OUT_OF_RANGE, f"{pg_name(match['type'])} out of range")


def _unreadable_time(match: re.Match[str]) -> SqlError:
    value = match["value"]
    if SEPARATOR in value:  # of to_date's one form: all fields were there
        return SqlError(
            sqlstates.DATETIME_FIELD_OVERFLOW,
            f'date/time field value out of range: "{value.replace(SEPARATOR, "-")}"',
        )
    return SqlError(sqlstates.INVALID_DATETIME_FORMAT, f'invalid value "{value}" for the pattern')


_JSON_KINDS = {"[": "array", "{": "object", '"': "string"}
_JSON_TARGETS = {"numerical": "integer", "decimal": "numeric", "boolean": "boolean"}

_RULES: tuple[_Rule, ...] = (
    _rule(rf"{REFUSED}(?P<kind>{'|'.join(_PAST)}) (?P<since>.*?) (?P<token>[0-9a-f]+-[0-9a-f]+)", _not_kept),
    _rule(r"Division by zero", lambda _: SqlError(sqlstates.DIVISION_BY_ZERO, "division by zero")),
    _rule(
        r'Referenced column "(?P<name>.*?)" (?:was )?not found',
        lambda m: SqlError(sqlstates.UNDEFINED_COLUMN, f'column "{m["name"]}" does not exist', hint=_candidates(m)),
    ),
    _rule(  # an output has its name: f(x) AS x
        r'[Cc]olumn "(?P<name>.*?)" referenced that exists in the SELECT clause',
        lambda m: SqlError(sqlstates.UNDEFINED_COLUMN, f'column "{m["name"]}" does not exist'),
    ),
    _rule(
        r'(?:Table|Values list) "(?P<table>.*?)" does not have a column named "(?P<name>.*?)"',
        lambda m: SqlError(
            sqlstates.UNDEFINED_COLUMN, f"column {m['table']}.{m['name']} does not exist", hint=_candidates(m)
        ),
    ),
    _rule(
        r'Referenced table "(?P<name>.*?)" not found',
        lambda m: SqlError(sqlstates.UNDEFINED_TABLE, f'missing FROM-clause entry for table "{m["name"]}"'),
    ),
    _rule(
        r'Ambiguous reference to column name "(?P<name>.*?)"',
        lambda m: SqlError(sqlstates.AMBIGUOUS_COLUMN, f'column reference "{m["name"]}" is ambiguous'),
    ),
    _rule(
        r'column "?(?P<name>.*?)"? must appear in the GROUP BY clause',
        lambda m: SqlError(
            sqlstates.GROUPING_ERROR,
            f'column "{m["name"]}" must appear in the GROUP BY clause or be used in an aggregate function',
        ),
    ),
    _rule(
        r"(?P<where>WHERE|GROUP BY) clause cannot contain (?P<what>aggregates|window functions)",
        lambda m: SqlError(
            sqlstates.GROUPING_ERROR if m["what"] == "aggregates" else sqlstates.WINDOWING_ERROR,
            f"{'aggregate' if m['what'] == 'aggregates' else 'window'} functions are not allowed in {m['where']}",
        ),
    ),
    _rule(
        r"(?P<where>ORDER|GROUP BY) term out of range - should be between",
        lambda m: SqlError(
            sqlstates.INVALID_COLUMN_REFERENCE, f"{m['where'].split()[0]} BY position is not in select list"
        ),
    ),
    _rule(
        r"[Vv]alues were not provided for the following parameters: (?P<name>\w+)",
        lambda m: SqlError(sqlstates.UNDEFINED_PARAMETER, f"there is no parameter ${m['name']}"),
    ),
    _rule(
        r"aggregate function calls cannot be nested",
        lambda _: SqlError(sqlstates.GROUPING_ERROR, "aggregate function calls cannot be nested"),
    ),
    _rule(
        r"[Ii]nvalid Type \[(?P<type>.*)\]: Invalid type for BETWEEN",
        lambda m: SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"two comparisons of a column of type {pg_name(m['type'])} with constants are not supported",
            hint="Write BETWEEN.",
        ),
    ),
    _rule(
        r"(?:Scalar |Aggregate |Table |Macro )*Function with name \"?(?P<name>[\w.]+)\"? (?:does not exist|is not)",
        lambda m: _undefined_function(m),
    ),
    _rule(
        r"(?:No function matches the given name and argument types|"
        r"Could not choose a best candidate function for the function call) ['\"](?P<call>.*?\))['\"]",
        _operator_or_function,
    ),
    _rule(
        r"Macro \"?(?P<name>[\w.]+?)\"?\(\) (?:does not support|requires|called)|Macro (?P<other>\w+) .*parameter",
        lambda m: _undefined_function(re.match(r"(?P<name>.*)", m["name"] or m["other"]) or m),
    ),
    _rule(
        r"Table with name (?P<name>\S+?) does not exist",
        lambda m: SqlError(sqlstates.UNDEFINED_TABLE, f'relation "{m["name"]}" does not exist'),
    ),
    _rule(
        r"Type with name (?P<name>\S+) does not exist",
        lambda m: SqlError(sqlstates.UNDEFINED_OBJECT, f'type "{m["name"]}" does not exist'),
    ),
    _rule(
        r"Collation with name (?P<name>\S+) does not exist",
        lambda m: SqlError(sqlstates.UNDEFINED_OBJECT, f'collation "{m["name"]}" for encoding "UTF8" does not exist'),
    ),
    _rule(
        r"Unknown TimeZone '(?P<name>.*?)'",
        lambda m: SqlError(sqlstates.INVALID_PARAMETER_VALUE, f'time zone "{m["name"]}" not recognized'),
    ),
    _rule(
        r"Could not convert string ['\"](?P<value>.*?)['\"] to ENUM\('\x01enum \d+ +(?P<type>.*?)'[,)]",
        lambda m: SqlError(
            sqlstates.INVALID_TEXT_REPRESENTATION, f'invalid input value for enum {m["type"]}: "{m["value"]}"'
        ),
    ),
    _rule(
        r"Could not convert string ['\"](?P<value>.*?)['\"] to (?P<type>TIMESTAMP WITH TIME ZONE|\w+)",
        lambda m: bad_text(m["type"], m["value"]),
    ),
    _rule(
        r"invalid input syntax for type (?P<type>smallint|integer|bigint|bytea|boolean): \"(?P<value>.*)\"",
        lambda m: bad_text(m["type"], m["value"]),
    ),
    _rule(
        r"interval cannot be 0",
        lambda _: SqlError(sqlstates.INVALID_PARAMETER_VALUE, "step size cannot equal zero"),
    ),
    _rule(r'Could not parse string "(?P<value>.*?)" according to format specifier', _unreadable_time),
    _rule(
        r"(?:invalid|missing|no argument for) [\w ]*(?P<what>regular expression|regexp|escape sequence|repetition"
        r"|perl operator|character class|group|\[|\(|\)|\])|^(?:unexpected \):|bad repetition operator:|trailing \\$)",
        lambda m: SqlError(
            sqlstates.INVALID_REGULAR_EXPRESSION,
            "invalid regular expression",
            detail=f"{_first_line(m.string)}.",
            hint="Regular expressions are those of RE2: without back references and look-around.",
        ),
    ),
    _rule(
        r"invalid (?P<type>date|timestamp|time|timestamp with time zone|interval) field format: \"(?P<value>.*?)\"",
        lambda m: SqlError(
            sqlstates.INVALID_DATETIME_FORMAT, f'invalid input syntax for type {m["type"]}: "{m["value"]}"'
        ),
    ),
    _rule(
        r"(?P<text>(?:date|time) field value out of range: -?\d[^\"]*)$",
        lambda m: SqlError(sqlstates.DATETIME_FIELD_OVERFLOW, m["text"]),
    ),
    _rule(
        r"(?P<text>timestamps cannot be binned into intervals containing months or years)",
        lambda m: SqlError(sqlstates.FEATURE_NOT_SUPPORTED, m["text"]),
    ),
    _rule(
        r"(?P<text>stride must be greater than zero)",
        lambda m: SqlError(sqlstates.DATETIME_FIELD_OVERFLOW, m["text"]),
    ),
    _rule(r"timestamp cannot be NaN", lambda _: SqlError(sqlstates.DATETIME_FIELD_OVERFLOW, "timestamp cannot be NaN")),
    _rule(
        r"Epoch seconds out of range for|ICU date overflows timestamp range",
        lambda _: SqlError(sqlstates.DATETIME_FIELD_OVERFLOW, "timestamp out of range"),
    ),
    _rule(
        r"time field value out of range: \"(?P<value>(?!\s*\d+:\d).*?)\", expected",
        lambda m: SqlError(sqlstates.INVALID_DATETIME_FORMAT, f'invalid input syntax for type time: "{m["value"]}"'),
    ),
    _rule(
        r"(?:date|time|timestamp)(?:/time)? field value out of range: \"(?P<value>.*?)\"",
        lambda m: SqlError(
            sqlstates.DATETIME_FIELD_OVERFLOW,
            f'date/time field value out of range: "{m["value"]}"',
            hint='Perhaps you need a different "DateStyle" setting.' if _swapped(m["value"]) else None,
        ),
    ),
    _rule(
        r"Could not convert string .*? to UUID|Could not convert string .*UUID",
        lambda _: SqlError(sqlstates.INVALID_TEXT_REPRESENTATION, "invalid input syntax for type uuid"),
    ),
    _rule(
        r"Cannot concatenate lists of types (?P<left>\S+) and (?P<right>\S+)",
        lambda m: SqlError(
            sqlstates.UNDEFINED_FUNCTION,
            f"operator does not exist: {pg_name(m['left'])} || {pg_name(m['right'])}",
            hint="No operator matches the given name and argument types. You might need to add explicit type casts.",
        ),
    ),
    _rule(
        r"Cannot deduce template type .*? in function: '(?P<name>\w+)\(",
        lambda m: _undefined_function(m),
    ),
    _rule(
        r"[Ff]ailed to cast value to (?P<type>numerical|decimal|boolean): (?P<value>[\[{\"])",
        lambda m: SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f"cannot cast jsonb {_JSON_KINDS[m['value']]} to type {_JSON_TARGETS[m['type']]}",
        ),
    ),
    _rule(
        r"Malformed JSON(?P<rest>[^\n]*)",
        lambda m: SqlError(
            sqlstates.INVALID_TEXT_REPRESENTATION, "invalid input syntax for type json", detail=f"Malformed{m['rest']}."
        ),
    ),
    _rule(r"out of range for the destination type (?P<type>\w+)", _out_of_range),
    _rule(r"[Ff]ailed to cast decimal value \S+ to type (?P<type>\w+)", _out_of_range),
    _rule(r"Casting value .* to type (?P<type>[A-Z]+).* failed: value is out of range", _out_of_range),
    _rule(
        r"Could not cast value .* to (?P<type>DECIMAL)",
        lambda _: SqlError(sqlstates.NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow"),
    ),
    _rule(r"Overflow in \w+ of (?P<type>\w+)", _out_of_range),
    _rule(r"Overflow in (?P<type>INTERVAL) division", _out_of_range),
    _rule(
        r"GROUPING statement cannot be used without groups",
        lambda _: SqlError(
            sqlstates.GROUPING_ERROR,
            "arguments to GROUPING must be grouping expressions of the associated query level",
        ),
    ),
    _rule(
        r"cannot take (?P<what>square root|logarithm) of (?P<of>a negative number|zero)",
        lambda m: SqlError(
            sqlstates.INVALID_ARGUMENT_FOR_POWER_FUNCTION
            if m["what"] == "square root"
            else sqlstates.INVALID_ARGUMENT_FOR_LOGARITHM,
            f"cannot take {m['what']} of {m['of']}",
        ),
    ),
    _rule(
        r"value out of range: (?P<how>overflow|underflow)",
        lambda m: SqlError(sqlstates.NUMERIC_VALUE_OUT_OF_RANGE, f"value out of range: {m['how']}"),
    ),
    _rule(
        r"(?P<text>zero raised to a negative power is undefined|a negative number raised to a non-integer power \w+ a "
        r"complex result)",
        lambda m: SqlError(sqlstates.INVALID_ARGUMENT_FOR_POWER_FUNCTION, m["text"]),
    ),
    _rule(
        r"(?i)like pattern must not end with escape character",
        lambda _: SqlError(sqlstates.INVALID_ESCAPE_SEQUENCE, "LIKE pattern must not end with escape character"),
    ),
    _rule(r"interval out of range", lambda _: SqlError(sqlstates.DATETIME_FIELD_OVERFLOW, "interval out of range")),
    _rule(
        r"negative substring length not allowed",
        lambda _: SqlError(sqlstates.SUBSTRING_ERROR, "negative substring length not allowed"),
    ),
    _rule(
        r"(?P<text>index -?\d+ out of valid range, 0\.\.-?\d+|number of elements to trim must be between 0 and \d+)",
        lambda m: SqlError(sqlstates.ARRAY_SUBSCRIPT_ERROR, m["text"]),
    ),
    _rule(
        r"(?P<text>array_fill of several dimensions is not supported)",
        lambda m: SqlError(sqlstates.FEATURE_NOT_SUPPORTED, m["text"], hint="Write ARRAY[array_fill(...), ...]."),
    ),
    _rule(
        r"(?P<text>could not find array type for the type of an array)",
        lambda m: SqlError(sqlstates.UNDEFINED_OBJECT, m["text"], hint="array_fill repeats a value that is no array."),
    ),
    _rule(r"requested length too large", lambda _: too_large(limits.REPEATED_TEXT_BYTES_MAX)),
    _rule(
        r"(?P<text>\".*\" is out of range for type (?:double precision|real))",
        lambda m: SqlError(sqlstates.NUMERIC_VALUE_OUT_OF_RANGE, m["text"]),
    ),
    _rule(r"input is out of range", lambda _: SqlError(sqlstates.NUMERIC_VALUE_OUT_OF_RANGE, "input is out of range")),
    _rule(
        r"(?P<text>count must be greater than zero|operand, lower bound, and upper bound cannot be NaN|"
        r"lower (?:and upper bounds must be finite|bound cannot equal upper bound))",
        lambda m: SqlError(sqlstates.INVALID_ARGUMENT_FOR_WIDTH_BUCKET_FUNCTION, m["text"]),
    ),
    _rule(
        r"PERCENTILEs can only take parameters in the range \[0, 1\]",
        lambda _: SqlError(sqlstates.NUMERIC_VALUE_OUT_OF_RANGE, "percentile value is not between 0 and 1"),
    ),
    _rule(
        r"[Mm]aximum grouping set count of (?P<most>\d+) exceeded",
        lambda m: SqlError(sqlstates.STATEMENT_TOO_COMPLEX, f"too many grouping sets present (maximum {m['most']})"),
    ),
    _rule(
        r"[Aa]rgument (?:of|for) (?P<name>ntile|nth_value) must be greater than zero",
        lambda m: SqlError(
            sqlstates.INVALID_ARGUMENT_FOR_NTILE_FUNCTION
            if m["name"] == "ntile"
            else sqlstates.INVALID_ARGUMENT_FOR_NTH_VALUE_FUNCTION,
            f"argument of {m['name']} must be greater than zero",
        ),
    ),
    _rule(
        r"(?P<text>null character not permitted|requested character "
        r"(?:too large|not valid) for encoding: \d+)",
        lambda m: SqlError(sqlstates.PROGRAM_LIMIT_EXCEEDED, m["text"]),
    ),
    _rule(
        r"(?P<text>a start behind the first character and \^ in the pattern are not supported together)",
        lambda m: SqlError(sqlstates.FEATURE_NOT_SUPPORTED, m["text"], hint="Cut the text with substr first."),
    ),
    _rule(
        r"(?P<text>character number must be positive|"
        r"string is not a valid identifier: \".*\"|invalid value for parameter \"start\": -?\d+|"
        r"invalid hexadecimal (?:digit: \".*\"|data: odd number of digits)|invalid base64 end sequence|"
        r"invalid symbol \".*\" found while decoding base64 sequence)",
        lambda m: SqlError(sqlstates.INVALID_PARAMETER_VALUE, m["text"]),
    ),
    _rule(
        r"(?P<text>cannot (?:extract elements from an object|extract elements from a scalar|"
        r"call \w+ on what is no object)|"
        r"invalid value for parameter \"(?:n|endoption)\": -?\d+)",
        lambda m: SqlError(sqlstates.INVALID_PARAMETER_VALUE, m["text"]),
    ),
    _rule(
        r"(?P<text>thresholds array must not contain NULLs|null value not allowed for object key|"
        r"null values cannot be formatted as an SQL identifier|"
        r"argument of json_build_object: key must not be null)",
        lambda m: SqlError(sqlstates.NULL_VALUE_NOT_ALLOWED, m["text"]),
    ),
    _rule(
        r"(?P<text>factorial of a negative number is undefined|value overflows numeric format)",
        lambda m: SqlError(sqlstates.NUMERIC_VALUE_OUT_OF_RANGE, m["text"]),
    ),
    _rule(
        r'(?P<text>invalid input syntax for type numeric: ".*")',
        lambda m: SqlError(sqlstates.INVALID_TEXT_REPRESENTATION, m["text"]),
    ),
    _rule(
        r"(?P<text>regexp_instr of empty matches is not supported)",
        lambda m: SqlError(sqlstates.FEATURE_NOT_SUPPORTED, m["text"]),
    ),
    _rule(
        r"could not convert blob to UTF8 string",
        lambda _: SqlError(sqlstates.CHARACTER_NOT_IN_REPERTOIRE, 'invalid byte sequence for encoding "UTF8"'),
    ),
    _rule(
        r"(?P<text>field position must not be zero|cannot get array length of a (?:scalar|non-array)|"
        r"cannot (?:delete|set) path in scalar|cannot delete from (?:scalar|object using integer index))",
        lambda m: SqlError(sqlstates.INVALID_PARAMETER_VALUE, m["text"]),
    ),
    _rule(
        r"unsupported Unicode escape sequence",
        lambda m: SqlError(
            sqlstates.UNTRANSLATABLE_CHARACTER,
            "unsupported Unicode escape sequence",
            detail="\\u0000 cannot be converted to text.",
        ),
    ),
    _rule(
        r"(?P<text>path element at position \d+ is not an integer: \".*\")",
        lambda m: SqlError(sqlstates.INVALID_TEXT_REPRESENTATION, m["text"]),
    ),
    _rule(
        r"LIMIT/OFFSET cannot be negative",
        lambda _: SqlError(sqlstates.INVALID_ROW_COUNT_IN_LIMIT_CLAUSE, "LIMIT must not be negative"),
    ),
    _rule(
        r"[Ii]nvalid hex escape code",
        lambda _: SqlError(sqlstates.INVALID_PARAMETER_VALUE, "invalid hexadecimal digits in a text for type bytea"),
    ),
    _rule(
        r"UNNEST\(\) can only be applied to lists, structs and NULL, not (?P<type>\S+)",
        lambda m: SqlError(
            sqlstates.UNDEFINED_FUNCTION,
            f"function unnest({pg_name(m['type'])}) does not exist",
            hint="No function matches the given name and argument types. You might need to add explicit type casts.",
        ),
    ),
    _rule(r"Subquery returns \d+ columns - expected 1\b", lambda _: SqlError(sqlstates.SYNTAX_ERROR, TOO_WIDE)),
    _rule(
        r"Subquery returns (?P<has>\d+) columns - expected (?P<wanted>\d+)",
        lambda m: SqlError(
            sqlstates.SYNTAX_ERROR,
            f"subquery has too {'few' if int(m['has']) < int(m['wanted']) else 'many'} columns",
        ),
    ),
    _rule(
        r"Column \"(?P<name>.*)\" does not exist on (?P<side>left|right) side of join",
        lambda m: SqlError(
            sqlstates.UNDEFINED_COLUMN,
            f'column "{m["name"]}" specified in USING clause does not exist in {m["side"]} table',
        ),
    ),
    _rule(
        r'Ambiguous reference to table "(?P<name>.*?)" \(duplicate alias',
        lambda m: SqlError(sqlstates.DUPLICATE_ALIAS, f'table name "{m["name"]}" specified more than once'),
    ),
    _rule(
        r"More than one row returned by a subquery",
        lambda _: SqlError("21000", "more than one row returned by a subquery used as an expression"),
    ),
    _rule(
        r"Cannot compare values of type (?P<left>\S+)(?: \S+)*? and (?:values of )?(?:type )?(?P<right>\S+)",
        lambda m: SqlError(
            sqlstates.UNDEFINED_FUNCTION,
            f"operator does not exist: {pg_name(m['left'])} = {pg_name(m['right'])}",
            hint="No operator matches the given name and argument types. You might need to add explicit type casts.",
        ),
    ),
    _rule(
        r"Unimplemented type for cast \((?P<from>.*?) -> (?P<to>.*?)\)",
        lambda m: SqlError(sqlstates.CANNOT_COERCE, f"cannot cast type {pg_name(m['from'])} to {pg_name(m['to'])}"),
    ),
    _rule(
        r"syntax error at or near \"(?P<near>.*?)\"",
        lambda m: SqlError(sqlstates.SYNTAX_ERROR, f'syntax error at or near "{m["near"]}"'),
    ),
)

_KINDS: dict[str, tuple[str, str | None]] = {
    "out of range": (sqlstates.NUMERIC_VALUE_OUT_OF_RANGE, None),
    "conversion": (sqlstates.INVALID_TEXT_REPRESENTATION, None),
    "parser": (sqlstates.SYNTAX_ERROR, None),
    "syntax": (sqlstates.SYNTAX_ERROR, None),
    "binder": (sqlstates.DATATYPE_MISMATCH, None),
    "catalog": (sqlstates.UNDEFINED_OBJECT, None),
    "permission": (sqlstates.INSUFFICIENT_PRIVILEGE, None),
    "not implemented": (sqlstates.FEATURE_NOT_SUPPORTED, None),
    "invalid input": (sqlstates.INVALID_PARAMETER_VALUE, None),
    "invalid type": (sqlstates.INDETERMINATE_DATATYPE, None),
    "mismatch type": (sqlstates.DATATYPE_MISMATCH, None),
    "io": (sqlstates.IO_ERROR, None),
    "transactioncontext": (sqlstates.IN_FAILED_SQL_TRANSACTION, None),
    "connection": (sqlstates.ADMIN_SHUTDOWN, None),
    "serialization": (sqlstates.SERIALIZATION_FAILURE, None),
}


def _swapped(value: str) -> bool:
    """Whether another order of its fields might make the text a date: PostgreSQL's hint stands with these only."""
    fields = re.match(r"\s*\d+-(\d+)-(\d+)", value)
    return fields is not None and (int(fields[1]) > 12 or int(fields[2]) > 31)


def _candidates(match: re.Match[str]) -> str | None:
    """DuckDB's "Candidate bindings" as PostgreSQL's hint: only what differs in less than half of its characters."""
    _, _, listed = match.string.partition("Candidate bindings:")
    name = match["name"]
    near = {found: _distance(name, found.rpartition(".")[2]) for found in re.findall(r'"([^"]+)"', listed)}
    least = min(near.values(), default=_DISTANCE_MAX + 1)
    closest = [found for found, distance in near.items() if distance == least]
    if least > min(_DISTANCE_MAX, len(name) // 2) or len(closest) > 1:
        return None
    return f'Perhaps you meant to reference the column "{closest[0]}".'


_DISTANCE_MAX = 3  # PostgreSQL's


def _distance(left: str, right: str) -> int:
    """How many characters must be put in, taken out or changed."""
    row = list(range(len(right) + 1))
    for at, character in enumerate(left, start=1):
        above, row[0] = row[0], at
        for column, other in enumerate(right, start=1):
            above, row[column] = row[column], min(row[column] + 1, row[column - 1] + 1, above + (character != other))
    return row[-1]


def translate(error: BaseException) -> SqlError:
    """The SqlError for an exception of duckdb or of a streamed Arrow result."""
    if isinstance(error, SqlError):
        return error
    text = str(error)
    own = raised(text) or damage.error_of(text) or disk_error(text)
    if own is not None:
        return own
    match = _PREFIX.match(text)
    kind = match["kind"].strip().lower() if match else ""
    body = match["body"] if match else text
    own_text = _RAISED.match(body)
    if own_text is not None:
        kind, body = "invalid input", own_text["text"]
    if kind == "out of memory":
        return SqlError(
            sqlstates.OUT_OF_MEMORY,
            "out of memory",
            detail=f"{body[:1].upper()}{_first_line(body)[1:]}.",
            hint="Read or group fewer rows at a time, or raise the setting duckdb_memory_limit.",
        )
    if kind == "interrupt":
        return SqlError(sqlstates.QUERY_CANCELED, "canceling statement due to user request")
    for pattern, build in _RULES:
        found = pattern.search(body)
        if found:
            return build(found)
    sqlstate, _ = _KINDS.get(kind, (sqlstates.INTERNAL_ERROR, None))
    return SqlError(sqlstate, _lower_first(_first_line(body)))


def _first_line(text: str) -> str:
    return _CLAUSE.sub("", text).strip().split("\n", 1)[0].rstrip(".! ")


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:] if text[1:2].islower() else text
