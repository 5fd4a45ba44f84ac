"""A real nginx, with the configuration that docs/web.md recommends. Debian's package nginx-light has it."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

_PAGE = Path(__file__).resolve().parents[2] / "docs" / "web.md"
_BLOCK = re.compile(r"^```nginx\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_START_S = 60.0
_AROUND = """
{user}
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{}}
http {{
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    log_format kinds '$upstream_cache_status $request_uri';
    access_log {folder}/access.log kinds;
    {block}
}}
"""


@contextlib.contextmanager
def nginx(folder: Path, server_port: int) -> Iterator[int]:
    """Its port; ``access.log`` in the folder has for each request whether it was answered from the cache."""
    program = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        pytest.skip("nginx is not installed: apt-get install nginx-light")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    (block,) = _BLOCK.findall(_PAGE.read_text(encoding="utf-8"))
    for documented, own in (
        ("127.0.0.1:8081", f"127.0.0.1:{port}"),
        ("127.0.0.1:8080", f"127.0.0.1:{server_port}"),
        ("/var/cache/nginx/mvserver", f"{folder}/cache"),
    ):
        assert documented in block
        block = block.replace(documented, own)
    user = "user root;" if os.geteuid() == 0 else ""
    settings = folder / "nginx.conf"
    settings.write_text(_AROUND.format(folder=folder, block=block, user=user))
    process = subprocess.Popen([program, "-p", str(folder), "-e", str(folder / "error.log"), "-c", str(settings)])
    try:
        deadline = time.monotonic() + _START_S
        while True:
            assert process.poll() is None, (folder / "error.log").read_text()
            assert time.monotonic() < deadline, "nginx did not start"
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait()
