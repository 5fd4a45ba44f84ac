"""Queries of jsonb documents that are compared with a real PostgreSQL's answers."""

from __future__ import annotations

DOCUMENTS = (
    '\'{"b": 1, "a": {"d":1,"c" : [1,2 , 3]}, "bb": 1e3, "b": -0.0}\'::jsonb',
    "'[1.5, 1E-3, 12345678901234567890, -0, 1.0e2, true, null]'::jsonb",
    "'\"\\u00e9\\n\\t\\\\ / \\u0001\"'::jsonb",
    "' {} '::jsonb, ' [ ] '::jsonb",
    'SELECT d, n FROM (VALUES (\'{"b": 2, "aa": 1, "a": [1, {"x": 1.5, "y": null}], "b": 3}\'::js'
    "onb, 1), ('[1, 2.0, \"a\", {\"k\": []}]', 2), ('\"text\"', 3), ('null', 4), ('{}', 5), (NULL, 6)"
    ") AS t (d, n) ORDER BY n",
    "SELECT d -> 'a', d -> 'b', d ->> 'b', d #> '{a,1}', d #>> '{a,1,x}' FROM (VALUES ('{\"b\": 2"
    ', "aa": 1, "a": [1, {"x": 1.5, "y": null}]}\'::jsonb, 1), (\'{}\', 5), (NULL, 6)) AS t (d, n)'
    " ORDER BY n",
    "SELECT d - 'a', d - 'nothing', d - ARRAY['a', 'b'], d - '{a,aa}'::text[] FROM (VALUES ('{\""
    'b": 2, "aa": 1, "a": [1, {"x": 1.5, "y": null}]}\'::jsonb, 1), (\'{}\', 5), (NULL, 6)) AS t ('
    "d, n) ORDER BY n",
    "'[1, \"a\", \"b\", 2]'::jsonb - 'a', '[1, 2, 3]'::jsonb - 1, '[1, 2, 3]'::jsonb - (-1), '[1, 2, 3]'::jsonb - 7",
    "SELECT d #- '{a,1,x}', d #- '{a,0}', d #- '{nothing,x}', d #- '{b}', d #- '{a,-1}' FROM (V"
    'ALUES (\'{"b": 2, "aa": 1, "a": [1, {"x": 1.5, "y": null}]}\'::jsonb, 1), (\'{}\', 5), (NULL, '
    "6)) AS t (d, n) ORDER BY n",
    "SELECT jsonb_set(d, '{b}', '[1,2]'), jsonb_set(d, '{a,1,x}', '\"new\"'), jsonb_set(d, '{z}',"
    " '0'), jsonb_set(d, '{z}', '0', false), jsonb_set(d, '{z,y}', '0') FROM (VALUES ('{\"b\": 2,"
    ' "aa": 1, "a": [1, {"x": 1.5, "y": null}]}\'::jsonb, 1), (\'{}\', 5), (NULL, 6)) AS t (d, n) '
    "ORDER BY n",
    "jsonb_set('[1, 2, 3]', '{1}', '9'), jsonb_set('[1, 2, 3]', '{-1}', '9'), jsonb_set('[1, 2,"
    " 3]', '{7}', '9'), jsonb_set('[1, 2, 3]', '{-7}', '9'), jsonb_set('[1]', '{7}', '9', false"
    ")",
    "jsonb_set('{\"a\": 1}', '{a}', NULL)",
    "jsonb_set('{\"a\": 1}', '{}', '2')",
    "jsonb_set('[1]', '{x}', '2')",
    "jsonb_set('1', '{x}', '2')",
    "'1'::jsonb - 'a'",
    "'{}'::jsonb - 1",
    "'1'::jsonb #- '{a}'",
    "'[1]'::jsonb #- '{a}'",
    'SELECT t.n, b.n FROM (VALUES (\'{"b": 2, "aa": 1, "a": [1, {"x": 1.5, "y": null}], "b": 3}\''
    "::jsonb, 1), ('[1, 2.0, \"a\", {\"k\": []}]', 2), ('\"text\"', 3), ('null', 4), ('{}', 5), (NULL"
    ', 6)) AS t (d, n) JOIN (VALUES (\'{"b": 2, "aa": 1, "a": [1, {"x": 1.5, "y": null}], "b": 3'
    "}'::jsonb, 1), ('[1, 2.0, \"a\", {\"k\": []}]', 2), ('\"text\"', 3), ('null', 4), ('{}', 5), (NU"
    "LL, 6)) AS b (d, n) ON t.d = b.d ORDER BY 1, 2",
    '\'{"a": 1, "b": [1.0, {"c": null}]}\'::jsonb = \'{"b": [1, {"c": null}], "a": 1.00}\'::jsonb',
    'SELECT x = y FROM (VALUES (\'{"a": 1, "b": 2}\'::jsonb, \'{"b": 2.0, "a": 1, "a": 1}\'::jsonb)'
    ", ('[1,2]','[2,1]'), ('1','\"1\"'), ('null','null'), (NULL,'1'), ('[]','{}'), ('{\"a.b\":1}','"
    "{\"a\":{\"b\":1}}'), ('[null]','[]'), ('true','\"true\"'), ('12345678901234567890','123456789012"
    "34567891')) AS t (x, y)",
    "SELECT x <> y FROM (VALUES ('{\"a\": 1}'::jsonb, '{\"a\": 2}'::jsonb), ('1','1.0')) AS t (x, y)",
    'SELECT n FROM (VALUES (\'{"b": 2, "aa": 1, "a": [1, {"x": 1.5, "y": null}], "b": 3}\'::jsonb'
    ", 1), ('[1, 2.0, \"a\", {\"k\": []}]', 2), ('\"text\"', 3), ('null', 4), ('{}', 5), (NULL, 6)) A"
    "S t (d, n) WHERE d @> '[{\"k\": []}]' ORDER BY n",
    'SELECT n FROM (VALUES (\'{"b": 2, "aa": 1, "a": [1, {"x": 1.5, "y": null}], "b": 3}\'::jsonb'
    ", 1), ('[1, 2.0, \"a\", {\"k\": []}]', 2), ('\"text\"', 3), ('null', 4), ('{}', 5), (NULL, 6)) A"
    'S t (d, n) WHERE d @> \'{"a": [{"x": 1.5}]}\' ORDER BY n',
    "'[[1, 2], [3]]'::jsonb @> '[[2]]', '[[1, 2], [3]]'::jsonb @> '[[2, 3]]', '[{\"a\": {\"b\": [1]"
    "}}]'::jsonb @> '[{\"a\": {\"b\": []}}]', '[1]'::jsonb <@ '[[1], 1]'",
    "SELECT d ? 'a', d ?| ARRAY['a', 'zz'], d ?& ARRAY['a', 'zz'] FROM (VALUES ('{\"b\": 2, \"aa\":"
    ' 1, "a": [1, {"x": 1.5, "y": null}], "b": 3}\'::jsonb, 1), (\'[1, 2.0, "a", {"k": []}]\', 2),'
    " ('\"text\"', 3), ('null', 4), ('{}', 5), (NULL, 6)) AS t (d, n) ORDER BY n",
    'SELECT jsonb_typeof(d) FROM (VALUES (\'{"b": 2, "aa": 1, "a": [1, {"x": 1.5, "y": null}], "'
    "b\": 3}'::jsonb, 1), ('[1, 2.0, \"a\", {\"k\": []}]', 2), ('\"text\"', 3), ('null', 4), ('{}', 5)"
    ", (NULL, 6)) AS t (d, n) ORDER BY n",
    'SELECT n, key, value FROM (VALUES (\'{"b": 2, "aa": 1, "a": [1, {"x": 1.5, "y": null}]}\'::j'
    "sonb, 1), ('{}', 5), (NULL, 6)) AS t (d, n), jsonb_each(d) ORDER BY n, key",
    'SELECT n, key, value FROM (VALUES (\'{"b": 2, "aa": 1, "a": [1, {"x": 1.5, "y": null}]}\'::j'
    "sonb, 1), ('{}', 5), (NULL, 6)) AS t (d, n), jsonb_each_text(d - 'a') ORDER BY n, key",
    'SELECT value FROM jsonb_array_elements(\'[1, {"b":1, "a":2}, null]\')',
    "SELECT value FROM jsonb_array_elements_text('[1, null, \"x\"]')",
    "jsonb_build_object('b', 1, 'aa', 'x', 'a', NULL, 'c', ARRAY[1,2], 'd', true)",
    "jsonb_build_array(1, 'x', NULL, 1.5, '{\"b\":1,\"a\":2}'::jsonb)",
    'SELECT jsonb_agg(d ORDER BY n) FROM (VALUES (\'{"b": 2, "aa": 1, "a": [1, {"x": 1.5, "y": n'
    'ull}], "b": 3}\'::jsonb, 1), (\'[1, 2.0, "a", {"k": []}]\', 2), (\'"text"\', 3), (\'null\', 4), ('
    "'{}', 5), (NULL, 6)) AS t (d, n)",
    'SELECT jsonb_object_agg(n, d) FROM (VALUES (\'{"b": 2, "aa": 1, "a": [1, {"x": 1.5, "y": nu'
    "ll}]}'::jsonb, 1), ('{}', 5), (NULL, 6)) AS t (d, n)",
    '\'{"a": 1}\'::jsonb || \'{"b": 2, "a": 3}\'::jsonb',
    "'[1]'::jsonb || '2'::jsonb",
    "to_jsonb('x'::text), to_jsonb(1.5), to_jsonb(true), to_jsonb(ARRAY[1,2])",
    "SELECT coalesce(d -> 'a' -> 1 ->> 'x', 'none'), coalesce(d -> 'a', d -> 'b'), jsonb_typeof"
    '(d -> \'a\') FROM (VALUES (\'{"b": 2, "aa": 1, "a": [1, {"x": 1.5, "y": null}]}\'::jsonb, 1), '
    "('{}', 5), (NULL, 6)) AS t (d, n) ORDER BY n",
    "SELECT coalesce(d -> 'zz', d), CASE WHEN n = 1 THEN d ELSE '[]' END FROM (VALUES ('{\"b\": 2"
    ', "aa": 1, "a": [1, {"x": 1.5, "y": null}]}\'::jsonb, 1), (\'{}\', 5), (NULL, 6)) AS t (d, n)'
    " ORDER BY n",
    'WITH w AS (SELECT d AS e FROM (VALUES (\'{"b": 2, "aa": 1, "a": [1, {"x": 1.5, "y": null}]}'
    "'::jsonb, 1), ('{}', 5), (NULL, 6)) AS t (d, n)) SELECT e FROM w ORDER BY e ->> 'b'",
    '\'{"b":1,  "a":2}\'::json',
    "'{\"a\": 1}'::jsonb = '{\"a\": 1.0}'",
    "NULL::jsonb",
    "'x'::jsonb",
    '(SELECT \'{"b": 1, "a": 2}\'::jsonb)',
)
