"""axe-core, the checker of pages' accessibility, from npm; installed once, beside the user's other caches."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.services.chromium import Chromium
from tests.services.installed import installed
from tests.services.registries import UNREACHABLE

VERSION = "4.14.1"
_INSTALL_TIMEOUT_S = 300.0
_GRAVE = ("serious", "critical")


def _install(folder: Path) -> None:
    done = subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1", "--prefix", str(folder),
         f"axe-core@{VERSION}"],
        capture_output=True, text=True, timeout=_INSTALL_TIMEOUT_S,
    )  # fmt: skip
    if done.returncode and UNREACHABLE.search(done.stderr):
        pytest.skip("the registry of npm cannot be reached, from which axe-core is installed")
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def axe() -> str:
    """Its program, to be run in a page."""
    if shutil.which("npm") is None:
        pytest.skip("axe-core is installed by npm, which is not there")
    return (installed(f"axe-core-{VERSION}", _install) / "node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")


def grave_findings(page: Chromium, axe: str) -> list[Any]:
    """What is serious or critical on the page as it is: the rule, and the elements."""
    page.evaluate(f"if (!window.axe) {{ {axe} }} undefined")
    found = json.loads(
        page.evaluate("axe.run({resultTypes: ['violations']}).then(found => JSON.stringify(found.violations))")
    )
    return [
        (each["id"], [node["html"] for node in each["nodes"]], each["help"])
        for each in found
        if each["impact"] in _GRAVE
    ]
