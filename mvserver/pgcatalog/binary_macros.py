"""Functions of bytes, over their hexadecimal digits: two for each byte.

``dialect.functions.binary_functions`` calls them.
"""

from __future__ import annotations

_DIGITS = "array_to_string(regexp_extract_all(hex(c), '..'), '|')"

BINARY_MACROS: tuple[str, ...] = tuple(
    "CREATE OR REPLACE MACRO {system}.fn." + text
    for text in (
        "_bytes_length(b) AS CAST(length(hex(b)) // 2 AS INTEGER)",
        "_bytes_bit_length(b) AS CAST(length(hex(b)) * 4 AS INTEGER)",
        """_bytes_substring(b, f) AS unhex({system}.fn._substring(hex(b), 2 * CAST(f AS BIGINT) - 1)),
            (b, f, n) AS unhex({system}.fn._substring(hex(b), 2 * CAST(f AS BIGINT) - 1, 2 * CAST(n AS BIGINT)))""",
        """_bytes_strpos(b, n) AS CAST(CASE WHEN NOT regexp_matches(hex(b), '^(?:..)*?' || hex(n)) THEN 0
            ELSE length(regexp_extract(hex(b), '^((?:..)*?)' || hex(n), 1)) // 2 + 1 END AS INTEGER)""",
        """_bytes_overlay(b, p, f) AS {system}.fn._bytes_substring(b, 1, f - 1) || p
            || {system}.fn._bytes_substring(b, f + length(hex(p)) // 2),
            (b, p, f, n) AS {system}.fn._bytes_substring(b, 1, f - 1) || p
            || {system}.fn._bytes_substring(b, f + n)""",
        f"_bytes_ltrim(b, c) AS unhex(regexp_replace(hex(b), '^(?:' || {_DIGITS} || ')+', ''))",
        f"""_bytes_rtrim(b, c) AS unhex(hex(b)[: length(hex(b)) - length(regexp_extract(
            array_to_string(list_reverse(regexp_extract_all(hex(b), '..')), ''), '^(?:' || {_DIGITS} || ')+'))])""",
        "_bytes_btrim(b, c) AS {system}.fn._bytes_ltrim({system}.fn._bytes_rtrim(b, c), c)",
    )
)
