"""Functions whose namesakes in DuckDB answer otherwise at the edges: where PostgreSQL has an error, or a NULL.

DuckDB counts a negative position from the end, yields infinity where a number overflows, and has no NULL delimiter.
``dialect.functions.checked_functions`` puts these in the place of the functions.
"""

from __future__ import annotations

TRANSACTION_TIME = "mv_now"
"""DuckDB's variable with the time at which the session's transaction began; not set outside of transaction blocks."""

NOW_MACROS = frozenset({"_now", "transaction_timestamp"})

QUOTIENT_SCALES = range(6, 21)
_WHOLE_DIGITS, _DOUBLE_DIGITS = 28, 15  # of a quotient with ten digits behind the point, and of a double
_NEAR_DIGITS = 14  # that rounding a double cannot change


def _quotient(scale: int) -> str:
    """Of decimals: the whole part of a large one is split off, twice, and what is left over, computed exactly, is
    divided once more."""
    a, b = "_each['a']", "_each['b']"
    whole = f"CAST(trunc({a} / {b}) AS DECIMAL({_WHOLE_DIGITS}, 0))"
    rest = f"({a} - {whole} * {b})"
    more = f"CAST(trunc({rest} / {b}) AS DECIMAL({_DOUBLE_DIGITS}, 0))"
    last = f"({rest} - {more} * {b})"
    return f"""_quotient_{scale}(a, b) AS list_transform([{{'a': a, 'b': b}}], lambda _each: CASE
        WHEN {b} = 0 AND {a} IS NOT NULL THEN error('Division by zero')
        WHEN abs({a} / {b}) < 1e{_NEAR_DIGITS - scale} THEN CAST({a} / {b} AS DECIMAL(38, {scale}))
        ELSE {whole} + {more} + CAST({last} / {b} AS DECIMAL(38, {scale})) END)[1]"""


