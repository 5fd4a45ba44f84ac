"""Expressions over the rows of ``dialect_rows`` with parameters whose types the client leaves out."""

from __future__ import annotations

_NUMBERS = ("id", "small", "big", "amount", "ratio", "ratio::real", "1", "2.5", "9000000000")
_ARITHMETIC = [
    form.replace("x", operand)
    for operand in _NUMBERS
    for form in ("x + $1", "$1 + x", "x - $1", "$1 - x", "x * $1", "$1 * x", "x / $1", "$1 / x")
]
_REMAINDERS = [
    form.replace("x", operand) for operand in ("id", "small", "big", "amount") for form in ("x % $1", "$1 % x")
]
_TIMES = (
    "day + $1", "$1 + day", "day - $1", "$1 - day", "moment + $1", "moment - $1", "instant + $1", "instant - $1",
    "$1 + moment", "$1 - moment", "$1 + instant", "$1 - instant", "(moment - moment) + $1", "(moment - moment) * $1",
    "(moment - moment) / $1", "$1 * (moment - moment)", "moment::time + $1", "moment::time - $1",
    "interval '1 day' * $1", "interval '1 day' + $1", "$1 * interval '1 day'", "interval '1 day' / $1",
    "now() - $1", "current_date - $1", "current_timestamp + $1", "date_trunc('day', moment) + $1",
    "day - $1::date", "day + $1::int", "moment - $1::interval", "now() - interval '1 day' * $1",
)  # fmt: skip
_TEXTS = (
    "name || $1", "$1 || name", "id || $1", "$1 || id", "tags || $1", "$1 || tags", "marks || $1", "$1 || $2", "name || $1 || $2",
    "name like $1", "name ilike $1", "name not like $1", "$1 like name", "name ~ $1", "name ~* $1", "name !~ $1",
    "name similar to $1", "name like $1 || '%'", "name like '%' || $1 || '%'", "name like any($1)", "name ilike any($1)",
    "name = any($1)", "id = any($1)", "amount = any($1)", "day = any($1)", "ratio <> all($1)", "$1 = any(tags)",
    "$1 = any(marks)", "name in ($1, $2)", "id in ($1, $2, 3)", "amount in ($1)", "day in ($1, '2024-01-01')",
    "$1 in (id, big)", "$1 in ('a', 'b')", "tags @> $1", "marks && $1", "$1 <@ marks", "tags = $1", "marks[$1]", "tags[$1:$2]",
)  # fmt: skip
_COMPARISONS = [
    form.replace("x", operand)
    for operand in ("id", "small", "big", "amount", "ratio", "name", "day", "moment", "instant", "flag", "(amount * 2)")
    for form in ("x = $1", "$1 < x", "x between $1 and $2", "x is distinct from $1", "nullif(x, $1)", "coalesce(x, $1)",
                 "coalesce($1, x)", "greatest(x, $1)", "case when flag then x else $1 end", "case x when $1 then 1 end")
]  # fmt: skip
_CHOICES = (
    "$1 between id and big", "$1 between $2 and amount", "case when $1 then 1 else 2 end", "case when flag then $1 else 'a' end",
    "case when flag then $1 else $2 end", "case $1 when 1 then 'a' end", "case $1 when 'a' then 1 when 'b' then 2 end",
    "coalesce($1, $2)", "coalesce($1, 1)", "coalesce(id, $1, amount)", "greatest($1, 1.5)", "least(id, big, $1)",
    "nullif($1, 'a')", "nullif($1, 0)", "case when flag then id when id > 2 then amount else $1 end", "not $1", "$1 and flag",
    "flag or $1", "$1 is null", "$1 is true", "$1", "$1 = $2", "$1 < $2", "row(id, name) = row($1, $2)", "(id, amount) in (($1, $2))",
    "(id, day) > ($1, $2)", "array[$1, id]", "array[$1, $2]", "array[amount, $1]", "array[$1]::int[]", "$1 = 1", "$1 > 1.5", "$1 = id + 1",
    "id + $1 > $2", "amount * $1 + $2", "amount * ($1 + $2)", "ratio * ($1 - id)", "id * $1 * amount", "-$1 + id", "abs($1) + id", "- $1",
    "exists (select 1 where id = $1)", "id = (select $1)", "id in (select $1)", "(select max(id) from shop where big > $1)",
)  # fmt: skip
_CASTS = (
    "$1::int", "$1::text", "$1::numeric", "$1::numeric(10, 2)", "$1::float8", "$1::real", "$1::date", "$1::timestamp", "$1::timestamptz",
    "$1::interval", "$1::bool", "$1::jsonb", "$1::json", "$1::uuid", "$1::int[]", "$1::text[]", "$1::bytea", "$1::varchar", "$1::varchar(3)",
    "$1::smallint", "$1::time", "cast($1 as bigint) + $2", "$1::int + id", "$1::text || $1", "($1::numeric) * amount", "id + $1::numeric",
    "$1::int::text", "$1::char(3)", "$1::name", "$1::oid",
)  # fmt: skip
_FUNCTIONS = (
    "abs($1)", "round(amount, $1)", "round($1)", "round($1, 2)", "round($1::numeric, $2)", "ceil($1)", "floor($1)", "trunc(amount, $1)",
    "power(ratio, $1)", "power($1, 2)", "power(amount, $1)", "power(2, $1)", "sqrt($1)", "mod(id, $1)", "mod($1, 2)", "mod(amount, $1)", "div(amount, $1)",
    "sign($1)", "ln($1)", "log($1)", "log($1, amount)", "exp($1)", "upper($1)", "lower($1)", "length($1)", "left(name, $1)", "right(name, $1)",
    "substr(name, $1)", "substr(name, $1, $2)", "substring(name from $1 for $2)", "substring(name, $1)", "substring(name from $1)", "repeat(name, $1)", "lpad(name, $1, $2)", "rpad(name, $1)", "replace(name, $1, $2)",
    "translate(name, $1, $2)", "strpos(name, $1)", "position($1 in name)", "starts_with(name, $1)", "split_part(name, $1, $2)", "concat(name, $1)",
    "concat($1, $2)", "concat_ws($1, name, $2)", "format($1, name)", "trim($1)", "btrim(name, $1)", "ltrim(name, $1)", "trim($1 from name)",
    "md5($1)", "ascii($1)", "chr($1)", "initcap($1)", "reverse($1)", "regexp_replace(name, $1, $2)", "regexp_replace(name, $1, $2, $3)",
    "regexp_match(name, $1)", "regexp_split_to_array(name, $1)", "regexp_count(name, $1)", "string_to_array($1, ',')", "string_to_array(name, $1)",
    "array_to_string(tags, $1)", "array_append(marks, $1)", "array_prepend($1, marks)", "array_cat(marks, $1)", "array_position(tags, $1)",
    "array_remove(marks, $1)", "array_length(marks, $1)", "cardinality($1::int[])", "date_trunc($1, moment)", "date_trunc($1, instant)",
    "date_trunc($1, day)", "date_trunc('day', $1)", "date_trunc('day', $1::timestamp)", "date_trunc($1, instant, $2)", "date_part($1, moment)", "date_part('year', $1::date)",
    "extract(year from $1::date)", "extract(epoch from $1::interval)", "to_char(moment, $1)", "to_char(amount, $1)", "to_char(id, $1)", "to_char(ratio, $1)", "to_char(day, $1)", "to_date($1, 'YYYY-MM-DD')",
    "to_date('2024-01-02', $1)", "to_date($1, $2)", "to_timestamp($1, 'YYYY')", "to_timestamp($1)", "to_timestamp($1, $2)", "to_number($1, '999')", "to_number(name, $1)", "age($1, moment)", "age(moment, $1)", "age($1::timestamp)",
    "make_date($1, $2, $3)", "make_interval(days => $1)", "make_interval(0, 0, 0, $1)", "make_interval(hours => $1, mins => $2)", "make_timestamp($1, $2, $3, $4, $5, $6)", "make_time($1, $2, $3)",
    "date_bin($1, moment, timestamp '2001-01-01')", "date_bin('15 minutes', moment, $1)", "date_bin('15 minutes', $1, timestamp '2001-01-01')", "justify_days($1)",
    "moment at time zone $1", "instant at time zone $1", "$1 at time zone 'UTC'", "timezone($1, moment)", "$1::timestamptz at time zone $2",
    "doc::jsonb -> $1", "doc::jsonb ->> $1", "doc::jsonb -> $1::int", "doc::jsonb ->> $1::text", "doc::jsonb #> $1", "doc::jsonb #>> $1", "doc::jsonb @> $1", "doc::jsonb ? $1", "doc::jsonb ?| $1", "doc::jsonb ?& $1",
    "$1 <@ doc::jsonb", "doc::jsonb || $1", "doc::jsonb - $1", "doc::jsonb #- $1", "jsonb_set(doc::jsonb, $1, $2)", "jsonb_set(doc::jsonb, '{a}', $1)", "jsonb_extract_path_text(doc::jsonb, $1)", "jsonb_extract_path(doc::jsonb, $1, $2)",
    "jsonb_build_object($1, id)", "jsonb_build_object('a', $1)", "json_build_object($1::text, $2::int)", "to_jsonb($1::text)", "jsonb_array_length($1)", "jsonb_typeof($1)", "doc::jsonb = $1", "doc::json -> $1", "doc::json #>> $1",
    "set_config($1, $2, $3)", "set_config('application_name', $1, false)", "current_setting($1)", "current_setting($1, $2)", "encode($1, 'hex')", "decode($1, 'hex')", "encode('ab'::bytea, $1)", "decode('6162', $1)",
    "quote_literal($1)", "quote_ident($1)", "pg_typeof($1::int)", "generate_series(1, $1)", "unnest($1::int[])", "random() < $1", "greatest(day, $1)", "least($1, moment)", "width_bucket(ratio, $1, $2, $3)",
    "to_hex($1)", "gcd(id, $1)", "atan2($1, ratio)", "convert_from($1, 'UTF8')", "get_byte('ab'::bytea, $1)", "overlay(name placing $1 from $2)", "has_table_privilege($1, $2)", "pg_get_viewdef($1)", "to_regclass($1)",
)  # fmt: skip
_AGGREGATES = (
    "sum(amount * $1)", "sum(id) * $1", "avg(amount) > $1", "count(*) > $1", "sum($1)", "max($1)", "min(id) + $1", "count($1)", "avg($1::int)", "string_agg(name, $1)", "array_agg(id + $1)",
    "count(*) filter (where id > $1)", "sum(amount) filter (where name = $1)", "percentile_cont($1) within group (order by ratio)", "percentile_disc($1) within group (order by id)",
    "sum(case when name = $1 then amount else $2 end)", "sum(case when name = $1 then $2 else 0 end)", "bool_or($1)", "coalesce(sum(amount), $1)", "coalesce(avg(id), $1)", "round(avg(ratio)::numeric, $1)", "round(avg(amount), $1)", "json_agg($1::int)",
    "stddev(ratio) / $1", "avg(id) * $1", "sum(big) / $1", "sum(ratio) * $1", "string_agg(name, $1 order by id)", "mode() within group (order by id + $1)",
)  # fmt: skip
_WINDOWS = (
    "lag(amount, $1) over (order by id)", "lag(amount, 1, $1) over (order by id)", "lead(name, $1, $2) over (order by id)", "ntile($1) over (order by id)", "nth_value(id, $1) over (order by id)",
    "sum(id + $1) over (order by id)", "row_number() over (order by id) <= $1",
)  # fmt: skip

