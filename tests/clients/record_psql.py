"""Records what psql shows of a real PostgreSQL 15, for test_psql_commands.py.

    python -m tests.clients.record_psql "host=127.0.0.1 user=postgres dbname=postgres" > tests/clients/pg15_psql.json

The server must be a fresh one, with the locale C.UTF-8.
"""

from __future__ import annotations

import json
import sys

import psycopg

from tests.clients.psql_world import COMMANDS, POSTGRES, run


def record(conninfo: str) -> dict[str, list[str]]:
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute(POSTGRES)
    return run(conninfo, COMMANDS)


if __name__ == "__main__":
    print(json.dumps(record(sys.argv[1]), indent=0, ensure_ascii=False))
