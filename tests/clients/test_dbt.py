"""dbt-postgres itself: materialized views with and without indexes, views over them, tests and docs; run twice."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.own_environment import environment
from tests.faults.live import LiveServer, temporary_server

pytestmark = [pytest.mark.night, pytest.mark.spark]

HERE = Path(__file__).parent / "dbt"
CLICKS = ("./home", "./home", "./shop")


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with temporary_server() as live:
        live.start()
        live.run(
            "CREATE STORE local WITH ('type' = FILE, 'uris' = '.')",
            "CREATE STREAM clicks (url VARCHAR) WITH ('store' = 'local', 'value.format' = 'json')",
            *(f"INSERT INTO ENTITY clicks IN STORE local VALUE ('{json.dumps({'url': url})}')" for url in CLICKS),
        )
        yield live


class Project:
    """A copy of the project, since dbt writes beside it."""

    def __init__(self, programs: Path, folder: Path, port: int) -> None:
        self._dbt = programs / "dbt"
        self.folder = folder
        self._environment = {**os.environ, "MV_PORT": str(port), "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}

    def run(self, *arguments: str) -> dict[str, str]:
        """What became of each model and test, by name."""
        done = subprocess.run(
            [str(self._dbt), "--no-use-colors", *arguments, "--profiles-dir", ".", "--project-dir", "."],
            cwd=self.folder, env=self._environment, capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        results = json.loads((self.folder / "target" / "run_results.json").read_text())["results"]
        return {each["unique_id"].split(".")[2]: each["status"] for each in results}

    def catalog(self) -> dict[str, Any]:
        return dict(json.loads((self.folder / "target" / "catalog.json").read_text())["nodes"])


@pytest.fixture(scope="module")
def project(server: LiveServer, tmp_path_factory: pytest.TempPathFactory) -> Project:
    folder = tmp_path_factory.mktemp("project") / "shop"
    shutil.copytree(HERE, folder)
    return Project(environment(HERE / "requirements.txt", tmp_path_factory), folder, server.port)


PASSED = {
    "by_url": "success", "plain": "success", "busy": "success", "busiest": "success",
    "not_null_by_url_url": "pass", "unique_by_url_url": "pass", "not_null_busy_url": "pass",
}  # fmt: skip


def test_a_project_is_built_twice(server: LiveServer, project: Project) -> None:
    for _ in range(2):
        assert project.run("build") == PASSED
        assert server.query("SELECT url, visits FROM busy ORDER BY url") == [("./home", 2), ("./shop", 1)]
        assert server.query("SELECT * FROM busiest") == [("./home",)]
        assert server.query("SELECT * FROM plain") == [("./shop", 1)]
        indexes = server.query("SELECT tablename, indexdef LIKE 'CREATE UNIQUE INDEX %(url)' FROM pg_indexes")
        assert indexes == [("by_url", True)]
    project.run("docs", "generate")
    found = {each["metadata"]["name"]: each for each in project.catalog().values()}
    assert {name: each["metadata"]["type"] for name, each in found.items()} == {
        "by_url": "MATERIALIZED VIEW", "plain": "MATERIALIZED VIEW", "busy": "VIEW", "busiest": "VIEW",
    }  # fmt: skip
    assert {name: column["type"] for name, column in found["busy"]["columns"].items()} == {
        "url": "text", "visits": "bigint",
    }  # fmt: skip
