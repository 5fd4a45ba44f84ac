"""Calls, operators, casts and aggregates over values at the edges of their types; the same seed makes the same ones.

The functions are those of the table of what pull queries may call, by the types that its rows show.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from mvserver.sql.pull_functions import table

_NUMBERS: Mapping[str, Sequence[str]] = {
    "numeric": ("0.0", "9.5", "-9.5", "0.000001", "12345.678", "-0.5", "1.25", "99999999999999999999", "NULL::numeric"),
    "integer": ("0", "1", "-1", "7", "-7", "3", "100", "2147483647", "-2147483648", "NULL::int"),
    "bigint": ("0::bigint", "5::bigint", "(-5)::bigint", "9223372036854775807", "30720::bigint"),
    "smallint": ("0::smallint", "3::smallint", "(-32768)::smallint", "32767::smallint"),
    "double precision": (
        "0::float8", "2.5::float8", "(-2.5)::float8", "1e10::float8", "0.1::float8", "'NaN'::float8",
        "'Infinity'::float8", "'-Infinity'::float8", "1e300::float8",
    ),
    "real": ("0::real", "2.5::real", "(-0.1)::real", "'NaN'::real", "1e30::real"),
}  # fmt: skip
_TIMES: Mapping[str, Sequence[str]] = {
    "date": ("date '2020-02-29'", "date '2024-12-31'", "date '1999-01-01'", "date '0001-01-01'", "NULL::date"),
    "timestamp": (
        "timestamp '2020-02-29 23:59:59.5'", "timestamp '1969-12-31 00:00:01'", "timestamp '2024-03-10 12:34:56.789'",
        "NULL::timestamp",
    ),
    "timestamptz": (
        "timestamptz '2020-02-29 23:59:59.5+00'", "timestamptz '2024-03-10 12:34:56+02'", "NULL::timestamptz",
    ),
    "interval": (
        "interval '1 day 02:03:04'", "interval '-1 mon'", "interval '400 days'", "interval '90 minutes'",
        "interval '1 year 2 mons 3 days'", "interval '0'", "interval '-00:00:00.5'", "NULL::interval",
    ),
    "time": ("time '12:34:56'", "time '00:00:00'", "time '23:59:59.999999'", "NULL::time"),
}  # fmt: skip
_OTHERS: Mapping[str, Sequence[str]] = {
    "text": (
        "''", "'abc'", "'Äé'", "'a,b,c'", "'  x '", "'12'", "'a.b'", "NULL::text", "'hello world'", "'100%'",
        "'abc'::text", "'Äé,x'::text",
    ),
    "boolean": ("true", "false", "NULL::boolean"),
    "anyarray": (
        "array[1,2,3]", "array[3,1,2,1]", "'{}'::int[]", "array[1,null,2]", "array['a','b']", "array['x',null]",
        "NULL::int[]", "array[[1,2],[3,4]]", "array[1.5,2]",
    ),
    "json": ("'{\"a\": 1, \"b\": [1, 2]}'::json", "'[1, \"x\", null]'::json", "'5'::json", "'\"s\"'::json",
             "NULL::json"),
    "jsonb": ("'{\"a\": 1, \"b\": [1, 2]}'::jsonb", "'[1, \"x\", null]'::jsonb", "'5'::jsonb", "'{}'::jsonb",
              "NULL::jsonb"),
    "bytea": ("'\\xdeadbeef'::bytea", "''::bytea", "'\\x00ff'::bytea", "NULL::bytea"),
    "uuid": ("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid", "NULL::uuid"),
}  # fmt: skip
VALUES: Mapping[str, Sequence[str]] = {**_NUMBERS, **_TIMES, **_OTHERS}
_ANY = ("1", "'a'::text", "2.5", "NULL::int")
_POOLS: Mapping[str, Sequence[str]] = {
    **VALUES, "number": (*_NUMBERS["numeric"], *_NUMBERS["integer"], *_NUMBERS["double precision"]), "any": _ANY,
    "value": _ANY, '"any"': _ANY, "anyelement": ("1", "2", "NULL::int", "'a'::text"), "text[]": ("array['a','b']",),
    "timestamp with time zone": VALUES["timestamptz"], "name": ("'a'", "'UTF8'", "''"),
    "json path": ("'a'", "'b'", "'1'", "''"),
}  # fmt: skip

_NOT_CALLED = frozenset({
    "random", "pg_sleep", "gen_random_uuid", "uuid_generate_v4", "now", "clock_timestamp", "statement_timestamp",
    "transaction_timestamp", "timeofday", "version", "current_setting", "set_config", "age", "current_database",
    "current_query", "txid_current", "row_security_active", "current_schemas",
})  # fmt: skip
"""Their answers are the server's own, or those of another moment. ``age`` has forms below."""

