"""A server without Spark in a process of its own, so that its memory can be measured.

Prints its port; then answers each line of standard input by a line: ``left`` by how many stopped statements are at
work, ``churn N`` by an empty one when N views were made, read and dropped.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any


def churn(server: Any, views: int) -> None:
    from tests.serving.world import VISITS_ID

    world = server.world
    before = world.catalog.current.relations
    (visits,) = [each for each in before if each.id == VISITS_ID]
    with server.connect() as client:
        for number in range(views):
            identifier = f"{VISITS_ID[:-6]}{100_000 + number}"
            world.writer.execute(f'CREATE TABLE _state."{identifier}" AS SELECT * FROM _state.visits')
            world.writer.execute(f'CREATE VIEW _views."{identifier}" AS SELECT * FROM _state."{identifier}"')
            made = replace(visits, id=identifier, oid=20_000 + number, name=f"v{number}")
            world.catalog.change(relations=(*before, made))
            assert len(client.execute(f"SELECT * FROM v{number}").fetchall()) == 3
            assert client.execute(f"SELECT visits FROM v{number} WHERE url = './a'").fetchall() == [(1,)]
            world.catalog.change(relations=before)
            world.writer.execute(f'DROP VIEW _views."{identifier}"')
            world.writer.execute(f'DROP TABLE _state."{identifier}"')


def main(folder: Path, options: dict[str, int]) -> None:
    from mvserver.collector import Collector
    from tests.serving.server import PullServer

    with PullServer(folder, **options) as server:
        collector = Collector(lambda: False)
        collector.start()
        print(server.wire.port, flush=True)
        for line in sys.stdin:
            command, *arguments = line.split()
            if command == "left":
                print(server.world.service.left, flush=True)
            elif command == "churn":
                churn(server, int(arguments[0]))
                print(flush=True)
    os._exit(0)


if __name__ == "__main__":
    from mvserver import allocation

    allocation.prepare()  # before duckdb is imported, as the server does
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
