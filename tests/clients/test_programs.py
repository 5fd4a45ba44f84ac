"""Drivers of other languages: a small program in each says what it sees of a server, here and of a real PostgreSQL.

The drivers come from their registries into a folder of the cache, made anew when their versions change; what is built
of them is kept there as well.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.clients.client_world import Address

pytestmark = pytest.mark.postgres

HERE = Path(__file__).parent
_UNREACHABLE = re.compile(
    r"ENOTFOUND|EAI_AGAIN|ECONN\w+|ETIMEDOUT|EHOSTUNREACH|E40[13]|E50\d|network|dial tcp|Could not resolve"
)
CACHE = Path.home() / ".cache" / "mvserver-tests"


def built(language: str, *command: str, **environment: str) -> Path:
    """The folder of the program, with what ``command`` makes in it."""
    tool = command[0]
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    sources = sorted(path for path in (HERE / language).rglob("*") if path.is_file())
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    folder = CACHE / f"{language}-{digest}"
    if not folder.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as made:
            work = Path(made) / language
            shutil.copytree(HERE / language, work)
            done = subprocess.run(
                command, cwd=work, env={**os.environ, **environment}, capture_output=True, text=True, timeout=900,
                check=False,
            )  # fmt: skip
            if done.returncode != 0 and _UNREACHABLE.search(done.stderr):
                pytest.skip(f"the registry of {tool} cannot be reached: {done.stderr[-300:]}")
            assert done.returncode == 0, done.stderr
            if not folder.exists():  # another test process may have been first
                work.rename(folder)
    return folder


def seen(command: Sequence[str]) -> dict[str, str]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(line.split("\t") for line in done.stdout.splitlines())


def same(ours: Address, theirs: Address, command: Callable[[Address], Sequence[str]]) -> dict[str, str]:
    """What both servers show."""
    found = seen(command(ours))
    assert found == seen(command(theirs))
    return found


def test_node(ours: Address, theirs: Address) -> None:
    """node's pg, with its cursors, streams, COPY and pool."""
    folder = built("node", "npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--fetch-retries=1")
    program = str(folder / "probe.js")
    found = same(ours, theirs, lambda to: ["node", program, to.host, str(to.port), to.user, to.database])
    assert len(found) == 25
    assert json.loads(found['"inferred"']) == [{"visits": "30"}]
    assert json.loads(found['"stream"']) == [4_999_950_000, 100_000]
    assert json.loads(found['"no relation"'])["code"] == "42P01"


@pytest.mark.night
def test_go(ours: Address, theirs: Address) -> None:
    """pgx: binary formats, its five ways to run a statement, batches, contexts that end, its pool."""
    folder = built("go", "go", "build", "-o", "probe", ".", GOFLAGS="-mod=mod")
    found = same(ours, theirs, lambda to: [str(folder / "probe"), to.conninfo.replace("dbname", "database")])
    assert len(found) == 27
    assert json.loads(found['"batch"']) == [1, 2, 3, 4, 5, 60]
    assert json.loads(found['"cancelled"'])[0] == "57014"


@pytest.mark.night
def test_rust(ours: Address, theirs: Address) -> None:
    """The crate postgres: binary formats, portals read in parts, cancel tokens."""
    folder = built("rust", "cargo", "build", "--quiet")
    program = str(folder / "target" / "debug" / "probe")
    found = same(ours, theirs, lambda to: [program, to.conninfo])
    assert found['"portal"'] == "[[10, 11], [12, 13, 14]]"
    assert found['"after"'] == "7"
