"""Statements made of forms and operands: each form over each column of its kind."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.clients.dialect_edges import VALUES as EDGES
from tests.clients.test_dialect import ARRAYS, DOCUMENTS, NUMBERS, QUERIES, TEXTS, TIMES

_X = re.compile(r"\bx\b")

_NUMBER_COLUMNS = (
    ("orders", "total"), ("orders", "id"), ("lines", "quantity"), ("lines", "price"), ("events", "amount"),
)  # fmt: skip
_FLOAT_COLUMNS = (("customers", "score"), ("events", "ratio"), ("lines", "discount"), ("products", "weight"))
_NUMBER_FORMS = (
    "x + 1", "x - 0.5", "x * 1.5", "x / 4", "x / 2.5", "x % 3", "-x", "abs(x)", "sign(x)", "ceil(x)", "floor(x)",
    "round(x)", "round(x, 1)", "trunc(x)", "x::text", "x::float8", "x::numeric(20, 1)", "x BETWEEN -1 AND 100",
    "x IN (1, 2.5, 100)", "CASE WHEN x > 1 THEN x ELSE 0 END", "coalesce(x, -1)", "nullif(x, 100)", "greatest(x, 1)",
    "to_char(x, 'FM9999999999990.00')", "x > ALL (ARRAY[-100, 0])", "x IS DISTINCT FROM 100", "concat('n', x)",
)  # fmt: skip
_FLOAT_FORMS = (
    "x + 1", "x * 1.5", "x / 4", "-x", "abs(x)", "ceil(x)", "round(x)", "trunc(x)", "x::text", "x::numeric(20, 3)",
    "x BETWEEN -1 AND 100", "CASE WHEN x > 1 THEN x ELSE 0 END", "coalesce(x, -1)", "greatest(x, 1)", "x::float4",
    "concat('n', x)", "x > 0.3",
)  # fmt: skip
_AGGREGATES = (
    "sum(x)", "avg(x)", "min(x)", "max(x)", "count(x)", "count(DISTINCT x)", "array_agg(x ORDER BY x)",
    "sum(x) FILTER (WHERE x > 0)", "bool_and(x > 0)", "jsonb_agg(x ORDER BY x)",
)  # fmt: skip
_TEXT_COLUMNS = (
    ("customers", "name"), ("customers", "email"), ("orders", "status"), ("orders", "note"), ("products", "category"),
)  # fmt: skip
_TEXT_FORMS = (
    "upper(x)", "lower(x)", "initcap(x)", "length(x)", "left(x, 3)", "right(x, -2)", "x || '!'", "x LIKE '%a%'",
    "x NOT LIKE '_p%'", "x ILIKE 'A%'", "replace(x, 'e', '3')", "split_part(x, '@', 1)", "position('a' IN x)",
    "coalesce(x, 'none')", "nullif(x, '')", "md5(x)", "reverse(x)", "substring(x FROM 2 FOR 2)", "x ~ '^[A-Za-z]'",
    "concat_ws('-', x, 1, NULL)", "x > 'M'", "lpad(x, 5, '*')", "starts_with(x, 'a')", "x IN ('open', 'shipped')",
    "regexp_replace(x, '[aeiou]', '_', 'g')", "string_to_array(x, ' ')", "translate(x, 'abc', 'xyz')", "x::varchar(4)",
    "ascii(x)", "trim(BOTH 'a' FROM x)", "regexp_match(x, '([a-z])([a-z])')", "quote_literal(x)", "to_jsonb(x)",
)  # fmt: skip
_TEXT_AGGREGATES = (
    "string_agg(x, ', ' ORDER BY x)", "min(x)", "max(x)", "count(DISTINCT x)", "array_agg(DISTINCT x)",
    "json_agg(x ORDER BY x)",
)  # fmt: skip
_TIME_COLUMNS = (("customers", "joined"), ("orders", "placed"), ("orders", "shipped"), ("events", "at"))
_TIME_FORMS = (
    "x + interval '1 day'", "x - interval '1 month 2 hours'", "date_trunc('month', x)", "date_trunc('week', x)",
    "extract(year FROM x)", "extract(dow FROM x)", "extract(epoch FROM x)", "to_char(x, 'YYYY-MM-DD HH24:MI')",
    "to_char(x, 'Dy DD Mon')", "x::date", "x::text", "x > '2024-01-01'", "x BETWEEN '2024-01-01' AND '2024-06-30'",
    "date_part('week', x)", "CASE WHEN x IS NULL THEN 'never' ELSE 'once' END", "coalesce(x, '2000-01-01')",
    "x = x", "age(x, '2000-01-01')", "to_jsonb(x)", "x::date - date '2024-01-01'",
)  # fmt: skip
_DOCUMENT_COLUMNS = (("customers", "profile"), ("products", "attributes"), ("events", "payload"))
_DOCUMENT_FORMS = (
    "x::jsonb", "x::json", "x::jsonb -> 'a'", "x::jsonb ->> 'n'", "x::jsonb #>> '{address,zip}'", "x::jsonb ? 'color'",
    "x::jsonb @> '{\"n\": 1}'", "jsonb_typeof(x::jsonb)", "x::jsonb || '{\"new\": [1]}'", "x::jsonb - 'n'",
    "jsonb_strip_nulls(x::jsonb)", "x::jsonb -> 'langs' -> 0", "jsonb_build_object('d', x::jsonb)", "x::json ->> 'a'",
    "jsonb_set(x::jsonb, '{a}', '9')",
)  # fmt: skip
_ARRAY_COLUMNS = (("customers", "tags"), ("products", "sizes"))
_ARRAY_FORMS = (
    "x", "x[1]", "array_length(x, 1)", "cardinality(x)", "array_to_string(x, ',', '-')", "x || x", "x[1:2]",
    "array_position(x, x[1])", "x = x", "to_jsonb(x)", "x IS NULL", "unnest(x)", "array_upper(x, 1)",
)  # fmt: skip
_KEYS = {"lines": "order_id, line"}
_GROUPED = (
    "SELECT status, {} FROM orders GROUP BY status ORDER BY 1",
    "SELECT {} FROM orders GROUP BY ROLLUP (status) ORDER BY 1",
    "SELECT customer, {} FROM orders GROUP BY customer HAVING count(*) > 1 ORDER BY 1",
    "SELECT c.city, {} FROM orders o JOIN customers c ON c.id = o.customer GROUP BY c.city ORDER BY 1",
)  # fmt: skip
_OF_GROUPS = (
    "count(*)", "sum(total)", "avg(total)", "max(placed)", "min(shipped)", "count(note)", "sum(total) / count(*)",
    "round(avg(total), 2)", "string_agg(note, '|' ORDER BY note)", "bool_or(total > 50)",
)  # fmt: skip
_WINDOWS = (
    "row_number() OVER w", "rank() OVER w", "dense_rank() OVER w", "lag(total) OVER w", "lead(total, 1, 0) OVER w",
    "sum(total) OVER w", "avg(total) OVER w", "first_value(id) OVER w", "count(*) OVER w", "ntile(2) OVER w",
    "max(total) OVER (PARTITION BY status)", "percent_rank() OVER w", "cume_dist() OVER w",
)  # fmt: skip


def _each(columns: tuple[tuple[str, str], ...], forms: tuple[str, ...], aggregates: tuple[str, ...]) -> Iterator[str]:
    for table, column in columns:
        key = _KEYS.get(table, "id")
        for form in forms:
            yield f"SELECT {_X.sub(column, form)} FROM {table} ORDER BY {key}"
        for form in aggregates:
            yield f"SELECT {_X.sub(column, form)} FROM {table}"


_OTHERWISE = re.compile("jsonb|concat|FROM 2 FOR")
"""Forms that are sorted otherwise, or whose parameters have another type."""


def _keys() -> Iterator[str]:
    """Each form as what rows of a window are sorted and parted by, and of rows that a FILTER lets pass."""
    for columns, forms in (
        (_NUMBER_COLUMNS, _NUMBER_FORMS), (_FLOAT_COLUMNS, _FLOAT_FORMS), (_TEXT_COLUMNS, _TEXT_FORMS),
        (_TIME_COLUMNS[1:], _TIME_FORMS),
    ):  # fmt: skip
        table, column = columns[0]
        for form in (_X.sub(column, each) for each in forms if not _OTHERWISE.search(each)):
            yield f"SELECT id, row_number() OVER (ORDER BY {form}, id) FROM {table} ORDER BY id"
            yield f"SELECT id, count(*) OVER (PARTITION BY {form}) FROM {table} ORDER BY id"
            yield f"SELECT count(DISTINCT {form}) FILTER (WHERE id > 2) FROM {table}"


def _made() -> Iterator[str]:
    yield from _each(_NUMBER_COLUMNS, _NUMBER_FORMS, _AGGREGATES)
    yield from _each(_FLOAT_COLUMNS, _FLOAT_FORMS, _AGGREGATES[:7])
    yield from _each(_TEXT_COLUMNS, _TEXT_FORMS, _TEXT_AGGREGATES)
    yield from _each(_TIME_COLUMNS, _TIME_FORMS, _AGGREGATES[2:7])
    yield from _each(_DOCUMENT_COLUMNS, _DOCUMENT_FORMS, ())
    yield from _each(_ARRAY_COLUMNS, _ARRAY_FORMS, ())
    yield from (frame.format(item) for frame in _GROUPED for item in _OF_GROUPS)
    yield from _keys()
    yield from (f"SELECT id, {item} FROM orders WINDOW w AS (ORDER BY total, id) ORDER BY id" for item in _WINDOWS)


GENERATED = tuple(dict.fromkeys(_made()))
ELSEWHERE = (
    *(f"SELECT id, {item} FROM shop ORDER BY id" for item in (*TIMES, *NUMBERS, *TEXTS, *DOCUMENTS, *ARRAYS)),
    *QUERIES, *(f"SELECT {item}" for item in EDGES),
)  # fmt: skip
"""Of the tests of the dialect, where they are asked as text alone."""
