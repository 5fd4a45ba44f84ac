"""The system catalog is built when it is first asked for, and again where that failed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import duckdb
import pytest

from mvserver.pgcatalog import static_data, timezones
from mvserver.pgcatalog.system import SystemCatalog
from tests.services.few_descriptors import none_left


class InMemory:
    def __init__(self) -> None:
        self.connection = duckdb.connect()
        self.connection.execute("ATTACH ':memory:' AS _system")

    def cursor(self) -> duckdb.DuckDBPyConnection:
        return self.connection.cursor()


@pytest.fixture
def catalog() -> Iterator[SystemCatalog]:
    database = InMemory()
    made = SystemCatalog(database, "_system", None, {})  # type: ignore[arg-type]
    yield made
    made.close()
    database.connection.close()


def test_what_could_not_be_built_is_built_the_next_time(
    catalog: SystemCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that could not be opened at the moment left a transaction open, with which all further ones conflicted:
    no SELECT was answered any more."""

    def refused(name: str) -> None:
        raise OSError(24, "Too many open files", name)

    with monkeypatch.context() as patched:
        patched.setattr(static_data, "rows_of", refused)
        with pytest.raises(OSError, match="Too many open files"):
            catalog.build(lambda: False)
    catalog.build(lambda: False)


def test_time_zones_that_could_not_be_read_are_read_the_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """None were known any more: each SET TimeZone was refused until the server was started again."""
    monkeypatch.setattr(timezones, "_known", {})
    with none_left(), contextlib.suppress(OSError):  # it depends on where the system has them
        assert timezones.zones() == {}
    assert timezones.zones()["europe/paris"] == "Europe/Paris"
