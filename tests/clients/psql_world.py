"""The same relations in a real PostgreSQL and here, and psql's commands over them.

``record_psql.py`` runs the commands against a real PostgreSQL 15, ``test_psql_commands.py`` against us.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence

POSTGRES = """
CREATE FOREIGN DATA WRAPPER file;
CREATE SERVER shop FOREIGN DATA WRAPPER file;
CREATE FOREIGN TABLE clicks (url text, at bigint, price numeric(10,2)) SERVER shop OPTIONS (topic 'clicks');
CREATE MATERIALIZED VIEW visits AS SELECT v.url, v.visits FROM (VALUES ('./home', 30::bigint), ('./shop', 20),
    ('./cart', 10)) AS v (url, visits);
CREATE UNIQUE INDEX visits_key ON visits (url) NULLS NOT DISTINCT;
CREATE MATERIALIZED VIEW typed AS SELECT 1::integer AS id, true AS flag, 1::smallint AS small, 1::bigint AS big,
    1::real AS real4, 1::double precision AS real8, 1::numeric(12,2) AS amount, 'a'::text AS name, ''::bytea AS bytes,
    current_date AS day, localtime::time AS clock, localtimestamp::timestamp AS moment, now() AS instant;
CREATE UNIQUE INDEX typed_key ON typed (id) NULLS NOT DISTINCT;
CREATE MATERIALIZED VIEW numbers AS SELECT n::bigint AS n FROM generate_series(0, 9) AS n;
CREATE UNIQUE INDEX numbers_key ON numbers (n) NULLS NOT DISTINCT;
"""

COMMANDS = (
    "\\d", "\\d+", "\\dt", "\\dt+", "\\dv", "\\dv+", "\\dm", "\\dm+", "\\di", "\\di+", "\\ds", "\\ds+", "\\dE",
    "\\dE+", "\\d visits", "\\d typed", "\\d+ visits", "\\d public.vis*", "\\d clicks", "\\d+ clicks",
    "\\d visits_key", "\\d+ visits_key", "\\d nosuch", "\\d visits clicks", "\\dm public.v*", "\\dm *s", "\\dtm",
    "\\des", "\\des+", "\\det", "\\det+", "\\dew", "\\dew+", "\\deu", "\\l", "\\l+", "\\l post*", "\\dn", "\\dn+",
    "\\dn pub*", "\\du", "\\du+", "\\dg", "\\du nosuch", "\\df", "\\df+", "\\df nosuch*", "\\da", "\\dx", "\\dx+",
    "\\dp", "\\z", "\\dp visits", "\\dy", "\\dy+", "\\dT", "\\dT+", "\\dD", "\\dD+", "\\do", "\\do nosuch",
    "\\do = int4 int4",
    "\\do || text text", "\\do+ ~~ text text", "\\do+ - int8", "\\do + timestamp interval", "\\do -> json *", "\\dO",
    "\\dc", "\\dC int2", "\\dL", "\\dL+", "\\dA", "\\dA btree", "\\dA+", "\\dAc btree int4", "\\db", "\\dd", "\\ddp",
    "\\dl", "\\dP", "\\dP+", "\\drds", "\\dRp", "\\dRs", "\\dX", "\\dconfig server_version_num", "\\sv visits",
    "\\dF", "\\dF+ english", "\\dFd", "\\dFd+ *english*", "\\dFp", "\\dFp+", "\\dFt", "\\dFt+", "\\dAc", "\\dAc+ hash",
    "\\dAf", "\\dAf+ btree", "\\dAo btree integer_ops", "\\dAo+ btree datetime_ops", "\\dAo hash integer_ops",
    "\\dAp btree integer_ops", "\\dAp+ btree datetime_ops", "\\dAp hash float_ops", "\\dC", "\\dC+ text", "\\dRp+",
    "\\dRs+", "\\dX+", "\\dO+", "\\dLS+", "\\dTS", "\\dTS+", "\\dS", "\\dvS", "\\ddS", "\\dPi+", "\\dfwS",
    "\\dconfig work*", "\\dconfig+ join*", "SET work_mem = '8MB';\n\\dconfig w*mem\nRESET work_mem;",
    "\\dconfig nosuch", "\\sf nosuch", "\\dT int4", "\\dT+ bool", "\\dS visits", "\\dti public.*",
    "SELECT url, visits, 'x' AS c FROM visits \\crosstabview url c visits",
    "SELECT url, count(*), 1.5 AS n, now() AS t, 'x' FROM visits GROUP BY url \\gdesc",
    "SELECT * FROM visits ORDER BY 1 \\g (format=csv)", "SELECT * FROM visits ORDER BY visits LIMIT 1 \\gx",
    "SELECT 'SELECT ' || n FROM numbers WHERE n < 3 ORDER BY n \\gexec",
    "SELECT visits AS v FROM visits WHERE url = './home' \\gset\n\\echo :v", "SELECT 1 AS a \\; SELECT 2 AS b;",
    "\\encoding",
)  # fmt: skip

RUN_ONLY = (
    "\\dAo", "\\dAp+", "\\dOS", "\\dL+", "\\dconfig", "\\dconfig+ *", "\\db+", "\\dcS+", "\\dS+", "\\diS+", "\\dfS",
    "\\dfS+", "\\dfaS", "\\daS+", "\\doS+", "\\dnS+", "\\dx+", "\\dp pg_catalog.pg_class", "\\sf abs(int4)",
    "\\sv pg_views", "\\conninfo",
)  # fmt: skip
"""What these list is the server's own; they must run."""

_MARK = "--- next ---"
_PLACE = re.compile(r"^psql:<stdin>:\d+: ", re.M)


def run(conninfo: str, commands: Sequence[str]) -> dict[str, list[str]]:
    """What one psql prints for each command: a cell between bars, errors and notices behind the rest."""
    script = "".join(f"\\echo {_MARK}\n\\warn {_MARK}\n{command}\n" for command in commands)
    done = subprocess.run(
        ["psql", "-X", "-A", conninfo, "-f", "-"],
        input=script, capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PGCONNECT_TIMEOUT": "10", "PGCLIENTENCODING": "UTF8", "LC_ALL": "C.UTF-8"},
    )  # fmt: skip
    printed = (_parts(done.stdout), _parts(_PLACE.sub("", done.stderr)))
    assert all(len(parts) == len(commands) for parts in printed), done.stderr
    return {command: [*printed[0][at], *printed[1][at]] for at, command in enumerate(commands)}


def _parts(text: str) -> list[list[str]]:
    return [part.strip("\n").splitlines() for part in text.split(f"{_MARK}\n")[1:]]