_FORM = re.compile(r"\((.*)\) → ")

# Forms with a grammar, and functions that need values of their own: a brace stands for a value of that type.
FORMS = (
    "round({numeric}, {integer})", "trunc({numeric}, {integer})", "round({number})", "trunc({number})",
    "overlay({text} PLACING {text} FROM {integer})", "overlay({text} PLACING {text} FROM {integer} FOR {integer})",
    "overlay({bytea} PLACING {bytea} FROM {integer} FOR {integer})", "position({text} IN {text})",
    "position({bytea} IN {bytea})", "substring({text} FROM {integer})",
    "substring({text} FROM {integer} FOR {integer})", "substring({bytea} FROM {integer} FOR {integer})",
    "trim({text})", "trim(LEADING {text} FROM {text})", "trim(BOTH {text} FROM {text})",
    "date_part('[unit]', {timestamp})", "date_part('[unit]', {interval})", "date_part('[unit]', {date})",
    "extract([unit] FROM {timestamp})", "extract([unit] FROM {timestamptz})", "extract([unit] FROM {interval})",
    "extract([unit] FROM {date})", "extract([unit] FROM {time})", "date_trunc('[unit]', {timestamp})",
    "date_trunc('[unit]', {interval})", "date_trunc('[unit]', {timestamptz})", "date_trunc('[unit]', {date})",
    "age({timestamp}, {timestamp})", "age({timestamptz}, {timestamptz})",
    "make_date({year}, {month}, {day})", "make_time({hour}, {hour}, {second})",
    "make_timestamp({year}, {month}, {day}, {hour}, {hour}, {second})",
    "make_timestamptz({year}, {month}, {day}, {hour}, {hour}, {second})",
    "date_bin({interval}, {timestamp}, {timestamp})", "{timestamp} AT TIME ZONE {zone}",
    "{timestamptz} AT TIME ZONE {zone}", "timezone({zone}, {timestamp})", "to_timestamp({double precision})",
    "json_build_array({any}, {any})", "jsonb_build_object({text}, {any})", "json_build_object({text}, {any})",
    "jsonb_set({jsonb}, '{{a}}', '9')", "{json} -> {key}", "{jsonb} -> {key}", "{json} ->> {key}",
    "{jsonb} ->> {key}", "{jsonb} ? {text}", "{jsonb} @> '{{}}'", "{jsonb} @> '[1]'", "{jsonb} || {jsonb}",
    "{jsonb} - 'a'", "{jsonb} #> '{{b,1}}'", "{jsonb} #>> '{{b,-1}}'", "jsonb_extract_path({jsonb}, {key text})",
    "json_extract_path({json}, {key text})", "json_extract_path_text({json}, {key text}, {key text})",
    "jsonb_extract_path_text({jsonb}, {key text}, {key text})", "({anyarray})[{index}]",
    "({anyarray})[{index}:{index}]", "array_length({anyarray}, {index})", "array_lower({anyarray}, {index})",
    "array_upper({anyarray}, {index})", "{integer} = ANY({integers})", "{integer} <> ALL({integers})",
    "{integers} || {integers}", "{integers} || {integer}", "{integer} || {integers}", "{integers} = {integers}",
    "{integers} < {integers}", "{integers} @> {integers}", "{integers} && {integers}", "{integers} <@ {integers}",
    "array_append({integers}, {integer})", "array_remove({integers}, {integer})",
    "array_replace({integers}, {integer}, {integer})", "array_position({integers}, {integer})",
    "array_to_string({anyarray}, {text})", "array_to_string({anyarray}, {text}, {text})",
    "string_to_array({text}, {text}, {text})", "{text} LIKE {pattern}", "{text} ILIKE {pattern}",
    "{text} ~ {regexp}", "{text} !~* {regexp}", "regexp_replace({text}, {regexp}, {text})",
    "regexp_replace({text}, {regexp}, {text}, 'g')", "regexp_replace({text}, {regexp}, {text}, {small})",
    "regexp_count({text}, {regexp})", "regexp_match({text}, {regexp})", "regexp_like({text}, {regexp})",
    "regexp_split_to_array({text}, {regexp})", "split_part({text}, {text}, {small})", "left({text}, {small})",
    "right({text}, {small})", "repeat({text}, {small})", "lpad({text}, {small}, {text})",
    "rpad({text}, {small}, {text})", "chr({code})", "translate({text}, {text}, {text})", "substr({text}, {small})",
    "substr({text}, {small}, {small})", "parse_ident({identifier})", "quote_ident({identifier})",
    "quote_literal({identifier})", "format('%s|%I|%L', {text}, {identifier}, {text})", "to_hex({integer})",
    "to_hex({bigint})", "encode({bytea}, 'hex')", "encode({bytea}, 'base64')", "decode({text}, 'hex')",
    "decode({text}, 'base64')", "get_byte({bytea}, {small})", "width_bucket({number}, {number}, {number}, {small})",
    "greatest({integer}, {numeric}, {integer})", "least({text}, {text})", "nullif({integer}, {numeric})",
    "coalesce({integer}, {numeric})", "CASE WHEN {boolean} THEN {integer} ELSE {numeric} END",
    "{boolean} AND {boolean}", "{boolean} IS NOT TRUE", "{text} IS DISTINCT FROM {text}",
    "{integer} BETWEEN {integer} AND {numeric}", "{integer} BETWEEN SYMMETRIC {integer} AND {integer}",
    "to_char({number}, '{picture}')", "to_char({timestamp}, 'YYYY-MM-DD HH24:MI:SS.MS')",
    "to_char({interval}, 'HH24:MI:SS')", "num_nulls({integer}, {text})", "concat({any}, {boolean}, {any})",
    "concat_ws({text}, {any}, {any})", "{text} || {any}", "{any} || {text}", "generate_series({few}, {few}, {few})",
    "({date}, {date}) OVERLAPS ({date}, {date})", "isfinite({date})", "justify_hours({interval})",
    "justify_days({interval})", "mod({integer}, {integer})", "mod({numeric}, {numeric})", "div({numeric}, {numeric})",
    "gcd({integer}, {integer})", "lcm({integer}, {integer})", "gcd({bigint}, {bigint})", "power({number}, {number})",
    "log({numeric}, {numeric})", "({integer}, {text}) = ({integer}, {text})", "({integer}, {integer}) < ({few}, {few})",
)  # fmt: skip
_UNITS = (
    "year", "month", "day", "hour", "minute", "second", "milliseconds", "microseconds", "week", "quarter", "decade",
    "century", "millennium", "epoch", "dow", "isodow", "doy", "isoyear", "julian", "timezone",
)  # fmt: skip
_SPECIAL: Mapping[str, Sequence[str]] = {
    "year": ("2024", "2023", "1", "0", "-44", "294277", "9999", "NULL"), "month": ("2", "1", "12", "0", "13", "-1"),
    "day": ("29", "28", "1", "0", "31", "32"), "hour": ("0", "23", "24", "10", "-1", "59", "60"),
    "second": ("0", "1.5", "59.999999", "60", "60.5", "-1", "'NaN'::float8", "NULL"),
    "zone": ("'UTC'", "'Europe/Berlin'", "'America/New_York'", "NULL::text", "'nowhere'", "''"),
    "key": ("'a'", "'b'", "0", "-1", "5", "NULL", "''"), "key text": ("'a'", "'b'", "'1'", "'0'", "''", "NULL::text"),
    "index": ("1", "2", "0", "-1", "4", "2147483647", "NULL::int"), "few": ("0", "1", "-1", "3", "5", "NULL::int"),
    "integers": ("array[1,2,3]", "array[1,null,2]", "'{}'::int[]", "NULL::int[]", "array[7]", "array[2147483647]"),
    "pattern": ("'%'", "'_'", "'a%'", "''", "'a\\%'", "'%B%'", "NULL::text", "'a\\'"),
    "regexp": ("''", "'b'", "'[a-c]+'", "'(a)|(b)'", "'x*'", "'^'", "NULL::text", "'('", "'.'", "','"),
    "small": ("0", "1", "2", "-1", "-2", "5", "100", "NULL::int"), "code": ("65", "233", "0", "-1", "1114112", "8364"),
    "identifier": ("'a.b'", "'\"A b\".c'", "''", "'1a'", "'a.'", "'a b'", "'Select'", "'select'", "'it''s'", "'a\\b'",
                   "NULL::text", "' a . b '"),
    "picture": ("999", "FM999.99", "000.0", "S9", "9,999", "9.9MI"),
}  # fmt: skip
OPERATORS = ("+", "-", "*", "/", "%", "^", "||", "=", "<", ">=", "<>", "&", "|", "#", "<<", ">>")
_OPERANDS = (
    "integer", "bigint", "smallint", "numeric", "double precision", "real", "text", "boolean", "date", "timestamp",
    "timestamptz", "interval", "time", "uuid", "bytea",
)  # fmt: skip
_OPERAND_VALUES = {**VALUES, "text": ("'abc'::text", "'12'::text", "''::text", "NULL::text")}
_WHOLE = ("integer", "bigint", "smallint")
_NEWER = {*((kind, "bytea") for kind in _WHOLE), *(("bytea", target) for target in ("int", "bigint", "smallint"))}
"""Casts that PostgreSQL has had only since a later version than the server's. Of json and jsonb, which are one type
inside of a query, only the latter is cast."""
_TARGETS = (
    "int", "bigint", "smallint", "numeric", "numeric(6,2)", "float8", "real", "text", "varchar(3)", "boolean", "date",
    "timestamp", "timestamptz", "time", "interval", "uuid", "bytea", "json", "jsonb", "int[]", "text[]",
)  # fmt: skip
TEXTS = (
    "", " ", "0", "1", " 12 ", "-0", "+5", "1.5", ".5", "5.", "1e3", "1e400", "-1e-400", "NaN", "nan", "Infinity",
    "-inf", "2147483648", "32768", "9223372036854775808", "t", "TRUE", "yes", "on", "of", "no", "f", "2024-02-29",
    "2023-02-29", "2024-02-30", "24:00:00", "23:59:60", "12:34", "2024-02-29 12:34", "2024-02-29T12:34:56Z",
    "2024-02-29 12:34:56+02", "epoch", "infinity", "-infinity", "1 day", "1 mon -1 day", "-1:30", "P1Y2M", "abc", "{}",
    "{1,2}", "{1,NULL}", "{", "{1,{2}}", "{a,\"b c\"}", "\\xdead", "\\x1", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
    "A0EEBC999C0B4EF8BB6D6BB9BD380A11", "{\"a\": 1}", "[1,]", "null", "\"x\"",
)  # fmt: skip
_ORDINARY = (
    "sum", "avg", "min", "max", "count", "bool_and", "bool_or", "every", "bit_and", "bit_or", "bit_xor", "array_agg",
    "json_agg", "jsonb_agg", "string_agg", "stddev", "stddev_pop", "stddev_samp", "variance", "var_pop", "var_samp",
    "mode", "percentile_cont", "percentile_disc", "any_value",
)  # fmt: skip
_WINDOWS = (
    "row_number()", "rank()", "dense_rank()", "percent_rank()", "cume_dist()", "ntile({small})", "lag(x)",
    "lag(x, {small})", "lag(x, 1, {same})", "lead(x, {small}, {same})", "first_value(x)", "last_value(x)",
    "nth_value(x, {small})", "sum(x)", "count(x)", "min(x)", "max(x)", "avg(x)",
)  # fmt: skip
_FRAMES = (
    "", "ORDER BY x", "ORDER BY x DESC NULLS LAST", "ORDER BY x ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
    "ORDER BY x ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING", "PARTITION BY x ORDER BY x",
)  # fmt: skip


