"""The documents against the code: settings, limits, links. What is made from a table is compared with the table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mvserver import config, limits
from spark_sinks.file.limits import FILE_RECORD_BYTES_MAX

ROOT = Path(__file__).resolve().parents[2]
OPERATIONS = ROOT / "docs" / "operations.md"
ROOMS = [path for room in ("mvserver", "spark_sinks", "catalog") for path in (ROOT / room).rglob("README.md")]
DOCUMENTS = (
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "tests" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted(ROOMS),
)


def settings_table() -> str:
    lines = ["| setting | variable | type | default | what it does |", "|---|---|---|---|---|"]
    for name, variable, kind, default, doc in config.describe():
        shown = f"`{default}`" if default else ""
        lines.append(f"| `{name}` | `{variable}` | {kind} | {shown} | {doc} |")
    return "\n".join(lines)


def test_the_table_of_settings_is_the_servers() -> None:
    match = re.search(r"<!-- settings -->\n(.*?)\n?<!-- /settings -->", OPERATIONS.read_text(), re.DOTALL)
    assert match is not None
    assert match.group(1) == settings_table(), f"the table of docs/operations.md should be\n{settings_table()}"


def test_the_limits_that_are_named_are_the_servers() -> None:
    text = OPERATIONS.read_text()
    assert f"`max_connections`) | {limits.CONNECTIONS_MAX} |" in text
    assert f"address in a minute | {limits.AUTHENTICATION_FAILURES_MAX} |" in text
    assert f"so a parameter | {limits.MESSAGE_BYTES_MAX >> 20} MiB |" in text
    assert f"text | {limits.STATEMENT_BYTES_MAX >> 20} MiB |" in text
    assert f"CASEs | {limits.STATEMENT_DEPTH_MAX} |" in text
    assert f"writes | {FILE_RECORD_BYTES_MAX >> 20} MiB |" in text
    assert f"ended after {limits.IDLE_IN_TRANSACTION_TIMEOUT_S:.0f} s" in text


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", re.sub(r"`[^`\n]*`", "", document.read_text())):
        if "://" not in target:
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_make_has_the_targets_that_the_documents_name() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {
        name for document in DOCUMENTS for name in re.findall(r"(?:^|`)make ([a-z-]+)", document.read_text(), re.M)
    }
    assert {"demo", "demo-kafka", "check", "test", "bench"} <= named
    assert named <= targets
