"""Every block of docs/web.md is run: shell by bash with a real curl, Python by Python, pages by Chromium.

A ``json`` or ``text`` block right after another one is what that prints; ``…`` in it stands for any text. ``<!-- until
true -->`` before a block: it is repeated until it is so, for a bounded time. ``<!-- not run -->``: it is how to install
and start, which the fixture has done. Functions of a shell block hold for the later ones.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.docs.examples import ROOT
from tests.server.program import Program, with_spark
from tests.server.test_http import http_port

pytestmark = pytest.mark.spark

PAGE = ROOT / "docs" / "web.md"
ADDRESS = "localhost:8080"
GENEROUS_S = 120.0
_BLOCK = re.compile(
    r"(?P<mark>^<!-- (?:until true|not run) -->\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$"
    r"(?:\n\s*^```(?:json|text)\n(?P<printed>.*?)^```$)?",
    re.DOTALL | re.MULTILINE,
)
_FUNCTION = re.compile(r"^\w+\(\) \{.*\}$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    mark: str
    printed: str | None


def blocks() -> list[Block]:
    return [
        Block(match["language"], match["text"], match["mark"] or "", match["printed"])
        for match in _BLOCK.finditer(PAGE.read_text(encoding="utf-8"))
    ]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """As the page's first block starts it."""
    (start,) = (line for line in blocks()[0].text.splitlines() if line.startswith("mvserver serve"))
    assert start == "mvserver serve --http-port 8080"
    environment = with_spark()
    with Program(tmp_path_factory.mktemp("web"), "--http-port", "0", environment=environment) as program:
        yield program.ready(GENEROUS_S)


def test_every_block_of_the_page(server: Program, tmp_path: Path) -> None:
    found = blocks()
    assert {block.language for block in found} <= {"sh", "python", "nginx"}
    assert sum("not run" in block.mark for block in found) == 1
    functions: list[str] = []
    for block in found:
        if "not run" not in block.mark and block.language != "nginx":  # tests/server/test_changes.py has that
            _run(block, functions, server, tmp_path)
            functions += _FUNCTION.findall(block.text)


def _run(block: Block, functions: list[str], server: Program, folder: Path) -> None:
    text = block.text.replace(ADDRESS, f"localhost:{http_port(server)}")
    if block.language == "sh":
        text = "\n".join([each.replace(ADDRESS, f"localhost:{http_port(server)}") for each in functions] + [text])
        command = ["bash", "-e", "-o", "pipefail", "-c", text]
    else:
        command = [sys.executable, "-c", text]
    deadline = time.monotonic() + GENEROUS_S
    while True:
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=GENEROUS_S)
        assert done.returncode == 0, f"{block.text}\n{done.stderr}"
        if block.printed is None:
            refused = any(line.startswith('{"code"') for line in done.stdout.splitlines())
            assert not refused, f"{block.text}\nprints {done.stdout}"
            return
        if _fits(done.stdout, block.printed):
            return
        again = "until true" in block.mark and time.monotonic() < deadline
        assert again, f"{block.text}\nprints {done.stdout}\nnot    {block.printed}"
        time.sleep(0.2)


def _fits(printed: str, expected: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, expected.split("…"))), printed, re.DOTALL) is not None
