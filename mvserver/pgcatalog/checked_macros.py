"""Functions whose arguments PostgreSQL checks: DuckDB answers NaN, a value of other fields, or an error of its own.

``dialect.functions.checked_functions`` puts these in the place of the functions.
"""

from __future__ import annotations

_DOMAINS = ("acos", "acosh", "asin", "atanh", "cos", "cot", "sin", "tan")
_QUOTED_WORDS = [
    "all",
    "analyse",
    "analyze",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "asymmetric",
    "authorization",
    "between",
    "bigint",
    "binary",
    "bit",
    "boolean",
    "both",
    "case",
    "cast",
    "char",
    "character",
    "check",
    "coalesce",
    "collate",
    "collation",
    "column",
    "concurrently",
    "constraint",
    "create",
    "cross",
    "current_catalog",
    "current_date",
    "current_role",
    "current_schema",
    "current_time",
    "current_timestamp",
    "current_user",
    "dec",
    "decimal",
    "default",
    "deferrable",
    "desc",
    "distinct",
    "do",
    "else",
    "end",
    "except",
    "exists",
    "extract",
    "false",
    "fetch",
    "float",
    "for",
    "foreign",
    "freeze",
    "from",
    "full",
    "grant",
    "greatest",
    "group",
    "grouping",
    "having",
    "ilike",
    "in",
    "initially",
    "inner",
    "inout",
    "int",
    "integer",
    "intersect",
    "interval",
    "into",
    "is",
    "isnull",
    "join",
    "lateral",
    "leading",
    "least",
    "left",
    "like",
    "limit",
    "localtime",
    "localtimestamp",
    "national",
    "natural",
    "nchar",
    "none",
    "normalize",
    "not",
    "notnull",
    "null",
    "nullif",
    "numeric",
    "offset",
    "on",
    "only",
    "or",
    "order",
    "out",
    "outer",
    "overlaps",
    "overlay",
    "placing",
    "position",
    "precision",
    "primary",
    "real",
    "references",
    "returning",
    "right",
    "row",
    "select",
    "session_user",
    "setof",
    "similar",
    "smallint",
    "some",
    "substring",
    "symmetric",
    "system_user",
    "table",
    "tablesample",
    "then",
    "time",
    "timestamp",
    "to",
    "trailing",
    "treat",
    "trim",
    "true",
    "union",
    "unique",
    "user",
    "using",
    "values",
    "varchar",
    "variadic",
    "verbose",
    "when",
    "where",
    "window",
    "with",
    "xmlattributes",
    "xmlconcat",
    "xmlelement",
    "xmlexists",
    "xmlforest",
    "xmlnamespaces",
    "xmlparse",
    "xmlpi",
    "xmlroot",
    "xmlserialize",
    "xmltable",
]
"""Of PostgreSQL's grammar: as names they need quotes."""
_MADE = "h IS NULL OR i IS NULL OR s IS NULL"
_MIDNIGHT_US = 86_400_000_000

_WORD = r"[A-Za-z_\x{80}-\x{10FFFF}][A-Za-z0-9_$\x{80}-\x{10FFFF}]*"
_IDENTIFIER = f'(?:{_WORD}|"(?:[^"]|"")+")'
_BLANKS = r"[ \n\r\t]"
_BASE64 = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"


def _defined(name: str) -> str:
    return f"""_{name}(x) AS CASE WHEN isnan({name}(x)) AND NOT isnan(CAST(x AS DOUBLE))
        THEN error('input is out of range') ELSE {name}(x) END"""


def _shift(bits: int, count_bits: int, kind: str, wide: str) -> tuple[str, str]:
    """PostgreSQL shifts by the last bits of the count, and drops what leaves the number."""
    modulus, half = 2**bits, 2 ** (bits - 1)
    counted = f"(n % {count_bits} + {count_bits}) % {count_bits}"
    count = f"CAST({counted} AS {wide})"
    moved = f"CAST(CAST(a AS {wide}) * (CAST(1 AS {wide}) << {count}) AS HUGEINT)"
    return (
        f"_shift_left_{bits}(a, n) AS CAST(({moved} + {half}) % {modulus} "
        f"- CASE WHEN ({moved} + {half}) % {modulus} < 0 THEN {half} - {modulus} ELSE {half} END AS {kind})",
        f"_shift_right_{bits}(a, n) AS CAST(CAST(a AS {wide}) >> {count} AS {kind})",
    )


