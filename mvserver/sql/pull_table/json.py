"""Functions of JSON documents."""

from __future__ import annotations

from mvserver.sql.pull_table.model import example, function

JSON = (
    function("array_to_json", "1", "(anyarray) → json", "map array to json",
        example("array_to_json(ARRAY[1, 2])", "[1,2]")),
    function("json_array_length", "1", "(json) → integer", "length of json array",
        example("json_array_length('[1, 2, 3]')", "3"), duckdb="_json_length"),
    function("json_build_array", "0+", "([any, ...]) → json", "build a json array from any inputs",
        example("json_array_length(json_build_array(1, 'a'))", "2"), duckdb="json_array"),
    function("json_build_object", "0+", "([text, any, ...]) → json",
        "build a json object from pairs of keys and values", example("json_build_object('a', 1) ->> 'a'", "1"),
        duckdb="json_object"),
    function("json_extract_path", "2+", "(json, text, ...) → json", "get value from json with path elements",
        example("json_extract_path('{\"a\": {\"b\": 5}}', 'a', 'b')", "5")),
    function("json_extract_path_text", "2+", "(json, text, ...) → text",
        "get value from json as text with path elements",
        example("json_extract_path_text('{\"a\": {\"b\": \"x\"}}', 'a', 'b')", "x")),
    function("json_strip_nulls", "1", "(json) → json", "remove object fields with null values from json",
        example("json_strip_nulls('{\"a\":1,\"b\":null}')", '{"a":1}')),
    function("json_typeof", "1", "(json) → text", "get the type of a json value",
        example("json_typeof('[1]')", "array"),
        macro="(j) AS CASE WHEN json_type(j) IS NULL THEN NULL ELSE CASE json_type(j) WHEN 'VARCHAR' THEN 'string' "
        "WHEN 'OBJECT' THEN 'object' WHEN 'ARRAY' THEN 'array' WHEN 'BOOLEAN' THEN 'boolean' WHEN 'NULL' THEN 'null' "
        "ELSE 'number' END END"),
    function("jsonb_array_length", "1", "(jsonb) → integer", "length of jsonb array",
        example("jsonb_array_length('[1, 2]')", "2"), duckdb="_json_length"),
    function("jsonb_build_array", "0+", "([any, ...]) → jsonb", "build a jsonb array from any inputs",
        example("jsonb_array_length(jsonb_build_array(1, 2))", "2"), duckdb="json_array"),
    function("jsonb_build_object", "0+", "([text, any, ...]) → jsonb",
        "build a jsonb object from pairs of keys and values", example("jsonb_build_object('a', 1) ->> 'a'", "1"),
        duckdb="json_object"),
    function("jsonb_extract_path", "2+", "(jsonb, text, ...) → jsonb", "get value from jsonb with path elements",
        example("jsonb_extract_path('{\"a\": [1, 2]}'::jsonb, 'a', '1')", "2")),
    function("jsonb_extract_path_text", "2+", "(jsonb, text, ...) → text",
        "get value from jsonb as text with path elements",
        example("jsonb_extract_path_text('{\"a\": \"x\"}'::jsonb, 'a')", "x")),
    function("jsonb_pretty", "1", "(jsonb) → text", "the document with indentation",
        example("jsonb_pretty('[1]'::jsonb)", "[\n    1\n]"), duckdb="_json_pretty"),
    function("jsonb_set", "3-4", "(jsonb, text[], jsonb [, boolean]) → jsonb",
        "a document with another value at a path", example("jsonb_set('{\"a\": 1}', '{a}', '2') ->> 'a'", "2")),
    function("jsonb_strip_nulls", "1", "(jsonb) → jsonb", "remove object fields with null values from jsonb",
        example("jsonb_strip_nulls('{\"a\":1,\"b\":null}') ->> 'a'", "1"), duckdb="json_strip_nulls"),
    function("jsonb_typeof", "1", "(jsonb) → text", "get the type of a jsonb value",
        example("jsonb_typeof('{\"a\": 1}')", "object"), duckdb="json_typeof"),
    function("row_to_json", "1", "(record) → json", "map row to json", example("row_to_json(ROW(1, 2)) ->> 'f2'", "2"),
        duckdb="to_json"),
    function("to_json", "1", "(anyelement) → json", "map input to json", example("to_json('a'::text)", '"a"')),
    function("to_jsonb", "1", "(anyelement) → jsonb", "map input to jsonb", example("to_jsonb(5)", "5"),
        macro="(v) AS to_json(v)"),
)  # fmt: skip
