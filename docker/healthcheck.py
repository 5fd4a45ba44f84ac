"""Exit code 0 when the server answers a statement, or asks for a password: what the image's HEALTHCHECK runs."""

from __future__ import annotations

import os
import sys

import psycopg


def main() -> int:
    port = int(os.environ.get("MVSERVER_PORT", "5432"))
    try:
        with psycopg.connect(
            host="127.0.0.1", port=port, user="postgres", dbname="postgres", connect_timeout=3
        ) as connection:
            return 0 if connection.execute("SELECT 1").fetchone() == (1,) else 1
    except psycopg.Error as error:
        if error.pgconn is not None and error.pgconn.needs_password:
            return 0  # it lives; PGPASSWORD would let this program in
        sys.stderr.write(f"{error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