def statements(seed: int, calls: int) -> Iterator[str]:
    """Select lists and queries without repetition: about ``calls`` of each function's form, half of that of others."""
    chance = random.Random(seed)
    seen: set[str] = set()
    for made in (_functions, _forms, _operators, _casts, _aggregates, _windows):
        for text in made(chance, calls):
            if text not in seen:
                seen.add(text)
                yield text


def _functions(chance: random.Random, calls: int) -> Iterator[str]:
    for name, function in table().items():
        skipped = name in _NOT_CALLED or name.startswith(("pg_", "has_", "inet_"))
        if function.kind != "scalar" or not function.shown or skipped:
            continue
        for form in function.forms:
            types = _types(form, chance)
            if types is not None:
                for _ in range(calls if types else 1):
                    yield f"SELECT {name}({', '.join(chance.choice(_POOLS[kind]) for kind in types)})"


def _types(form: str, chance: random.Random) -> list[str] | None:
    found = _FORM.match(form)
    if found is None:
        return None
    types = [part for part in found[1].split(", ") if part]
    if types and types[-1] == "...":
        types = [*types[:-1], *[types[-2]] * chance.randint(0, 2)]
    return types if all(kind in _POOLS for kind in types) else None


def _forms(chance: random.Random, calls: int) -> Iterator[str]:
    for form, _ in product(FORMS, range(calls)):
        yield f"SELECT {_filled(form, chance)}"


