"""The emulator of Snowflake, run by a Python of its own: ``python snowflake_program.py PORT``.

It is mended in two things. A transaction that stands still keeps its locks there for ever, where the service rolls it
back when another one waits for it. And it does not know CURRENT_TRANSACTION(), of which the service says NULL outside
of a transaction.
"""

import importlib
import itertools
import sys
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import duckdb
import uvicorn

server = importlib.import_module("fakesnow.server")  # the package has a function of that name
cursors = importlib.import_module("fakesnow.cursor")
IDLE_S = 3.0
_FUNCTION = "CURRENT_TRANSACTION()"


@dataclass
class Session:
    """One statement at a time. ``transaction`` is the number of the open one."""

    turn: threading.Lock = field(default_factory=threading.Lock)
    transaction: int | None = None
    used: float = field(default_factory=time.monotonic)


sessions: dict[Any, Session] = defaultdict(Session)  # by their connections, which live as long as the emulator
numbers = itertools.count(1)
_execute = cursors.FakeSnowflakeCursor.execute


def execute(self: Any, command: str, *arguments: Any, **options: Any) -> Any:
    session = sessions[self._conn]
    with session.turn:
        session.used = time.monotonic()
        number = "NULL" if session.transaction is None else f"'{session.transaction}'"
        word = command.split(None, 1)[0].upper()
        try:
            found = _execute(self, command.replace(_FUNCTION, number), *arguments, **options)
            if word == "BEGIN":
                session.transaction = next(numbers)
        finally:
            if word in ("COMMIT", "ROLLBACK"):
                session.transaction = None
            session.used = time.monotonic()
        return found


def roll_back_what_stands_still() -> None:
    while True:
        time.sleep(0.5)
        for connection, session in list(sessions.items()):
            is_idle = session.transaction is not None and time.monotonic() - session.used > IDLE_S
            if is_idle and session.turn.acquire(blocking=False):
                try:
                    connection._duck_conn.execute("ROLLBACK")
                except duckdb.Error:  # it has failed, and is over
                    pass
                finally:
                    session.transaction = None
                    session.turn.release()


if __name__ == "__main__":
    cursors.FakeSnowflakeCursor.execute = execute
    threading.Thread(target=roll_back_what_stands_still, daemon=True).start()
    uvicorn.run(server.app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", timeout_keep_alive=60)
