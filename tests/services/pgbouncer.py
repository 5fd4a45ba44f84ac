"""A real PgBouncer in transaction mode, which resets a connection to the server after each transaction.

It comes from the packages of the system.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mvserver.demo.server import free_port
from tests.services.packages import library_path, unpacked

_PACKAGES = ("pgbouncer", "libc-ares2", "libevent-2.1-7")
_PORT_FROM = 26432
_IS_UP = "process up"
_CONFIGURATION = """
[databases]
postgres = host={host} port={port} dbname={database} user=postgres

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own_port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
server_reset_query = DISCARD ALL
server_reset_query_always = 1
default_pool_size = {connections}
"""


@dataclass(frozen=True)
class PgBouncer:
    port: int

    @property
    def conninfo(self) -> str:
        return f"host=127.0.0.1 port={self.port} user=postgres dbname=postgres"


@contextmanager
def pgbouncer(host: str, port: int, database: str, *, connections: int) -> Iterator[PgBouncer]:
    """In front of a server, with so many connections to it for all clients together."""
    program, environment = _program()
    own_port = free_port(_PORT_FROM)
    with tempfile.TemporaryDirectory(prefix="mvserver-pgbouncer-") as made:
        folder = Path(made)
        folder.chmod(0o755)
        configuration = folder / "pgbouncer.ini"
        configuration.write_text(
            _CONFIGURATION.format(host=host, port=port, database=database, own_port=own_port, connections=connections)
        )
        as_user = ("-u", pwd.getpwuid(65534).pw_name) if os.geteuid() == 0 else ()  # it does not run as root
        process = subprocess.Popen(
            [program, *as_user, str(configuration)],
            env={**os.environ, **environment}, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        try:
            _wait_until_up(process)
            yield PgBouncer(own_port)
        finally:
            process.terminate()
            process.communicate(timeout=20)


def _wait_until_up(process: subprocess.Popen[str]) -> None:
    assert process.stderr is not None
    told = []
    for line in process.stderr:
        told.append(line)
        if _IS_UP in line:
            return
    raise AssertionError("".join(told))


def _program() -> tuple[str, dict[str, str]]:
    found = shutil.which("pgbouncer")
    if found is not None:
        return found, {}
    folder = unpacked("pgbouncer", _PACKAGES)
    return str(folder / "usr" / "sbin" / "pgbouncer"), {"LD_LIBRARY_PATH": library_path(folder)}
