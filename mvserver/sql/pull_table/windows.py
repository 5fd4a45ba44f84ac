"""Window functions."""

from __future__ import annotations

from mvserver.sql.pull_table.model import example, function

WINDOWS = (
    function("cume_dist", "0", "() → double precision", "fractional row number within partition",
        example("(SELECT max(c) FROM (SELECT cume_dist() OVER (ORDER BY x) AS c FROM (VALUES (1), (2)) AS v(x)) AS "
        "r)", "1"), kind="window"),
    function("dense_rank", "0", "() → bigint", "integer rank without gaps",
        example("(SELECT max(c) FROM (SELECT dense_rank() OVER (ORDER BY x) AS c FROM (VALUES (1), (1), (2)) AS "
        "v(x)) AS r)", "2"), kind="window"),
    function("first_value", "1", "(anyelement) → anyelement", "fetch the first row value",
        example("(SELECT max(c) FROM (SELECT first_value(x) OVER (ORDER BY x) AS c FROM (VALUES (1), (2)) AS v(x)) "
        "AS r)", "1"), kind="window"),
    function("lag", "1-3", "(any [, integer [, any]]) → any", "value of the row before",
        example("(SELECT max(c) FROM (SELECT lag(x) OVER (ORDER BY x) AS c FROM (VALUES (1), (2)) AS v(x)) AS r)", "1",
        ), kind="window"),
    function("last_value", "1", "(anyelement) → anyelement", "fetch the last row value",
        example("(SELECT min(c) FROM (SELECT last_value(x) OVER (ORDER BY x) AS c FROM (VALUES (1), (2)) AS v(x)) AS "
        "r)", "1"), kind="window"),
    function("lead", "1-3", "(any [, integer [, any]]) → any", "value of the row behind",
        example("(SELECT max(c) FROM (SELECT lead(x, 1, 9) OVER (ORDER BY x) AS c FROM (VALUES (1), (2)) AS v(x)) AS "
        "r)", "9"), kind="window"),
    function("nth_value", "2", "(anyelement, integer) → anyelement", "fetch the Nth row value",
        example("(SELECT max(c) FROM (SELECT nth_value(x, 2) OVER (ORDER BY x) AS c FROM (VALUES (1), (2)) AS v(x)) "
        "AS r)", "2"), kind="window"),
    function("ntile", "1", "(integer) → integer", "split rows into N groups",
        example("(SELECT max(c) FROM (SELECT ntile(2) OVER (ORDER BY x) AS c FROM (VALUES (1), (2), (3)) AS v(x)) AS "
        "r)", "2"), kind="window"),
    function("percent_rank", "0", "() → double precision", "fractional rank within partition",
        example("(SELECT max(c) FROM (SELECT percent_rank() OVER (ORDER BY x) AS c FROM (VALUES (1), (2)) AS v(x)) "
        "AS r)", "1"), kind="window"),
    function("rank", "0", "() → bigint", "integer rank with gaps",
        example("(SELECT max(c) FROM (SELECT rank() OVER (ORDER BY x) AS c FROM (VALUES (1), (1), (2)) AS v(x)) AS "
        "r)", "3"), kind="window"),
    function("row_number", "0", "() → bigint", "row number within partition",
        example("(SELECT max(c) FROM (SELECT row_number() OVER (ORDER BY x) AS c FROM (VALUES (1), (1)) AS v(x)) AS "
        "r)", "2"), kind="window"),
)  # fmt: skip
