"""What expressions are made of: by kind of value constants, and forms with places for other expressions.

``{kind}`` in a form is an expression of that kind, ``{kind!}`` a column or constant of it, ``{kind=a|(b|c)d}`` one of
the texts ``a`` and ``(b|c)d``; ``{K}`` in a form of any kind is its own, ``{L}`` another. Functions come from the table
of pull queries, too, where its types alone say what they take.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from mvserver.sql.pull_functions import table
from tests.corpus.statements import by_class, lines

_FOLDER = Path(__file__).parent
CONSTANTS: Mapping[str, tuple[str, ...]] = by_class(lines(_FOLDER / "constants.txt"))
"""By kind; the first of each is the simplest."""

TYPES: Mapping[str, str] = {
    "i4": "int", "i2": "smallint", "i8": "bigint", "num": "numeric(20,4)", "f4": "real", "f8": "float8", "text": "text",
    "bool": "bool", "date": "date", "time": "time", "ts": "timestamp", "tz": "timestamptz", "iv": "interval",
    "bytea": "bytea", "uuid": "uuid", "jsonb": "jsonb", "fd": "date", "ai": "int[]", "ta": "text[]", "mood": "mood",
}  # fmt: skip

SORTED = ("i4", "text", "i8", "num", "f8", "bool", "date", "ts", "tz", "i2", "f4", "time", "iv", "bytea", "uuid", "ai",
    "ta", "mood")  # fmt: skip
"""Kinds that have an order; jsonb is compared for equality alone."""
OUTPUT = (*SORTED, "jsonb")

_FORMS = by_class(lines(_FOLDER / "forms.txt"))
_ANY, _ANY_SORTED, _COMPARED = (_FORMS[title] for title in ("any kind", "any kind with an order", "comparisons"))

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
    "array_fill", "current_setting", "set_config", "row_security_active", "left", "right", "div", "mod",
    "width_bucket", "pg_size_pretty", "string_to_array", "row_to_json",
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
    found = [*_FORMS.get(kind, ())]
    found += [form.replace("{K}", f"{{{kind}}}") for form in generic]
    found += _TABLED.get(kind, [])
    if kind == "bool":
        for compared, other in zip(SORTED, (*SORTED[3:], *SORTED[:3]), strict=True):
            of = [form for form in _COMPARED if "ARRAY" not in form or compared not in ("ai", "ta")]
            found += [form.replace("{K}", f"{{{compared}}}").replace("{L}", f"{{{other}!}}") for form in of]
        found += [f"({{{each}}} IS {word}NULL)" for each in OUTPUT for word in ("", "NOT ")]
    return tuple(dict.fromkeys(found))


_FORMS_OF = {kind: _all(kind) for kind in CONSTANTS}
