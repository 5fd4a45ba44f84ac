"""Every file that the packages read at run time is in what pip builds, not in the checkout alone."""

from __future__ import annotations

import fnmatch
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("mvserver", "spark_sinks", "catalog")


def test_data_files_are_packaged() -> None:
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["*"]
    missing = []
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*"):
            if path.suffix in (".py", ".pyc") or path.name == "README.md" or not path.is_file():
                continue
            home = next(folder for folder in path.parents if (folder / "__init__.py").exists())
            relative = path.relative_to(home).as_posix()
            if not any(fnmatch.fnmatchcase(relative, pattern) for pattern in patterns):
                missing.append(str(path.relative_to(ROOT)))
    assert missing == []


def test_every_folder_of_python_is_a_package() -> None:
    folders = {path.parent for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    assert [str(folder) for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []
