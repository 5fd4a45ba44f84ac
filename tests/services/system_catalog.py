"""The system catalog of databases in tests, made once in each process: to copy it takes a tenth of the time.

What is copied is what the product made. Tests that ask for ``made_system_catalog``, rooms that do not ask for
``copied_system_catalog``, and all servers in processes of their own have it made anew.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import duckdb
import pytest

from mvserver.pgcatalog.system import SystemCatalog
from mvserver.serving.engine import database
from mvserver.serving.engine.database import SYSTEM_CATALOG

_preparation = database._preparation
_build = SystemCatalog._build


class _InFile:
    """An open database whose system catalog lies in a file."""

    def __init__(self, file: Path) -> None:
        self._connection = duckdb.connect()
        self._connection.execute(f"ATTACH '{file}' AS {SYSTEM_CATALOG}")

    def cursor(self) -> duckdb.DuckDBPyConnection:
        return self._connection.cursor()

    def close(self) -> None:
        self._connection.execute(f"DETACH {SYSTEM_CATALOG}")  # writes all of it
        self._connection.close()


class _Copies:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._original = folder / "original.duckdb"
        self._numbers = itertools.count()
        made = _InFile(self._original)
        catalog = SystemCatalog(made, SYSTEM_CATALOG, None, {})  # type: ignore[arg-type]
        catalog.build(lambda: False)
        catalog.close()
        made.close()

    def preparation(self) -> Iterable[str]:
        """The statements for a new database, with a copy for the empty catalog in memory."""
        for statement in _preparation():
            if not statement.startswith("ATTACH"):
                yield statement
                continue
            copy = self._folder / f"{next(self._numbers)}.duckdb"
            shutil.copyfile(self._original, copy)
            yield f"ATTACH '{copy}' AS {SYSTEM_CATALOG}"
            copy.unlink()  # it stays open, and goes with its database


def _found(catalog: SystemCatalog) -> None:
    """Instead of building: it is there, unless the database was opened by others."""
    cursor = catalog._database.cursor()
    sql = "SELECT 1 FROM duckdb_schemas() WHERE database_name = ? AND schema_name = 'cat'"
    if cursor.execute(sql, [SYSTEM_CATALOG]).fetchone():
        catalog._cursor = cursor
    else:
        cursor.close()
        _build(catalog)


@pytest.fixture(scope="session")
def _copies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Copies]:
    made = _Copies(tmp_path_factory.mktemp("system"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SystemCatalog, "_build", _found)
        yield made


@pytest.fixture(scope="module")
def copied_system_catalog(_copies: _Copies) -> Iterator[None]:
    """Databases that the module opens begin with a system catalog that has been built."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "_preparation", _copies.preparation)
        yield


@pytest.fixture
def made_system_catalog(monkeypatch: pytest.MonkeyPatch) -> None:
    """Databases that the test opens build it at the first use, as the product does."""
    monkeypatch.setattr(database, "_preparation", _preparation)
