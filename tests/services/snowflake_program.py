"""The emulator of Snowflake, run by a Python of its own: ``python snowflake_program.py PORT``.

It is mended in one thing. A transaction that stands still keeps its locks there for ever, where the service rolls it
back when another one waits for it.
"""

import importlib
import sys
import threading
import time
from typing import Any

import duckdb
import uvicorn

server = importlib.import_module("fakesnow.server")  # the package has a function of that name
IDLE_S = 3.0
used: dict[str, float] = {}
_connection = server.to_conn


def to_conn(token: str) -> Any:
    used[token] = time.monotonic()
    return _connection(token)


def roll_back_what_stands_still() -> None:
    while True:
        time.sleep(0.5)
        for token, at in list(used.items()):
            if time.monotonic() - at > IDLE_S:
                used.pop(token, None)
                try:
                    server.sessions[token]._duck_conn.execute("ROLLBACK")
                except duckdb.Error:  # there is no transaction
                    continue


if __name__ == "__main__":
    server.to_conn = to_conn
    threading.Thread(target=roll_back_what_stands_still, daemon=True).start()
    uvicorn.run(server.app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", timeout_keep_alive=60)
