"""What expressions are made of: by kind of value constants, and forms with places for other expressions.

``{kind}`` in a form is an expression of that kind, ``{kind!}`` a column or constant of it, ``{kind=a|b}`` one of the texts.
Functions come from the table of pull queries where its types alone say what they take.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from mvserver.sql.pull_functions import table

CONSTANTS: Mapping[str, tuple[str, ...]] = {
    "i4": ("1", "0", "10", "-3", "42", "2147483647"),
    "i2": ("1::smallint", "0::int2", "'-7'::smallint", "32767::smallint"),
    "i8": ("100::bigint", "0::int8", "9007199254740993", "'-5'::bigint"),
    "num": ("1.5", "0.5", "2.50", "-1.5", "0.000001", "99999999.99", "'12.34'::numeric(10,2)", "0.0"),
    "f4": ("0.5::real", "'1.5'::float4", "'-0.25'::real", "'NaN'::real"),
    "f8": ("2.5::float8", "'0.1'::float8", "'NaN'::float8", "'-Infinity'::float8", "1e-7::float8", "'-0'::float8"),
    "text": ("'Tea'", "'a'", "''", "'x_y%z'", "'été'", "'a''b\\c'", "' x '", "'50%'", "'tea'::text"),
    "bool": ("true", "false", "'t'::bool"),
    "date": ("date '2024-02-29'", "'2023-12-31'::date", "date '2000-01-01'", "date 'infinity'", "make_date(-44, 3, 15)"),
    "time": ("time '12:00'", "'00:00:00.000001'::time", "time '23:59:59.999999'"),
    "ts": ("timestamp '2024-02-29 12:00:00'", "'2023-12-31 23:59:59.999999'::timestamp", "timestamp '2024-03-31 02:30'",
        "timestamp '-infinity'"),
    "tz": ("timestamptz '2024-03-31 00:30:00+00'", "'2024-10-27 01:30:00+01'::timestamptz",
        "timestamptz '2024-07-04 09:15:30-07'", "'infinity'::timestamptz"),
    "iv": ("interval '1 day'", "interval '1 month'", "'30 days'::interval", "interval '-1 year 2 mons 3 days 04:05:06.7'",
        "interval '24 hours'", "make_interval(hours => 36)", "interval '0'"),
    "bytea": ("'\\x01ff'::bytea", "'\\x'::bytea", "'abc'::bytea"),
    "uuid": ("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid", "uuid '11111111-2222-3333-4444-555555555555'"),
    "jsonb": ("'{\"a\": 1}'::jsonb", "'[1, 2]'::jsonb", "'null'::jsonb", "'\"x\"'::jsonb", "'{\"b\": [1, {\"c\": null}]}'::jsonb"),
    "ai": ("ARRAY[1, 2]", "'{3,NULL,1}'::int[]", "'{}'::int[]", "ARRAY[NULL, 5]"),
    "ta": ("ARRAY['x', 'y']", "'{a,\"b c\",NULL}'::text[]", "ARRAY[]::text[]"),
    "mood": ("'ok'::mood", "'sad'::mood", "'happy'::mood"),
    "fd": ("date '2024-02-29'", "date '1999-12-31'"),
}  # fmt: skip
"""The first of each kind is the simplest."""

TYPES: Mapping[str, str] = {
    "i4": "int", "i2": "smallint", "i8": "bigint", "num": "numeric(20,4)", "f4": "real", "f8": "float8", "text": "text",
    "bool": "bool", "date": "date", "time": "time", "ts": "timestamp", "tz": "timestamptz", "iv": "interval",
    "bytea": "bytea", "uuid": "uuid", "jsonb": "jsonb", "fd": "date", "ai": "int[]", "ta": "text[]", "mood": "mood",
}  # fmt: skip

SORTED = ("i4", "text", "i8", "num", "f8", "bool", "date", "ts", "tz", "i2", "f4", "time", "iv", "bytea", "uuid", "ai",
    "ta", "mood")  # fmt: skip
"""Kinds that have an order; jsonb is compared for equality alone."""
OUTPUT = (*SORTED, "jsonb")
NUMBERS = ("i4", "i8", "num", "f8", "i2", "f4")

_ANY = (
    "coalesce({K}, {K})", "CASE WHEN {bool} THEN {K} ELSE {K} END", "CASE WHEN {bool} THEN {K} END",
)  # fmt: skip
_ANY_SORTED = (
    "nullif({K}, {K})", "greatest({K}, {K})", "least({K}, {K}, {K})", "CASE {K} WHEN {K} THEN {K} ELSE {K} END",
)  # fmt: skip
_COMPARED = (
    "({K} = {K})", "({K} < {K})", "({K} >= {K})", "({K} <> {K})", "({K} IS DISTINCT FROM {K})",
    "({K} IS NOT DISTINCT FROM {K})", "({K} BETWEEN {K} AND {K})", "({K} NOT BETWEEN SYMMETRIC {K} AND {K})",
    "({K} BETWEEN SYMMETRIC {K} AND {K})", "({K} IN ({K}, {K}))", "({K} NOT IN ({K}, {K}))",
    "({K} = ANY (ARRAY[{K}, {K}]))", "({K} > ALL (ARRAY[{K}, {K}]))", "(({K}, {L}) = ({K}, {L}))",
    "(({K}, {L}) < ({K}, {L}))", "(({K}, {L}) >= ({K}, {L}))", "(({K}, {L}) IN (({K}, {L}), ({K}, {L})))",
    "(ROW({K}, {L}) IS NOT NULL)", "(ROW({K}, {L}) IS DISTINCT FROM ROW({K}, {L}))",
)  # fmt: skip
_ZONE = "{=UTC|Europe/Berlin|America/New_York|Asia/Kolkata}"
_FINITE = "nullif(nullif({ts!}, 'infinity'), '-infinity')"
_UNIT = "{=month|day|week|year|hour|quarter|minute|decade|century}"

FORMS: Mapping[str, tuple[str, ...]] = {
    "i4": ("({i4} + {i4!})", "({i4} - {i4!})", "({i4!} * {i2!})", "({i4} / nullif({i4}, 0))", "({i4} % nullif({i4!}, 0))",
        "(-{i4!})", "abs({i4!})", "({i4} & {i4})", "({i4} | {i4!})", "({i4} # {i4!})", "(~{i4})", "({i4!} << 2)",
        "({i4} >> 1)", "{f8!}::int", "{num!}::int", "{bool}::int", "{text=1|42| 7 |-5}::int", "({fd} - {fd})",
        "length({text})", "position({text!} IN {text})", "cardinality({ai})", "array_length({ai}, 1)", "({ai})[1]",
        "({ai})[{i4!}]", "array_position({ai}, {i4!})", "mod({i4}, nullif({i4!}, 0))", "sign({i4})::int",
        "width_bucket({f8!}, 0, 10, 5)", "jsonb_array_length('[1, 2, 3]'::jsonb)", "ascii({text})", "num_nulls({i4}, {text})",
        "({jsonb} ->> 'a')::numeric::int", "extract(year FROM " + _FINITE + ")::int", "extract(isodow FROM " + _FINITE + ")::int"),
    "i2": ("({i2} + {i2!})", "({i2!} / nullif({i2!}, 0::smallint))", "{i4=1|-3|300}::smallint", "(-{i2!})", "abs({i2!})",
        "({i2} % nullif({i2!}, 0::smallint))"),
    "i8": ("({i8!} + {i4})", "({i8!} - {i8!})", "({i4}::bigint * {i4})", "({i8} / nullif({i8!}, 0))", "{i4}::bigint",
        "abs({i8!})", "({i8} & {i8!})", "({i8} % nullif({i8!}, 0))", "{num!}::bigint", "{f8=1.5|2.5|-2.5|0.5}::float8::bigint",
        "gcd({i8!}, {i8!})"),
    "num": ("({num!} + {num!})", "({num!} - {num!})", "({num!} * {i4!})", "(-{num})", "abs({num})", "round({num!}, 1)",
        "trunc({num!}, 2)", "ceil({num})", "floor({num})", "({num!} % nullif({num!}, 0))", "round({num!} / nullif({i4}, 0), 3)", "round({i4} / 3.0, 2)", "({num!} + {i4})", "({num!} - {i8!})", "round({num!}, -1)",
        "round(({f8=1.25|2.5|-0.125}::float8)::numeric, 2)", "CAST({i4} AS numeric(8,3))", "greatest({i4}, {num!})", "coalesce({num!}, {i4})", "trunc({num!})",
        "({jsonb} ->> 'a')::numeric(10,2)", "extract(epoch FROM ({fd} - {fd}) * interval '1 day')", "width_bucket({num!}, 0, 10, 4)::numeric", "{i4}::numeric(12,2)",
        "({i4} + 0.5)", "sign({num})", "{i8}::numeric(20,0)", "extract(epoch FROM {iv!})", "extract(second FROM {time})",
        "mod({num!}, nullif({i4}, 0)::numeric)", "div({num!}, nullif({num!}, 0))", "extract(epoch FROM {ts=2024-02-29|1999-01-04}::timestamp)",
        "{text=1.5|2.50|-0.1}::numeric(10,2)", "{num!}::numeric(12,1)"),
    "f4": ("({f4} + {f4!})", "({f4!} * {f4=2|0.5}::real)", "(-{f4})", "abs({f4})", "{i2}::real", "{num=1.5|0.1}::real"),
    "f8": ("({f8} + {f8!})", "({f8!} - {f8!})", "({f8!} * {f8=2|0.5|-1}::float8)", "({f8} / nullif({i4}, 0))", "(-{f8})",
        "abs({f8})", "ceil({f8})", "floor({f8})", "round({f8})", "trunc({f8})", "{i4}::float8", "{num!}::float8", "{f4}::float8",
        "sqrt(abs({i4})::float8)", "power({i2!}::float8, 2)", "sign({f8})", "date_part('day', " + _FINITE + ")",
        "date_part('epoch', {iv!})", "{text=1.5|NaN|-inf|1e-5}::float8", "degrees({f8!})", "atan2({i4}::float8, 1)"),
    "text": ("({text} || {text})", "upper({text})", "lower({text!})", "left({text}, {i4=2|-1|0})", "right({text}, {i4=2|-1})",
        "substring({text} FROM 2 FOR 3)", "substr({text}, {i4=0|2|-1})", "replace({text}, {text!}, {text!})",
        "trim({text})", "ltrim({text}, 'aT')", "rpad({text}, 6, {text=*|ab})", "lpad({text}, 4)", "repeat({text!}, 2)",
        "split_part({text}, {text= |_|a}, {i4=1|2|-1})", "reverse({text})", "initcap({text!})", "translate({text}, 'aeT', 'xy')",
        "overlay({text} PLACING 'ZZ' FROM 2 FOR 1)", "concat({text}, {i4}, {bool})", "concat_ws('-', {text}, {i4}, {text})",
        "{i4}::text", "{bool}::text", "{date}::text", "{ts}::text", "{tz}::text", "{f8}::text", "{i8}::text", "{uuid}::text",
        "{iv}::text", "{ai}::text", "{ta}::text", "{time}::text", "{mood}::text", "({text} || {i4})", "({i4} || {text})",
        "to_char(greatest({ts}, timestamp '0001-01-01'), {text=YYYY-MM-DD HH24:MI:SS|Dy DD Mon YYYY|IYYY-IW|HH12:MI AM})", "to_char(greatest({date}, date '0001-01-01'), {text=YYYY-MM|Day|Q|DDD})",
        "to_char({i4}, {text=999999|FM000|S99})", "to_char({num!}, {text=FM999990.00|999,999.9})", "({ta})[1]",
        "array_to_string({ai}, ',')", "array_to_string({ta}, ',', '-')", "({jsonb} ->> 'a')", "({jsonb} #>> '{b,0}')",
        "jsonb_typeof({jsonb})", "md5({text})", "encode({bytea}, {text=hex|base64})", "{text}::varchar(3)",
        "regexp_replace({text}, {text=[aeiou]|^.|\\s}, '#', 'g')", "substring({text} FROM {text=[a-z]+|(.).})",
        "quote_literal({text})", "quote_ident({text})", "format('%s/%s', {text}, {i4})", "chr(ascii({text=a|Z}) + 1)",
        "CAST({num!} AS text)", "pg_typeof({i4})::text",
        "to_char(greatest({tz}, timestamptz '0001-01-01'), {text=YYYY-MM-DD HH24:MI:SS OF|Mon DD, YYYY})", "format('%I.%L', {text}, {text})", "({text} || {date})", "({bool} || {text})",
        "({num!} || {text})", "({text} || {ts})", "concat({date}, {ts}, {f8}, {ai})", "concat_ws(', ', {bool}, {num!}, {tz}, {ta})",
        "regexp_substr({text}, {text=[a-z]+|.$})",
        "regexp_replace({text}, {text=(.)(.)|e}, {text=\\2\\1|<\\&>})", "trim(BOTH {text=a|T } FROM {text})", "{text}::char(3)", "{num!}::numeric(12,1)::text",
        "encode({text}::bytea, 'hex')", "btrim({text}, 'T ')", "CASE {text} WHEN 'Tea' THEN 'one' WHEN NULL THEN 'none' ELSE {text} END",
        "(({text})::varchar(4) || '|')", "upper(left({text}, 1)) || lower(substr({text}, 2))", "to_char({iv!}, {text=HH24:MI:SS|DD HH24})", "{i2}::text", "{f4}::text",
        "lower({mood}::text)", "to_hex({i4})", "substring({text}, '(.)$')", "array_to_string(ARRAY(SELECT DISTINCT x FROM unnest({ta}) AS z(x) ORDER BY x), '+')"),
    "bool": ("({bool} AND {bool})", "({bool} OR {bool})", "(NOT {bool})", "({bool} IS TRUE)", "({bool} IS NOT FALSE)",
        "({bool} IS UNKNOWN)", "({text} LIKE {text=%a%|_e%|x\\_%|%|50\\%})", "({text} NOT ILIKE {text=t%|%É%})",
        "({text} LIKE {text!})", "({text} LIKE 'a$_%' ESCAPE '$')", "({text} ~ {text=^[A-Z]|e|[[:alpha:]]+$|\\d})",
        "({text} ~* {text=TEA|^t})", "({text} !~ {text=a|^$})", "({text} SIMILAR TO {text=(T|t)ea|%a_|[a-z]+})",
        "starts_with({text}, {text!})", "({jsonb} ? {text=a|b})", "({jsonb} @> '{\"a\": 1}')", "({ai} @> {ai})",
        "({ai} && {ai})", "({i4} = ANY ({ai}))", "({text} = ANY ({ta}))", "({i4} <> ALL ({ai}))", "({i4} IN ({i4}, {i4}, NULL))",
        "isfinite({ts})", "isfinite({date})", "({jsonb} = {jsonb})", "({i4} = {i8})", "({i4} < {num!})", "({num!} = {f8})",
        "({date} < {ts})", "({date} = {tz})", "({ts} <= {tz})", "({i2} > {i8})", "({f4} = {f8})", "({i8} >= {f8})",
        "({text} > {text!})", "(({date}, {date}) OVERLAPS ({date}, {date}))", "({i4}::bool)", "({text} LIKE ANY (ARRAY['%a', {text!}]))",
        "({text} NOT SIMILAR TO '%(a|e)_?')", "({text} ^@ {text!})", "({date} IS DISTINCT FROM {ts}::date)", "(({i4}, {text}, {date}) <= ({i4!}, {text!}, {date!}))",
        "(({ts}, interval '1 day') OVERLAPS ({ts}, interval '2 hours'))", "({ta} @> ARRAY[{text!}]::text[])", "({ai} = ARRAY[{i4!}, {i4!}])", "({ai} < {ai})",
        "({ta} <@ {ta})", "({mood} = {text=ok|sad})", "({mood} > {text=sad|ok})", "({uuid} = {text=a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11})", "({iv} > {iv!})",
        "({date} BETWEEN {text=2024-01-01|1999-12-31} AND {text=2024-12-31|infinity})", "({i4} IN (VALUES ({i4!}), ({i4!})))", "({text} IN (VALUES ({text!}), (NULL)))",
        "({jsonb} ?| ARRAY['a', 'z'])", "({jsonb} IS NULL)", "({bool} = ANY (ARRAY[{bool}, NULL]))", "({i4} = ALL ({ai}))", "({text} COLLATE \"C\" < {text!})",
        "(NOT ({bool} IS DISTINCT FROM {bool}))", "({i4} BETWEEN {i8!} AND {num!})", "({num!} NOT IN ({i4!}, {num!}))", "regexp_like({text}, {text=^t|E}, 'i')"),
    "date": ("({date!} + {i4=1|-30|365})", "({date!} - {i4=1|30})", "{ts}::date", "{tz}::date", "date_trunc('month', {date})::date",
        "make_date(2024, {i4=1|2|12}, {i4=1|29})", "{text=2024-01-31|2024-02-29}::date",
        "to_date({text=2024-03-01|1999-12-31}, 'YYYY-MM-DD')"),
    "time": ("({time} + {iv=1 hour|-90 minutes}::interval)", "{ts}::time", "make_time({i4=0|23}, {i4=0|59}, 1.5)", "{text=12:00|23:59:59.5}::time"),
    "ts": ("({ts} + {iv})", "({ts} - {iv!})", "({date} + {iv})", "({date} + {time})", "{date}::timestamp", "date_trunc('" + _UNIT + "', {ts})",
        "({tz} AT TIME ZONE '" + _ZONE + "')", "{tz}::timestamp", "make_timestamp(2024, {i4=2|12}, 29, 12, 30, 1.5)",
        "date_bin('15 minutes', {ts}, timestamp '2001-01-01')"),
    "tz": ("({tz} + {iv})", "({tz} - {iv!})", "({ts} AT TIME ZONE '" + _ZONE + "')", "{ts}::timestamptz", "{date}::timestamptz",
        "date_trunc('" + _UNIT + "', {tz})", "date_trunc('" + _UNIT + "', {tz}, '" + _ZONE + "')", "to_timestamp({i4}::float8)"),
    "iv": ("(" + _FINITE + " - " + _FINITE + ")",  "({iv} + {iv})", "({iv} - {iv!})", "({iv!} * {i4=2|-1|0})", "({iv!} / {i4=2|3})",
        "(-{iv})", "age({ts=2024-02-29|2024-03-31 12:00}::timestamp, {ts=1999-12-31|2023-02-28}::timestamp)", "justify_interval({iv!})",
        "justify_hours({iv!})", "justify_days({iv!})", "date_trunc('" + _UNIT + "', {iv!})", "({time} - {time})", "make_interval(days => {i4=1|40})",
        "{time}::interval", "({iv!} * {f8=1.5|0.1}::float8)"),
    "bytea": ("({bytea} || {bytea})", "decode({text=6162|00ff}, 'hex')", "substring({bytea} FROM 1 FOR 1)", "convert_to({text}, 'UTF8')",
        "sha256({bytea})"),
    "uuid": ("{text=a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11|11111111222233334444555555555555}::uuid",),
    "jsonb": ("to_jsonb({i4})", "to_jsonb({text}::text)", "to_jsonb({bool})", "to_jsonb({ai})", "to_jsonb({date})", "to_jsonb({ts})",
        "jsonb_build_object('k', {i4}, 'l', {text}::text)", "jsonb_build_array({i4}, {text}::text, {bool})", "({jsonb} -> 'a')", "(jsonb_build_array({i4}, {bool}) -> 0)",
        "({jsonb} #> '{b,1}')", "({jsonb} || '{\"z\": 1}')", "({jsonb} - 'a')", "jsonb_strip_nulls({jsonb})", "to_jsonb({ta})", "jsonb_build_object('t', {ts}, 'd', {date}, 'f', {f8})"),
    "ai": ("ARRAY[{i4}, {i4}]", "({ai} || {ai})", "({ai} || {i4})", "({i4} || {ai})", "array_append({ai}, {i4})", "array_cat({ai}, {ai})",
        "array_remove({ai}, {i4!})", "array_replace({ai}, {i4!}, {i4!})", "({ai})[1:2]", "({ai})[{i4=2|0}:{i4=3|1}]",
        "array_positions({ai}, {i4!})", "array_prepend({i4}, {ai})", "array_fill({i4!}, ARRAY[2])", "({ai})[{i4=2}:]", "string_to_array({text=1,2|3}, ',')::int[]", "trim_array({ai!}, 0)", "ARRAY(SELECT x FROM unnest({ai}) AS z(x) ORDER BY x)"),
    "ta": ("ARRAY[{text}, {text}]", "({ta} || {text}::text)", "({ta} || {ta})", "string_to_array({text}, {text= |a|})", "regexp_split_to_array({text}, {text=\\s+|a})",
        "({ta})[1:1]", "array_remove({ta}, {text!})", "regexp_match({text}, {text=([a-z])(.)|zzz})", "string_to_array({text}, NULL)", "ARRAY[{text}, {text}]::text[] || {ta}", "ARRAY(SELECT upper(x) FROM unnest({ta}) AS z(x) ORDER BY x)",
        "array_replace({ta}, {text!}, {text!})", "enum_range({mood})::text[]", "({ta} || NULL::text)"),
    "fd": ("({fd} + {i4=1|40})", "({fd} - 1)"),
    "mood": ("enum_first({mood})", "{text=sad|ok|happy}::mood"),
}  # fmt: skip
"""Those of each kind alone; ``forms_of`` adds those of all kinds."""


_NAMED = {
    "integer": "i4", "bigint": "i8", "smallint": "i2", "numeric": "num!", "double precision": "f8", "text": "text",
    "boolean": "bool", "bytea": "bytea", "date": "date", "timestamp": "ts", "timestamp with time zone": "tz",
    "interval": "iv!", "jsonb": "jsonb", "time": "time",
}  # fmt: skip
_PARTICULAR = frozenset({
    # by a constant, by words, by numbers of a range, or by what the session is
    "chr", "repeat", "lpad", "rpad", "decode", "encode", "get_byte", "to_date", "to_timestamp", "to_char", "to_number",
    "make_date", "make_time", "make_timestamp", "make_timestamptz", "date_part", "date_trunc", "date_bin", "timezone",
    "regexp_count", "regexp_instr", "regexp_like", "regexp_match", "regexp_replace", "regexp_split_to_array",
    "regexp_substr", "factorial", "random", "gen_random_uuid", "uuid_generate_v4", "now", "clock_timestamp",
    "statement_timestamp", "transaction_timestamp", "timeofday", "pg_sleep", "normalize", "parse_ident", "version",
    "convert_from", "convert_to", "power", "pow", "exp", "ln", "log", "log10", "sqrt", "trunc", "round", "gcd", "lcm",
    "acos", "acosh", "asin", "atanh", "cot", "cosh", "sinh", "tan", "format", "split_part", "substr", "to_hex",
    "age", "trim_scale", "degrees", "radians", "cbrt", "scale", "min_scale", "sin", "cos", "tanh", "asinh", "atan",
    "array_fill", "current_setting", "set_config", "row_security_active", "left", "right", "div", "mod", "width_bucket", "pg_size_pretty", "string_to_array", "row_to_json",
    "jsonb_pretty", "jsonb_array_length", "jsonb_extract_path", "jsonb_extract_path_text", "jsonb_set", "date",
})  # fmt: skip
_PLAIN = re.compile(r"\(([a-z ,]*)\) → ([a-z ]+)")


def _tabled() -> Iterator[tuple[str, str]]:
    for each in table().values():
        if each.kind != "scalar" or each.name in _PARTICULAR or each.name.startswith(("pg_", "has_", "txid_")):
            continue
        for form in each.forms:
            plain = _PLAIN.fullmatch(form)
            if plain is None or not plain[1]:
                continue
            takes, result = plain[1].split(", "), _NAMED.get(plain[2], "")
            if result and all(kind in _NAMED for kind in takes):
                yield result.rstrip("!"), f"{each.name}({', '.join('{' + _NAMED[kind] + '}' for kind in takes)})"


_TABLED: dict[str, list[str]] = {}
for _kind, _form in _tabled():
    _TABLED.setdefault(_kind, []).append(_form)


def forms_of(kind: str) -> tuple[str, ...]:
    return _FORMS_OF[kind]


def _all(kind: str) -> tuple[str, ...]:
    generic = (*_ANY, *(_ANY_SORTED if kind in SORTED else ()))
    found = [*FORMS.get(kind, ()), *(form.replace("{K}", f"{{{kind}}}") for form in generic), *_TABLED.get(kind, ())]
    if kind == "bool":
        for compared, other in zip(SORTED, (*SORTED[3:], *SORTED[:3]), strict=True):
            of = [form for form in _COMPARED if "ARRAY" not in form or compared not in ("ai", "ta")]
            found += [form.replace("{K}", f"{{{compared}}}").replace("{L}", f"{{{other}!}}") for form in of]
        found += [f"({{{each}}} IS {word}NULL)" for each in OUTPUT for word in ("", "NOT ")]
    return tuple(dict.fromkeys(found))


_FORMS_OF = {kind: _all(kind) for kind in CONSTANTS}