EDGE_MACROS: tuple[str, ...] = tuple(
    "CREATE OR REPLACE MACRO {system}.fn." + text
    for text in (
        "_substring(s, f) AS substring(s, CASE WHEN f < 1 THEN 1 ELSE f END), "
        "(s, f, n) AS CASE WHEN n < 0 THEN error('negative substring length not allowed') "
        "WHEN f < 1 THEN substring(s, 1, CASE WHEN f + n < 1 THEN 0 ELSE f + n - 1 END) ELSE substring(s, f, n) END",
        """_split_part(s, d, n) AS CASE WHEN n = 0 THEN error('field position must not be zero')
            WHEN d = '' THEN CASE WHEN s IS NOT NULL THEN CASE WHEN n IN (1, -1) THEN s ELSE '' END END
            ELSE split_part(s, d, n) END""",
        """_string_to_array(s, d) AS CASE WHEN s = '' THEN CAST([] AS VARCHAR[])
            WHEN d IS NULL THEN string_split(s, '') WHEN d = '' THEN CASE WHEN s IS NOT NULL THEN [s] END
            ELSE string_split(s, d) END""",
        "_string_to_array_but(s, d, n) AS list_transform({system}.fn._string_to_array(s, d), lambda e: nullif(e, n))",
        "_texts_of(s, d) AS unnest({system}.fn._string_to_array(s, d)), "
        "(s, d, n) AS unnest({system}.fn._string_to_array_but(s, d, n))",
        # --- numbers that have no end --------------------------------------------------------------------------------
        """_exp(x) AS CASE WHEN isfinite(CAST(x AS DOUBLE)) AND exp(x) = CAST('infinity' AS DOUBLE)
                THEN error('value out of range: overflow')
            WHEN isfinite(CAST(x AS DOUBLE)) AND exp(x) = 0 THEN error('value out of range: underflow')
            ELSE exp(x) END""",
        """_power(a, b) AS CASE WHEN a = 0 AND b < 0 THEN error('zero raised to a negative power is undefined')
            WHEN a < 0 AND isfinite(CAST(b AS DOUBLE)) AND b <> floor(b)
                THEN error('a negative number raised to a non-integer power yields a complex result')
            WHEN NOT (isfinite(CAST(a AS DOUBLE)) AND isfinite(CAST(b AS DOUBLE))) THEN pow(a, b)
            WHEN NOT isfinite(pow(a, b)) THEN error('value out of range: overflow')
            WHEN pow(a, b) = 0 AND a <> 0 THEN error('value out of range: underflow')
            ELSE pow(a, b) END""",
        """_in_range(x, finite) AS CASE WHEN NOT isfinite(x) AND finite THEN error('value out of range: overflow')
            ELSE x END""",
        *map(_quotient, QUOTIENT_SCALES),
        """_ratio(a, b) AS CASE WHEN b = 0 AND a IS NOT NULL THEN error('Division by zero')
            WHEN a IS NOT NULL AND b IS NOT NULL THEN {'dividend': a, 'divisor': b} END""",
        r"""_numeric_in(s) AS CASE
            WHEN regexp_full_match(s, '\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,3})?\s*') THEN trim(s)
            WHEN s IS NOT NULL THEN error('invalid input syntax for type numeric: "' || s || '"') END""",
        # --- periods of time -----------------------------------------------------------------------------------------
        f"_now() AS coalesce(CAST(getvariable('{TRANSACTION_TIME}') AS TIMESTAMP WITH TIME ZONE), now())",
        # of a constant NULL DuckDB's date_part is a double
        """_interval_us(i) AS CAST(date_part('day', i) * 86400000000 + date_part('hour', i) * 3600000000
            + date_part('minute', i) * 60000000 + date_part('microseconds', i) AS BIGINT)""",
        "_interval_months(i) AS CAST(date_part('year', i) * 12 + date_part('month', i) AS BIGINT)",
        "_towards_zero(a, b) AS sign(a) * (abs(a) // b)",
        """_justified(us) AS to_months(CAST({system}.fn._towards_zero(us, 2592000000000) AS INTEGER))
            + to_days(CAST({system}.fn._towards_zero(us, 86400000000)
                - {system}.fn._towards_zero(us, 2592000000000) * 30 AS INTEGER))
            + to_microseconds(us - {system}.fn._towards_zero(us, 86400000000) * 86400000000)""",
        # --- years: DuckDB counts a year 0, and of an instant before Christ the years before it ----------------------
        """_counted_year(v) AS CASE WHEN v < DATE '0001-01-01' AND date_part('year', v) > 0
            THEN 1 - date_part('year', v) ELSE date_part('year', v) END""",
        # of what may be an interval, which is compared with no date; and of an instant by the session's time zone
        "_is_before_christ(v) AS date_part('epoch', v) < -62135500000 AND contains(CAST(v AS VARCHAR), '(BC)')",
        """_year_field(v) AS CASE WHEN {system}.fn._is_before_christ(v) THEN -abs(date_part('year', v))
            - CASE WHEN date_part('year', v) > 0 THEN 0 ELSE 1 END ELSE date_part('year', v) END""",
        """_isoyear_field(v) AS CASE WHEN {system}.fn._is_before_christ(v) THEN date_part('isoyear', v) - 1
            ELSE date_part('isoyear', v) END""",
        """_decade_field(v) AS CASE WHEN {system}.fn._is_before_christ(v)
            THEN CAST(floor(({system}.fn._year_field(v) + 1) / 10) AS BIGINT) ELSE date_part('decade', v) END""",
        """_trunc_years(v, n, first) AS date_trunc('year', v)
            - to_years(CAST(coalesce((({system}.fn._counted_year(v) - first) % n + n) % n, 0) AS INTEGER))""",
        """_trunc_interval_years(i, n) AS to_months(CAST(
            {system}.fn._towards_zero({system}.fn._interval_months(i), n * 12) * n * 12 AS INTEGER))""",
        "_interval_days(i) AS {system}.fn._interval_months(i) * 30 + CAST(date_part('day', i) AS BIGINT)",
        "_clock_truncated(u, x, l) AS CASE WHEN isfinite(x) THEN x - (l - date_trunc(u, l)) ELSE x END",
        "_interval_quotient(i, n) AS CASE WHEN n = 0 AND i IS NOT NULL THEN error('Division by zero') "
        "ELSE i / CAST(n AS DOUBLE) END",
        "_time_interval(t) AS to_microseconds(CAST(epoch_us(t) AS BIGINT))",
        "_longer_interval(a, b) AS CASE WHEN a IS NULL OR b > a THEN b ELSE a END",
        "_shorter_interval(a, b) AS CASE WHEN a IS NULL OR b < a THEN b ELSE a END",
        "_interval_day_field(i) AS date_part('day', i)",
        """_interval_microseconds(i) AS 3600000000 * date_part('hour', i) + 60000000 * date_part('minute', i)
            + date_part('microseconds', i)""",
        *(
            f"""_instant_{name}(t, i) AS t {sign} to_months(CAST({{system}}.fn._interval_months(i) AS INTEGER))
                {sign} to_days(CAST({{system}}.fn._interval_day_field(i) AS INTEGER))
                {sign} to_microseconds(CAST({{system}}.fn._interval_microseconds(i) AS BIGINT))"""
            for name, sign in (("later", "+"), ("earlier", "-"))
        ),
        """_interval_clock(i) AS TIME '00:00:00' + to_microseconds(CAST(
            ({system}.fn._interval_microseconds(i) % 86400000000 + 86400000000) % 86400000000 AS BIGINT))""",
        """_interval_made(m, d, u) AS CASE
            WHEN greatest(abs(m), abs(d)) > 2147483647 OR abs(u) > 9223372036854775807
                THEN error('interval out of range')
            ELSE to_months(CAST(m AS INTEGER)) + to_days(CAST(d AS INTEGER)) + to_microseconds(CAST(u AS BIGINT))
            END""",
        """_intervals_sum(l) AS {system}.fn._interval_made(
            list_sum(list_transform(l, lambda e: {system}.fn._interval_months(e))),
            list_sum(list_transform(l, lambda e: {system}.fn._interval_day_field(e))),
            list_sum(list_transform(l, lambda e: {system}.fn._interval_microseconds(e))))""",
        "_period_end(a, b) AS CASE WHEN a IS NOT NULL AND b IS NOT NULL THEN greatest(a, b) END",
        """_overlaps(a, b, c, d) AS CASE
            WHEN least(a, b) > least(c, d) THEN CASE WHEN least(a, b) < {system}.fn._period_end(c, d) THEN true
                WHEN {system}.fn._period_end(a, b) IS NOT NULL AND {system}.fn._period_end(c, d) IS NOT NULL THEN false
                END
            WHEN least(a, b) < least(c, d) THEN CASE WHEN least(c, d) < {system}.fn._period_end(a, b) THEN true
                WHEN {system}.fn._period_end(a, b) IS NOT NULL AND {system}.fn._period_end(c, d) IS NOT NULL THEN false
                END
            WHEN {system}.fn._period_end(a, b) IS NOT NULL AND {system}.fn._period_end(c, d) IS NOT NULL
                AND least(a, b) = least(c, d) THEN true END""",
        # --- arrays: their DuckDB type has a pair of brackets for each dimension ------------------------------------
        """_array_length(a, d) AS CASE WHEN d = 1 THEN CAST(nullif(len(a), 0) AS INTEGER)
            WHEN d BETWEEN 2 AND 6 AND typeof(a) LIKE '%[][]'
            THEN CAST(nullif(json_array_length(to_json(a), '$' || repeat('[0]', least(greatest(d, 2), 6) - 1)), 0)
                AS INTEGER) END""",
        "_subscript(i) AS CASE WHEN i >= 1 THEN i END",
        "_lower_bound(i) AS CASE WHEN i < 1 THEN 1 ELSE i END",
        "_upper_bound(i) AS CASE WHEN i < 1 THEN 0 ELSE i END",
        "_array_cat(a, b) AS CASE WHEN a IS NOT NULL OR b IS NOT NULL THEN list_concat(a, b) END",
        "_array_contains(a, b) AS CASE WHEN a IS NOT NULL AND b IS NOT NULL "
        "THEN list_has_all(a, b) AND list_count(b) = len(b) END",
        # --- items of arrays -----------------------------------------------------------------------------------------
        *(
            f"_{name}_items(a) AS list_transform(a, lambda e: {{system}}.fn._{name}_out(e))"
            for name in ("bool", "float8", "float4", "bytea", "time", "instant", "interval", "fraction")
        ),
        "_items_joined(a, s) AS CASE WHEN a IS NOT NULL AND s IS NOT NULL THEN coalesce(array_to_string(a, s), '') END",
        # --- enums (dialect.functions.enums) -------------------------------------------------------------------------
        """_labels_between(a, low, high) AS list_filter(a,
            lambda e: (low IS NULL OR e >= low) AND (high IS NULL OR e <= high))""",
        # --- documents -----------------------------------------------------------------------------------------------
        # DuckDB takes numbers with a point or an exponent out of a document as doubles. Here each number is a text of N
        # and its digits first; a string is followed by an empty one, and that is taken away again.
        r"""_json_with_digits(j) AS replace(regexp_replace(CAST(j AS VARCHAR),
            '("(?:[^"\\]|\\.)*")|(-?[0-9][0-9.eE+-]*)', '\1"N\2"', 'g'), '""N"', '"')""",
        # p is the place as a JSON pointer, d the same as DuckDB's path: only the latter tells the key "0" from item 0.
        r"""_json_text(j, p, d) AS CASE
            WHEN regexp_matches(json_extract_string(j, d), '^-?[0-9.]+(e[+-]?[0-9]+)?$')
                AND regexp_matches(json_extract_string(j, d), '[.e]') AND json_type(j, p) = 'DOUBLE'
            THEN substr(json_extract_string({system}.fn._json_with_digits(j), p), 2)
            WHEN contains(json_extract_string(j, d), chr(0)) THEN error('unsupported Unicode escape sequence')
            ELSE json_extract_string(j, d) END""",
        # A number of jsonb has no exponent: the point is moved in its digits i and f before and behind it.
        """_point_moved(i, f, e) AS CASE WHEN length(i) + e <= 0 THEN '0'
                ELSE coalesce(nullif(ltrim(substr(i || f || repeat('0', greatest(0, e)), 1, length(i) + e), '0'), ''),
                    '0') END || CASE WHEN length(f) <= e THEN ''
                ELSE '.' || right(repeat('0', greatest(0, -length(i) - e)) || i || f, length(f) - e) END""",
        r"""_without_exponent(t, j, p) AS CASE
            WHEN regexp_matches(t, '^-?[0-9]+(\.[0-9]+)?[eE][+-]?[0-9]{1,3}$') AND json_type(j, p) = 'DOUBLE'
            THEN regexp_extract(t, '^-') || {system}.fn._point_moved(regexp_extract(t, '^-?([0-9]+)', 1),
                regexp_extract(t, '\.([0-9]+)', 1), coalesce(TRY_CAST(regexp_extract(t, '[eE](.*)$', 1) AS INTEGER), 0))
            ELSE t END""",
        r"""_jsonb_text(j, p, d) AS {system}.fn._without_exponent({system}.fn._json_text(j, p, d), j, p)""",
        # --- lists of what functions of rows yield (dialect.functions.row_functions) ---------------------------------
        "_unnested(l) AS unnest(l)",
        "_ordinals(l) AS unnest(range(1, len(l) + 1))",
        "_ordinals_to(n) AS unnest(range(1, n + 1))",
        """_json_list(j) AS CASE json_type(j) WHEN 'ARRAY' THEN json_extract(j, '$[*]')
            WHEN 'OBJECT' THEN error('cannot extract elements from an object')
            ELSE CASE WHEN json_type(j) IS NOT NULL THEN error('cannot extract elements from a scalar') END END""",
        "_json_list_text(l) AS '[' || array_to_string(l, ',') || ']'",
        "_json_map_text(l) AS '{' || array_to_string(l, ',') || '}'",
        "_json_map_key(k) AS CASE WHEN k LIKE '\"%' THEN k ELSE CAST(to_json(k) AS VARCHAR) END || ':'",
        """_json_member_key(k) AS CASE WHEN k IS NULL THEN error('argument of json_build_object: key must not be null')
            ELSE CAST(to_json(k) AS VARCHAR) END""",
        "_json_texts_list(j) AS list_transform({system}.fn._json_list(j), lambda e: e ->> '$')",
        """_json_names(j) AS CASE json_type(j) WHEN 'OBJECT' THEN json_keys(j)
            ELSE CASE WHEN json_type(j) IS NOT NULL THEN error('cannot call json_object_keys on what is no object') END
            END""",
        "_json_pointer(k) AS '/' || replace(replace(k, '~', '~0'), '/', '~1')",
        "_json_values(j) AS list_transform(json_keys(j), lambda k: json_extract(j, {system}.fn._json_pointer(k)))",
        "_json_texts(j) AS list_transform(json_keys(j), "
        "lambda k: json_extract_string(j, {system}.fn._json_pointer(k)))",
        "_json_text_array(j) AS CASE WHEN json_type(j) = 'NULL' THEN NULL ELSE CAST(j AS VARCHAR[]) END",
        """_json_record(j) AS CASE WHEN json_type(j) = 'OBJECT' THEN j
            WHEN json_type(j) IS NOT NULL THEN error('cannot call populate_composite on what is no object') END""",
        "_row_empty(j) AS j IS NULL OR list_bool_and(list_transform(json_extract(j, '$.*'), "
        "lambda e: json_type(e) = 'NULL'))",
        "_row_complete(j) AS j IS NOT NULL AND NOT list_contains(list_transform(json_extract(j, '$.*'), "
        "lambda e: json_type(e)), 'NULL')",
        # DuckDB's own leaves empty objects and arrays in one line
        r"""_json_pretty(j) AS regexp_replace(json_pretty(CAST(j AS JSON)),
            '(?m)^( *)((?:"(?:[^"\\]|\\.)*": )?)([{\[])([}\]])(,?)$', '\1\2\3' || chr(10) || '\1\4\5', 'g')""",
        "_json_timestamp(x) AS regexp_replace({system}.fn._time_out(x), ' ', 'T')",
        *(
            f"""_json_{kind}(x) AS CASE WHEN isfinite(x) THEN CAST({{system}}.fn._{kind}_out(x) AS JSON)
                ELSE to_json({{system}}.fn._{kind}_out(x)) END"""
            for kind in ("float8", "float4")
        ),
        """_json_timestamptz(x) AS regexp_replace(
            regexp_replace({system}.fn._instant_out(x), ' ', 'T'), '([+-]\\d\\d)( BC)?$', '\\1:00\\2')""",
        """_json_length(j) AS CASE json_type(j) WHEN 'ARRAY' THEN CAST(json_array_length(j) AS INTEGER)
            WHEN 'OBJECT' THEN error('cannot get array length of a non-array')
            ELSE CASE WHEN json_type(j) IS NOT NULL THEN error('cannot get array length of a scalar') END END""",
        "_json_elements(j) AS CASE WHEN json_type(j) = 'ARRAY' THEN CAST(j AS JSON[]) ELSE [CAST(j AS JSON)] END",
        """_json_members(j, k) AS list_transform(k, lambda e: to_json(e) || ':'
            || json_extract(j, '/' || replace(replace(e, '~', '~0'), '/', '~1')))""",
        # DuckDB's VARIANT has each key once, the last, in one order; numbers are compared as what they are
        """_json_scalar(kind, t) AS CASE WHEN kind IN ('BIGINT', 'UBIGINT', 'DOUBLE', 'HUGEINT', 'UHUGEINT')
            THEN coalesce('n' || CAST(TRY_CAST(t AS DECIMAL(38, 18)) AS VARCHAR),
                'd' || CAST(CAST(t AS DOUBLE) AS VARCHAR))
            ELSE coalesce('t' || t, kind) END""",
        # a document that is a sub-query is named once: asked for twice, DuckDB's internal error ends all its work
        """_json_key(j) AS (SELECT CASE WHEN json_type(_d) = 'NULL' THEN ['null'] ELSE
            (SELECT list(fullkey || ' ' || {system}.fn._json_scalar(type, CAST(atom AS VARCHAR)) ORDER BY fullkey)
             FROM json_tree(CAST(CAST(_d AS VARIANT) AS JSON))) END FROM (SELECT j AS _d) AS _document)""",
        "_json_same(a, b) AS {system}.fn._json_key(a) = {system}.fn._json_key(b)",
        """_json_container(j, what) AS CASE WHEN j IS NULL OR json_type(j) IN ('OBJECT', 'ARRAY') THEN j
            ELSE error('cannot ' || what || ' path in scalar') END""",
        """_json_object(members) AS CAST('{' || array_to_string(members, ',') || '}' AS JSON)""",
        """_json_without(j, k) AS CASE json_type(j)
            WHEN 'OBJECT' THEN {system}.fn._json_object({system}.fn._json_members(j,
                list_filter(json_keys(j), lambda e: NOT list_contains(k, e))))
            WHEN 'ARRAY' THEN to_json(list_filter(CAST(j AS JSON[]),
                lambda e: NOT coalesce(json_type(e) = 'VARCHAR' AND list_contains(k, e ->> '$'), false)))
            ELSE CASE WHEN j IS NOT NULL THEN error('cannot delete from scalar') END END""",
        """_json_place(j, n) AS CASE WHEN n < 0 THEN json_array_length(j) + n ELSE n END""",
        """_json_without_at(j, n) AS CASE json_type(j)
            WHEN 'ARRAY' THEN to_json(list_filter(CAST(j AS JSON[]),
                lambda e, i: i - 1 <> {system}.fn._json_place(j, n)))
            WHEN 'OBJECT' THEN error('cannot delete from object using integer index')
            ELSE CASE WHEN j IS NOT NULL THEN error('cannot delete from scalar') END END""",
        # DuckDB's own error (the blank says so): any other would be raised while a condition with constants is planned
        """_json_step(k, nth) AS coalesce(TRY_CAST(k AS INTEGER),
            CAST(error ('path element at position ' || nth || ' is not an integer: "' || k || '"') AS INTEGER))""",
        """_json_drop(j, k, nth) AS CASE json_type(j)
            WHEN 'ARRAY' THEN {system}.fn._json_without_at(j, {system}.fn._json_step(k, nth))
            WHEN 'OBJECT' THEN {system}.fn._json_without(j, [k]) ELSE j END""",
        """_json_put_at(j, n, v, make) AS CASE WHEN n BETWEEN 0 AND json_array_length(j) - 1
                THEN to_json(list_transform(CAST(j AS JSON[]), lambda e, i: CASE WHEN i - 1 = n THEN v ELSE e END))
            WHEN NOT make THEN j WHEN n < 0 THEN to_json(list_concat([v], CAST(j AS JSON[])))
            ELSE to_json(list_concat(CAST(j AS JSON[]), [v])) END""",
        """_json_put(j, k, v, make, nth) AS CASE WHEN v IS NOT NULL AND make IS NOT NULL THEN CASE json_type(j)
            WHEN 'ARRAY' THEN {system}.fn._json_put_at(j, {system}.fn._json_place(j, {system}.fn._json_step(k, nth)), v,
                make)
            WHEN 'OBJECT' THEN CASE WHEN make OR list_contains(json_keys(j), k) THEN {system}.fn._json_object(
                list_concat({system}.fn._json_members(j, list_filter(json_keys(j), lambda e: e <> k)),
                    [to_json(k) || ':' || v])) ELSE j END
            ELSE j END END""",
        """_json_joined(a, b) AS CASE WHEN a IS NULL OR b IS NULL THEN NULL
            WHEN json_type(a) = 'OBJECT' AND json_type(b) = 'OBJECT' THEN CAST('{' || array_to_string(list_concat(
                {system}.fn._json_members(a, list_filter(json_keys(a), lambda e: NOT list_contains(json_keys(b), e))),
                {system}.fn._json_members(b, json_keys(b))), ',') || '}' AS JSON)
            ELSE to_json(list_concat({system}.fn._json_elements(a), {system}.fn._json_elements(b))) END""",
    )
)
