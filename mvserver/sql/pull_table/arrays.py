"""Functions of arrays and enums."""

from __future__ import annotations

from mvserver.limits import SERIES_ITEMS_OF_ROW_MAX
from mvserver.sql.pull_table.model import example, function

ARRAYS = (
    function("array_append", "2", "(anyarray, anyelement) → anyarray", "append element onto end of array",
        example("array_append(ARRAY[1, 2], 3)", "{1,2,3}")),
    function("array_cat", "2", "(anyarray, anyarray) → anyarray", "two arrays one after the other",
        example("array_cat(ARRAY[1], ARRAY[2, 3])", "{1,2,3}")),
    function("array_dims", "1", "(anyarray) → text", "array dimensions",
        example("array_dims(ARRAY[[1, 2], [3, 4]])", "[1:2][1:2]"),
        macro="(a) AS CASE WHEN len(a) > 0 THEN array_to_string(list_transform( generate_series(1, "
        "{system}.fn.array_ndims(a)), lambda d: '[1:' || {system}.fn._array_length(a, CAST(d AS INTEGER)) || ']'), "
        "'') END"),
    function("array_fill", "2", "(anyelement, integer[]) → anyarray", "array constructor with value, in one dimension",
        example("array_fill(7, ARRAY[3])", "{7,7,7}"),
        macro="(v, d) AS CASE WHEN len(d) > 1 THEN error('array_fill of several dimensions is not supported') "
        "WHEN contains(typeof(v), '[') THEN error('could not find array type for the type of an array') "
        "ELSE list_transform(generate_series(1, {system}.fn._series_end(1, d[1], 1, "
        f"{SERIES_ITEMS_OF_ROW_MAX})), lambda i: v) END"),
    function("array_length", "2", "(anyarray, integer) → integer", "array length",
        example("array_length(ARRAY[1, 2, 3], 1)", "3")),
    function("array_lower", "2", "(anyarray, integer) → integer", "array lower dimension",
        example("array_lower(ARRAY[1, 2], 1)", "1"),
        macro="(a, d) AS CASE WHEN {system}.fn._array_length(a, d) > 0 THEN 1 END"),
    function("array_ndims", "1", "(anyarray) → integer", "number of array dimensions",
        example("array_ndims(ARRAY[[1, 2], [3, 4]])", "2"),
        macro="(a) AS CASE WHEN len(a) > 0 THEN CAST((length(typeof(a)) - length(rtrim(typeof(a), '[]'))) // 2 AS "
        "INTEGER) END"),
    function("array_position", "2", "(anyarray, anyelement) → integer", "returns an offset of value in array",
        example("array_position(ARRAY['a', 'b'], 'b')", "2")),
    function("array_positions", "2", "(anyarray, anyelement) → integer[]",
        "returns an array of offsets of some value in array", example("array_positions(ARRAY[1, 2, 1], 1)", "{1,3}"),
        macro="(a, v) AS CASE WHEN a IS NOT NULL THEN list_filter(CAST(range(1, len(a) + 1) AS INTEGER[]), "
        "lambda i: a[i] IS NOT DISTINCT FROM v) END"),
    function("array_prepend", "2", "(anyelement, anyarray) → anyarray", "prepend element onto front of array",
        example("array_prepend(1, ARRAY[2, 3])", "{1,2,3}")),
    function("array_remove", "2", "(anyarray, anyelement) → anyarray",
        "remove any occurrences of an element from an array", example("array_remove(ARRAY[1, 2, 1], 1)", "{2}"),
        macro="(a, v) AS list_filter(a, lambda e: e IS DISTINCT FROM v)"),
    function("array_replace", "3", "(anyarray, anyelement, anyelement) → anyarray",
        "replace any occurrences of an element in an array", example("array_replace(ARRAY[1, 2, 1], 1, 5)", "{5,2,5}"),
        macro="(a, f, t) AS list_transform(a, lambda e: CASE WHEN e IS NOT DISTINCT FROM f THEN t ELSE e END)"),
    function("array_to_string", "2-3", "(anyarray, text) → text; (anyarray, text, text) → text",
        "concatenate array elements, using delimiter and null string, into text",
        example("array_to_string(ARRAY['a', NULL, 'b'], ',', '*')", "a,*,b")),
    function("array_upper", "2", "(anyarray, integer) → integer", "array upper dimension",
        example("array_upper(ARRAY[1, 2, 3], 1)", "3"), macro="(a, d) AS {system}.fn._array_length(a, d)"),
    function("trim_array", "2", "(anyarray, integer) → anyarray", "remove last N elements of array",
        example("trim_array(ARRAY[1, 2, 3], 1)", "{1,2}"),
        macro="(a, n) AS CASE WHEN n < 0 OR n > len(a) THEN error('number of elements to trim must be between 0 and ' "
        "|| len(a)) WHEN n IS NOT NULL THEN a[1:len(a) - n] END"),
    function("cardinality", "1", "(anyarray) → integer", "array cardinality",
        example("cardinality(ARRAY[[1, 2], [3, 4]])", "4"),
        macro="(a) AS CAST(CASE WHEN len(a) > 0 AND typeof(a) LIKE '%[][]' THEN list_product(list_transform( "
        "generate_series(1, {system}.fn.array_ndims(a)), lambda d: {system}.fn._array_length(a, CAST(d AS "
        "INTEGER)))) ELSE len(a) END AS INTEGER)"),
    function("enum_first", "1", "(anyenum) → anyenum", "first value of the input enum type"),
    function("enum_last", "1", "(anyenum) → anyenum", "last value of the input enum type"),
    function("enum_range", "1-2", "(anyenum) → anyarray; (anyenum, anyenum) → anyarray",
        "range between the two given enum values, as an ordered array"),
)  # fmt: skip