EXPRESSIONS = (
    *_ARITHMETIC,
    *_REMAINDERS,
    *_TIMES,
    *_TEXTS,
    *_COMPARISONS,
    *_CHOICES,
    *_CASTS,
    *_FUNCTIONS,
    *_AGGREGATES,
    *_WINDOWS,
)

QUERIES = (
    "SELECT id FROM shop ORDER BY id LIMIT $1", "SELECT id FROM shop ORDER BY id LIMIT $1 OFFSET $2", "SELECT id FROM shop OFFSET $1",
    "SELECT id FROM shop ORDER BY id FETCH FIRST $1 ROWS ONLY", "SELECT id FROM shop ORDER BY $1", "SELECT id, name FROM shop ORDER BY id + $1",
    "SELECT s.id, l.x FROM shop s, LATERAL (SELECT id AS x FROM shop WHERE id >= s.id ORDER BY id LIMIT $1) l",
    "SELECT s.id, l.x FROM shop s JOIN LATERAL (SELECT id AS x FROM shop WHERE id >= s.id ORDER BY id LIMIT $1) l ON l.x > $2",
    "SELECT date_trunc($1, moment), count(*) FROM shop GROUP BY 1", "SELECT date_trunc($1, moment), count(*) FROM shop GROUP BY date_trunc($1, moment)",
    "SELECT name FROM shop GROUP BY name HAVING count(*) >= $1", "SELECT name, sum(amount) FROM shop GROUP BY name HAVING sum(amount) > $1",
    "WITH c AS (SELECT id, amount * $1 AS a FROM shop) SELECT a + $2 FROM c WHERE id > $3", "SELECT x * $1 FROM (SELECT amount AS x FROM shop) q",
    "SELECT q.x + $1 FROM (SELECT sum(id) AS x FROM shop) q", "SELECT q.x / $1 FROM (SELECT avg(ratio) AS x FROM shop) q",
    "SELECT a.id FROM shop a JOIN shop b ON a.id = b.id + $1 WHERE b.amount > $2", "SELECT $1 UNION SELECT name FROM shop", "SELECT id FROM shop UNION SELECT $1",
    "SELECT amount FROM shop UNION ALL SELECT $1", "SELECT * FROM (VALUES ($1, $2)) v(a, b)", "SELECT * FROM (VALUES (1, $1), ($2, 2.5)) v(a, b)",
    "SELECT g FROM generate_series($1, $2) g", "SELECT g FROM generate_series(1, $1) g", "SELECT g FROM generate_series(day, $1, interval '1 day') AS t(g), shop",
    "SELECT g FROM generate_series(timestamp '2024-01-01', $1, $2) g", "SELECT u FROM unnest($1::text[]) u", "SELECT id FROM shop WHERE day >= $1 AND day < $1::date + $2",
    "SELECT id FROM shop WHERE ($1 IS NULL OR name = $1)", "SELECT id FROM shop WHERE ($1::text IS NULL OR name = $1)", "SELECT id FROM shop WHERE amount > $1 AND amount < $2 AND name <> $3 AND flag = $4",
    "SELECT id FROM shop WHERE moment >= now() - $1", "SELECT id FROM shop WHERE moment >= $1 AND moment < $1 + interval '1 day'", "SELECT id FROM shop WHERE id = $1 AND big = $1",
    "SELECT id FROM shop WHERE id = $2 AND name = $1", "SELECT id FROM shop WHERE big = $1 AND id = $1", "SELECT value FROM jsonb_array_elements($1)", "SELECT x.value FROM jsonb_each_text($1) x",
    "SELECT relname FROM pg_class WHERE relname = $1", "SELECT relname FROM pg_class WHERE oid = $1", "SELECT attname FROM pg_attribute WHERE attnum > $1 AND attrelid = $2", "SELECT setting FROM pg_settings WHERE name = $1",
    "SELECT table_name FROM information_schema.tables WHERE table_schema = $1", "SELECT typname FROM pg_type WHERE typname LIKE $1 AND typlen = $2", "SELECT relname FROM pg_class WHERE relkind = $1 LIMIT 1", "SELECT c.relname FROM pg_class c WHERE c.relkind IN ($1, $2)", "SELECT relname FROM pg_class WHERE relname = ANY($1)",
    "SELECT DISTINCT amount * $1 AS a FROM shop ORDER BY a", "SELECT DISTINCT ON (name) id + $1 FROM shop", "SELECT count(*) FROM shop WHERE name = $1 GROUP BY amount * $2",
    "SELECT s.amount / $1 AS q FROM shop AS s WHERE s.ratio < $2 ORDER BY s.ratio - $3",
)  # fmt: skip

STATEMENTS = (*(f"SELECT {each} FROM shop" for each in EXPRESSIONS), *QUERIES)
