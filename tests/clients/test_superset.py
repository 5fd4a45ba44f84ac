"""Apache Superset itself: the database is added, browsed, made data sets of, and charts are asked for."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.clients.client_world import Address
from tests.clients.own_environment import environment

pytestmark = pytest.mark.night

HERE = Path(__file__).parent / "superset"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of an environment of its own, which has Superset."""
    return environment(HERE / "requirements.txt", tmp_path_factory) / "python"


@pytest.fixture(scope="module")
def seen(ours: Address, python: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    home = tmp_path_factory.mktemp("home")
    uri = f"postgresql+psycopg2://{ours.user}@{ours.host}:{ours.port}/{ours.database}"
    done = subprocess.run(
        [str(python), str(HERE / "probe.py"), uri],
        env={**os.environ, "SUPERSET_HOME": str(home), "SUPERSET_CONFIG_PATH": str(HERE / "superset_config.py")},
        cwd=home, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.split("\t") for line in done.stdout.splitlines() if "\t" in line]
    return {json.loads(name): json.loads(value) for name, value in lines}


def test_the_database_is_added_and_browsed(seen: dict[str, Any]) -> None:
    assert seen["tested"] == "OK"
    assert seen["schemas"] == ["information_schema", "mv_catalog", "public"]
    assert [name for name, _ in seen["tables"]] == ["numbers", "typed", "visits"]
    assert dict(seen["columns"])["amount"] == "NUMERIC"
    assert [name for name, _ in seen["columns"]][:3] == ["id", "flag", "small"]


def test_a_data_set_has_the_columns_and_their_types(seen: dict[str, Any]) -> None:
    types = {name: (kind, is_time) for name, kind, is_time in seen["dataset"]}
    assert types["amount"] == ("NUMERIC(12, 2)", False)
    assert types["big"] == ("BIGINT", False)
    assert types["moment"] == ("TIMESTAMP WITHOUT TIME ZONE", True)
    assert types["instant"] == ("TIMESTAMP WITH TIME ZONE", True)


def test_a_chart_with_a_filter(seen: dict[str, Any]) -> None:
    assert seen["filtered chart"] == {
        "data": [{"url": "./home", "total": 30, "count": 1}, {"url": "./shop", "total": 20, "count": 1}],
        "rows": 2,
        "status": "success",
    }
    assert [row["name"] for row in seen["samples"]["data"]] == ["näme 'x'"]


@pytest.mark.parametrize(
    ("grain", "start"),  # of the grain in which 2024-01-02 03:04:05 lies, in milliseconds
    [
        ("PT1M", 1_704_164_640_000), ("P1D", 1_704_153_600_000), ("P1W", 1_704_067_200_000),
        ("P1M", 1_704_067_200_000), ("P3M", 1_704_067_200_000), ("P1Y", 1_704_067_200_000),
    ],
)  # fmt: skip
def test_a_chart_over_time(seen: dict[str, Any], grain: str, start: int) -> None:
    assert seen[f"time grain {grain}"]["data"] == [{"moment": start, "amount": 12.3}]


def test_sql_lab(seen: dict[str, Any]) -> None:
    assert seen["sql lab"][:2] == ["success", [{"url": "./home", "visits": 30}, {"url": "./shop", "visits": 20}]]