CHECKED_MACROS: tuple[str, ...] = tuple(
    "CREATE OR REPLACE MACRO {system}.fn." + text
    for text in (
        *map(_defined, _DOMAINS),
        *_shift(16, 32, "SMALLINT", "BIGINT"),
        *_shift(32, 32, "INTEGER", "BIGINT"),
        *_shift(64, 64, "BIGINT", "HUGEINT"),
        # --- buckets: one with a lower bound that is the higher counts downwards -------------------------------------
        """_bucket_checked(v, lo, hi, n) AS CASE WHEN n <= 0 THEN error('count must be greater than zero')
            WHEN isnan(CAST(v AS DOUBLE)) OR isnan(CAST(lo AS DOUBLE)) OR isnan(CAST(hi AS DOUBLE))
                THEN error('operand, lower bound, and upper bound cannot be NaN')
            WHEN isinf(CAST(lo AS DOUBLE)) OR isinf(CAST(hi AS DOUBLE))
                THEN error('lower and upper bounds must be finite')
            WHEN lo = hi THEN error('lower bound cannot equal upper bound')
            ELSE CAST(n AS BIGINT) END""",
        """_bucket_share(a, b, n) AS CASE WHEN typeof(a) LIKE 'DECIMAL%' AND typeof(b) LIKE 'DECIMAL%'
            THEN CAST({system}.fn.div(a * CAST(n AS DECIMAL(10, 0)), b) AS BIGINT)
            ELSE CAST(floor(CAST(a AS DOUBLE) / CAST(b AS DOUBLE) * n) AS BIGINT) END""",
        """_bucket(v, lo, hi, n) AS CASE WHEN lo < hi
            THEN CASE WHEN v < lo THEN 0 WHEN v >= hi THEN n + 1
                ELSE {system}.fn._bucket_share(v + 0.0 - lo, hi + 0.0 - lo, n) + 1 END
            ELSE CASE WHEN v > lo THEN 0 WHEN v <= hi THEN n + 1
                ELSE {system}.fn._bucket_share(lo + 0.0 - v, lo + 0.0 - hi, n) + 1 END END""",
        """_width_bucket_of(v, l) AS CASE
            WHEN len(list_filter(l, lambda e: e IS NULL)) > 0 THEN error('thresholds array must not contain NULLs')
            WHEN v IS NOT NULL AND l IS NOT NULL THEN CAST(len(list_filter(l, lambda e: e <= v)) AS INTEGER) END""",
        """_factorial(n) AS CASE WHEN n < 0 THEN error('factorial of a negative number is undefined')
            WHEN n > 33 THEN error('value overflows numeric format')
            ELSE CAST(factorial(CAST(n AS INTEGER)) AS DECIMAL(38, 0)) END""",
        """_width_bucket(v, lo, hi, n) AS CASE
            WHEN v IS NULL OR lo IS NULL OR hi IS NULL OR n IS NULL THEN NULL
            WHEN {system}.fn._bucket_checked(v, lo, hi, n) > 0
            THEN CAST({system}.fn._bucket(v, lo, hi, CAST(n AS BIGINT)) AS INTEGER) END""",
        "_trimmed(n) AS CASE WHEN contains(CAST(n AS VARCHAR), '.') "
        "THEN rtrim(rtrim(CAST(n AS VARCHAR), '0'), '.') ELSE CAST(n AS VARCHAR) END",
        """_to_number(s, before, behind) AS CASE WHEN NOT regexp_matches(s, '[0-9]')
                THEN error('invalid input syntax for type numeric: " "')
            ELSE CASE WHEN regexp_matches(s, '[-<]') THEN '-' ELSE '' END
                || left(regexp_replace(split_part(s, '.', 1), '[^0-9]', '', 'g'), before) || '.'
                || left(regexp_replace(split_part(s, '.', 2), '[^0-9]', '', 'g'), behind) || '0' END""",
        # --- times of fields -----------------------------------------------------------------------------------------
        """_date_made(y, m, d) AS CASE WHEN y IS NULL OR m IS NULL OR d IS NULL THEN NULL
            ELSE coalesce(TRY(make_date(CASE WHEN y < 0 THEN y + 1 ELSE nullif(y, 0) END, m, d)),
                CAST(error('date field value out of range: ' || y || '-' || CASE WHEN m BETWEEN 0 AND 9 THEN '0'
                    ELSE '' END || m || '-' || CASE WHEN d BETWEEN 0 AND 9 THEN '0' ELSE '' END || d)
                    AS DATE)) END""",
        f"""_time_us(h, i, s) AS CASE WHEN {_MADE} THEN NULL
            WHEN h < 0 OR h > 24 OR i < 0 OR i > 59 OR NOT (s >= 0 AND s <= 60)
                OR CAST(h AS DOUBLE) * 3600 + CAST(i AS DOUBLE) * 60 + s > 86400 OR isnan(CAST(s AS DOUBLE))
            THEN CAST(error('time field value out of range: ' || h || ':' || CASE WHEN i BETWEEN 0 AND 9 THEN '0'
                ELSE '' END || i || ':' || CASE WHEN s >= 0 AND s < 10 THEN '0' ELSE '' END
                || {{system}}.fn._float8_out(CAST(s AS DOUBLE))) AS BIGINT)
            ELSE CAST(h AS BIGINT) * CAST(3600000000 AS BIGINT) + i * CAST(60000000 AS BIGINT)
                + CAST(round(s * 1000000) AS BIGINT) END""",
        f"""_time_made(h, i, s) AS list_transform([{{system}}.fn._time_us(h, i, s)],
            lambda _us: CASE WHEN _us = {_MIDNIGHT_US} THEN TIME '24:00:00'
                ELSE TIME '00:00:00' + to_microseconds(_us) END)[1]""",
        """_timestamp_made(y, m, d, h, i, s) AS CAST({system}.fn._date_made(y, m, d) AS TIMESTAMP)
            + to_microseconds({system}.fn._time_us(h, i, s))""",
        """_timestamptz_made(y, m, d, h, i, s) AS
            CAST({system}.fn._timestamp_made(y, m, d, h, i, s) AS TIMESTAMP WITH TIME ZONE),
            (y, m, d, h, i, s, z) AS {system}.fn._timestamp_made(y, m, d, h, i, s) AT TIME ZONE z""",
        """_instant(x) AS CASE WHEN isnan(CAST(x AS DOUBLE)) THEN error('timestamp cannot be NaN')
            WHEN isinf(CAST(x AS DOUBLE))
                THEN CAST(CASE WHEN x > 0 THEN 'infinity' ELSE '-infinity' END AS TIMESTAMP WITH TIME ZONE)
            ELSE to_timestamp(CAST(x AS DOUBLE)) END""",
        # --- texts ---------------------------------------------------------------------------------------------------
        """_chr(n) AS CASE WHEN n = 0 THEN error('null character not permitted')
            WHEN n < 0 THEN error('character number must be positive')
            WHEN n > 1114111 THEN error('requested character too large for encoding: ' || n)
            WHEN n BETWEEN 55296 AND 57343 THEN error('requested character not valid for encoding: ' || n)
            ELSE chr(CAST(n AS INTEGER)) END""",
        "_lpad(s, n, f) AS CASE WHEN f = '' AND n > 0 THEN left(s, n) WHEN f = '' AND n <= 0 THEN left(s, 0) "
        "ELSE lpad(s, n, f) END",
        "_blank_padded(s, n) AS printf('%-' || n || 's', s)",  # which cuts nothing
        "_rpad(s, n, f) AS CASE WHEN f = '' AND n > 0 THEN left(s, n) WHEN f = '' AND n <= 0 THEN left(s, 0) "
        "ELSE rpad(s, n, f) END",
        """_overlay(s, r, p, n) AS CASE WHEN p < 1 AND s IS NOT NULL AND r IS NOT NULL
                THEN error('negative substring length not allowed')
            ELSE substring(s, 1, CAST(p - 1 AS BIGINT)) || r || {system}.fn._substring(s, CAST(p AS BIGINT) + n) END""",
        "_overlay_all(s, r, p) AS {system}.fn._overlay(s, r, p, length(r))",
        # DuckDB joins by a constant only: by one that no item has, since each chr(1) in them is followed by an a
        "_marked(s) AS replace(s, chr(1), chr(1) || 'a')",
        """_texts_joined(a, s) AS CASE WHEN len(a) = 0 THEN '' ELSE replace({system}.fn._replace(
            array_to_string(list_transform(a, lambda e: {system}.fn._marked(e)), chr(1) || 'b'), chr(1) || 'b',
            {system}.fn._marked(s)), chr(1) || 'a', chr(1)) END""",
        """_array_joined(a, s, n) AS CASE WHEN a IS NOT NULL AND s IS NOT NULL THEN {system}.fn._texts_joined(
            list_filter(list_transform(a, lambda e: coalesce(CAST(e AS VARCHAR), CAST(n AS VARCHAR))),
                lambda e: e IS NOT NULL), s) END""",
        """_regexp_count(s, p) AS CASE WHEN p IS NOT NULL THEN CAST(len(regexp_extract_all(s, p)) AS INTEGER) END""",
        "_regexp_split(s, p) AS CASE WHEN p IS NOT NULL THEN regexp_split_to_array(s, p) END",
        "_regexp_all(s, p, g) AS CASE WHEN s IS NOT NULL AND p IS NOT NULL THEN regexp_extract_all(s, p, g) END",
        """_regexp_match(s, p) AS CASE WHEN regexp_matches(s, p) THEN [CASE WHEN p LIKE '%(%'
            THEN regexp_extract_all(s, p, 1)[1] ELSE regexp_extract(s, p, 0) END] END""",
        "_regexp_singles(l) AS list_transform(l, lambda e: [e])",
        """_regexp_nth(l, n) AS CASE WHEN n < 1 THEN error('invalid value for parameter "n": ' || n) ELSE l[n] END""",
        """_regexp_from(s, p, n) AS CASE
            WHEN n < 1 AND s IS NOT NULL THEN error('invalid value for parameter "start": ' || n)
            WHEN n > 1 AND contains(replace(p, '[^', ''), '^')
                THEN error('a start behind the first character and ^ in the pattern are not supported together')
            ELSE substring(s, n) END""",
        """_regexp_place(gaps, found, start, n, behind) AS CASE
            WHEN n < 1 THEN error('invalid value for parameter "n": ' || n)
            WHEN behind NOT IN (0, 1) THEN error('invalid value for parameter "endoption": ' || behind)
            WHEN n > len(found) THEN 0
            WHEN len(gaps) <> len(found) + 1 THEN error('regexp_instr of empty matches is not supported')
            ELSE start + list_sum(list_transform(gaps[1:n], lambda e: length(e)))
                + coalesce(list_sum(list_transform(found[1:n - 1 + behind], lambda e: length(e))), 0) END""",
        """_regexp_instr(s, p, start, n, behind) AS CAST(CASE WHEN s IS NOT NULL AND p IS NOT NULL
            THEN {system}.fn._regexp_place(regexp_split_to_array(s, p), regexp_extract_all(s, p), start, n, behind)
            END AS INTEGER)""",
        """_regexp_replace_from(s, p, b, n) AS CASE
            WHEN n < 1 AND s IS NOT NULL AND p IS NOT NULL AND b IS NOT NULL
            THEN error('invalid value for parameter "start": ' || n)
            WHEN n > 1 AND contains(replace(p, '[^', ''), '^')
                THEN error('a start behind the first character and ^ in the pattern are not supported together')
            WHEN n > length(s) + 1 THEN CASE WHEN p IS NOT NULL AND b IS NOT NULL THEN s END
            ELSE left(s, n - 1) || {system}.fn._regexp_replace(substring(s, n), p, b) END""",
        f"""_parse_ident_but(s, strict) AS CASE
            WHEN strict IS NULL THEN NULL
            WHEN regexp_full_match(s, '{_BLANKS}*{_IDENTIFIER}{_BLANKS}*(?:\\.{_BLANKS}*{_IDENTIFIER}{_BLANKS}*)*')
            THEN list_transform(regexp_extract_all(s, '{_IDENTIFIER}'), lambda e: CASE WHEN starts_with(e, '"')
                THEN replace(substring(e, 2, length(e) - 2), '""', '"')
                ELSE translate(e, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz') END)
            WHEN s IS NOT NULL
            THEN CAST([error('string is not a valid identifier: "' || s || '"')] AS VARCHAR[]) END""",
        f"""_parse_ident(s) AS {{system}}.fn._parse_ident_but(s, true), (s, strict) AS {{system}}.fn._parse_ident_but(
            CASE WHEN strict THEN s ELSE coalesce(nullif(regexp_extract(s,
                '^{_BLANKS}*{_IDENTIFIER}{_BLANKS}*(?:\\.{_BLANKS}*{_IDENTIFIER}{_BLANKS}*)*'), ''), s) END, strict)""",
        f"""_quote_ident(s) AS CASE WHEN regexp_full_match(s, '[a-z_][a-z0-9_]*')
                AND NOT list_contains({_QUOTED_WORDS}, s) THEN s
            ELSE '"' || replace(s, '"', '""') || '"' END""",
        """_format_ident(s) AS coalesce({system}.fn._quote_ident(s),
            error('null values cannot be formatted as an SQL identifier'))""",
        r"""_quoted(t) AS CASE WHEN contains(t, '\') THEN 'E''' || replace(replace(t, '\', '\\'), '''', '''''')
            ELSE '''' || replace(t, '''', '''''') END || ''''""",
        "_quote_literal(s) AS {system}.fn._quoted(CAST(s AS VARCHAR))",
        "_quote_nullable(s) AS coalesce({system}.fn._quoted(CAST(s AS VARCHAR)), 'NULL')",
        """_hex_bytes(s) AS CASE WHEN NOT regexp_full_match(s, '[0-9A-Fa-f]*')
                THEN error('invalid hexadecimal digit: "' || regexp_extract(s, '[^0-9A-Fa-f]') || '"')
            WHEN length(s) % 2 = 1 THEN error('invalid hexadecimal data: odd number of digits') ELSE unhex(s) END""",
        f"""_base64_bytes(s) AS CASE WHEN regexp_full_match(s, '{_BASE64}') THEN from_base64(s)
            WHEN regexp_matches(s, '[^A-Za-z0-9+/=]') THEN error('invalid symbol "'
                || regexp_extract(s, '[^A-Za-z0-9+/=]') || '" found while decoding base64 sequence')
            WHEN s IS NOT NULL THEN error('invalid base64 end sequence') END""",
        f"_decode_hex(s) AS {{system}}.fn._hex_bytes(regexp_replace(s, '{_BLANKS}', '', 'g'))",
        f"_decode_base64(s) AS {{system}}.fn._base64_bytes(regexp_replace(s, '{_BLANKS}', '', 'g'))",
        # --- others --------------------------------------------------------------------------------------------------
        "_to_hex_32(n) AS lower(printf('%x', CAST(n AS BIGINT) & 4294967295))",
        "_txid() AS CAST(txid_current() AS BIGINT)",
        "_nth(n) AS CASE WHEN n <= 0 THEN error('argument of nth_value must be greater than zero') ELSE n END",
        """_json_at(j, k) AS CASE json_type(j)
            WHEN 'OBJECT' THEN json_extract(j, '/' || replace(replace(k, '~', '~0'), '/', '~1'))
            WHEN 'ARRAY' THEN json_extract(j, CASE WHEN TRY_CAST(k AS INTEGER) < 0
                THEN '$[#' || TRY_CAST(k AS INTEGER) || ']' ELSE '/'
                || coalesce(CAST(TRY_CAST(k AS INTEGER) AS VARCHAR), '-') END) END""",
    )
)