def _filled(form: str, chance: random.Random, **more: Sequence[str]) -> str:
    def value(match: re.Match[str]) -> str:
        return chance.choice({**_POOLS, **_SPECIAL, **more}[match[1]])

    text = re.sub(r"(?<!\{)\{([a-z ]+)\}(?!\})", value, form).replace("[unit]", chance.choice(_UNITS))
    return text.replace("{{", "{").replace("}}", "}")


def _operators(chance: random.Random, calls: int) -> Iterator[str]:
    for operator in OPERATORS:
        for left, right in product(_OPERANDS, _OPERANDS):
            if left == right or chance.random() < calls / 10:
                operands = (chance.choice(_OPERAND_VALUES[side]) for side in (left, right))
                yield f"SELECT {f' {operator} '.join(operands)}"


def _casts(chance: random.Random, calls: int) -> Iterator[str]:
    for kind, target in product(VALUES, _TARGETS):
        if kind != "json" and (kind, target) not in _NEWER and chance.random() < calls / 4:
            yield f"SELECT ({chance.choice(VALUES[kind])})::{target}"
    for text, target in product(TEXTS, _TARGETS):
        if chance.random() < calls / 10:
            yield f"SELECT '{text}'::{target}"
        if chance.random() < calls / 20:
            yield f"SELECT x::{target} FROM (VALUES ('{text}'::text)) AS v (x)"


def _aggregates(chance: random.Random, calls: int) -> Iterator[str]:
    for name, kind in product(_ORDINARY, VALUES):
        if chance.random() > calls / 6:
            continue
        rows = ", ".join(f"({chance.choice(VALUES[kind])})" for _ in range(chance.randint(1, 3)))
        call = _aggregate(name, chance)
        where = chance.choice(("", "", " WHERE false"))
        yield f"SELECT {call} FROM (VALUES {rows}) AS v (x){where}"


def _aggregate(name: str, chance: random.Random) -> str:
    if name == "mode":
        return "mode() WITHIN GROUP (ORDER BY x)"
    if name.startswith("percentile"):
        return f"{name}({chance.choice(('0', '0.5', '1', '0.3', '1.5'))}) WITHIN GROUP (ORDER BY x)"
    if name == "string_agg":
        return f"string_agg(x, {chance.choice(VALUES['text'])} ORDER BY x)"
    if name.endswith("_agg"):
        return f"{name}(x ORDER BY x)"
    return f"{name}({chance.choice(('', 'DISTINCT '))}x)"


def _windows(chance: random.Random, calls: int) -> Iterator[str]:
    for call, kind in product(_WINDOWS, ("integer", "numeric", "double precision", "text", "date", "interval")):
        if chance.random() < calls / 6:
            rows = ", ".join(f"({chance.choice(VALUES[kind])})" for _ in range(3))
            over = f"{_filled(call, chance, same=VALUES[kind])} OVER ({chance.choice(_FRAMES)})"
            yield f"SELECT {over} AS y FROM (VALUES {rows}) AS v (x) ORDER BY 1"
