"""A damaged file is told from a whole one, when it is opened or when it is read; nothing else is taken for damage."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from mvserver.dialect.errors.duck_errors import translate
from mvserver.errors import SqlError
from mvserver.serving.engine import database as database_module
from mvserver.serving.engine.database import Database
from spark_sinks.duckdb.ledger.damage import DamageWatch, Sign, sign_in, sign_of, user_error

_HEADERS, _BLOCK = 12_288, 262_144
_MAKING = (
    "CREATE TABLE _state.rows AS SELECT 'k' || range AS k, range AS n, md5(range::VARCHAR) AS m FROM range(30_000)",
    "CREATE UNIQUE INDEX key ON _state.rows (k)",
    "CREATE VIEW _views.v AS SELECT k, n FROM _state.rows",
    "CHECKPOINT",
)
_LOGGED = (
    "INSERT INTO _state.rows SELECT 'l' || range, range, 'x' FROM range(2_000)",
    "UPDATE _state.rows SET n = n + 1 WHERE n < 100",
)
_READS = (
    "SELECT count(*), sum(n), count(DISTINCT m) FROM _state.rows",
    "SELECT n FROM _views.v WHERE k = 'k77'",
    "SELECT max(k) FROM _views.v",
)
_WRITES = (
    "INSERT INTO _state.rows SELECT 'w' || range, range, 'y' FROM range(3_000)",
    "DELETE FROM _state.rows WHERE k IN ('k5', 'k29999')",
    "CHECKPOINT",
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    """The file and its log, as a killed process leaves them."""
    path = tmp_path_factory.mktemp("whole") / "views.duckdb"
    code = (
        "import os\nfrom pathlib import Path\nfrom mvserver.serving.engine.database import Database\n"
        f"cursor = Database.open(Path({str(path)!r})).cursor()\n"
        f"for statement in {(*_MAKING, *_LOGGED)!r}: cursor.execute(statement)\n"
        "os._exit(9)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    return path.read_bytes(), path.with_name("views.duckdb.wal").read_bytes()


def _answers(cursor: duckdb.DuckDBPyConnection, statements: tuple[str, ...]) -> list[object]:
    return [cursor.execute(statement).fetchall() for statement in statements]


def _opened(path: Path, content: bytes, log: bytes | None) -> Database:
    for leftover in path.parent.glob("views.duckdb*"):
        leftover.unlink()
    path.write_bytes(content)
    if log is not None:
        path.with_name("views.duckdb.wal").write_bytes(log)
    return Database.open(path, threads=1)


def _use(database: Database, states: list[list[object]]) -> str:
    """What came of reading and writing the file."""
    if database.set_aside is not None:
        return "set aside at once"
    with database.cursor() as cursor:
        try:
            assert _answers(cursor, _READS) in states
            _answers(cursor, _WRITES)
        except duckdb.Error as error:
            if database.damage.notice(error) and translate(error).sqlstate == "XX001":
                return "noticed"
            raise
    return "without effect"


def _comes_right(path: Path, content: bytes, log: bytes | None, states: list[list[object]]) -> str:
    with _opened(path, content, log) as database:
        found = _use(database, states)
    if found == "noticed":
        with Database.open(path) as anew:
            assert anew.set_aside is not None
            assert not path.with_name("views.duckdb.is-damaged").exists()
    return found


@pytest.fixture(scope="module")
def states(whole: tuple[bytes, bytes], tmp_path_factory: pytest.TempPathFactory) -> list[list[object]]:
    """What may be read: all that was committed, or the state before a part of the log that is torn off."""
    path = tmp_path_factory.mktemp("states") / "views.duckdb"
    found = []
    for log in (None, whole[1]):
        with _opened(path, whole[0], log) as database, database.cursor() as cursor:
            found.append(_answers(cursor, _READS))
    with _opened(path, whole[0], None) as database, database.cursor() as cursor:
        cursor.execute(_LOGGED[0])
        found.append(_answers(cursor, _READS))
    return found


def _damaged(content: bytes) -> Iterator[tuple[str, bytes]]:
    size = len(content)
    blocks = range((size - _HEADERS) // _BLOCK)
    for at in (0, 9, 20, 4_096, 5_000, 8_192, 9_000, *(_HEADERS + block * _BLOCK + 7_000 for block in blocks)):
        yield f"flip {at}", content[:at] + bytes([content[at] ^ 16]) + content[at + 1 :]
    for length in (0, 1, 100, 4_096, _HEADERS, _HEADERS + _BLOCK, size // 2, size - _BLOCK, size - 1):
        yield f"cut {length}", content[:length]
    for first, last in ((0, 4_096), (4_096, _HEADERS), (_HEADERS, _HEADERS + _BLOCK), (size // 2, size)):
        yield f"zeros {first}", content[:first] + bytes(last - first) + content[last:]


def test_each_damage_of_the_file_is_noticed_or_has_no_effect(
    whole: tuple[bytes, bytes], states: list[list[object]], tmp_path: Path
) -> None:
    path = tmp_path / "views.duckdb"
    found = {name: _comes_right(path, content, None, states) for name, content in _damaged(whole[0])}
    assert found["cut 0"] == found["flip 9"] == found["zeros 0"] == "set aside at once"
    assert list(found.values()).count("noticed") >= 5


def test_each_damage_of_the_log_is_noticed_or_leaves_an_earlier_state(
    whole: tuple[bytes, bytes], states: list[list[object]], tmp_path: Path
) -> None:
    path, (content, log) = tmp_path / "views.duckdb", whole
    places = [0, 5, *range(8, 30, 4), *range(30, 44), *range(60, len(log), max(1, len(log) // 12)), len(log) - 1]
    for at in places:
        for damaged in (
            log[:at] + bytes([log[at] ^ 1]) + log[at + 1 :],
            log[:at],
            log[:at] + bytes(200) + log[at + 200 :],
        ):
            _comes_right(path, content, damaged, states)


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        (
            "Corrupt database file: computed checksum 1 does not match stored checksum 2 in block at location 3",
            Sign.DAMAGED,
        ),
        ("TransactionContext Error: Failed to commit: Corrupt database file: computed checksum 1", Sign.DAMAGED),
        ('IO Error: Could not read enough bytes from file "/d/views.duckdb": attempted to read 9', Sign.DAMAGED),
        ('IO Error: The file "/d/views.duckdb" exists, but it is not a valid DuckDB database file!', Sign.DAMAGED),
        (
            "FATAL Error: Failed: database has been invalidated because of a previous fatal error. The database "
            'must be restarted.\nOriginal error: "Corrupt database file: computed checksum 1"',
            Sign.DAMAGED,
        ),
        (
            "FATAL Error: Failed: database has been invalidated because of a previous fatal error. The database "
            'must be restarted.\nOriginal error: "IO Error: No space left on device"',
            Sign.INVALIDATED,
        ),
        ('IO Error: Could not write file "/d/views.duckdb": No space left on device', None),
        ('IO Error: Could not read enough bytes from file "/d/spill/duckdb_temp_storage-0.tmp": attempted', None),
        ("Out of Memory Error: failed to allocate data of size 16.0 MiB", None),
        ('IO Error: Could not set lock on file "/d/views.duckdb": Conflicting lock is held', None),
        ("Conversion Error: Could not convert string 'Corrupt database file: computed' to INT32", None),
        ("Invalid Input Error: Corrupt database file: computed checksum 1", None),
    ],
)
def test_what_is_a_sign_of_damage(text: str, sign: Sign | None) -> None:
    assert sign_in(text) is sign
    assert (sign_of(pa.ArrowException(text)) or (None,))[0] is sign
    told: list[str] = []
    watch = DamageWatch()
    watch.subscribe(told.append)
    assert watch.notice(ValueError(text)) is (sign is not None)
    watch.notice(ValueError(text))
    assert len(told) == (sign is not None)
    if sign is not None:
        assert user_error(ValueError(text)) is not None


@pytest.mark.parametrize(
    "text",
    [
        "IO Error: Cannot open file: No space left on device",
        'Failure while replaying WAL file "x": Out of Memory Error: could not allocate block',
        "IO Error: Trying to read a database file with version number 99, but we can only read version 64",
        "IO Error: something that nobody has thought of",
    ],
)
def test_other_errors_at_the_opening_leave_the_file_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    path = tmp_path / "views.duckdb"
    Database.open(path).close()

    def fails(*_: object) -> None:
        raise duckdb.IOException(text)

    monkeypatch.setattr(database_module, "_connect", fails)
    with pytest.raises(SqlError) as raised:
        Database.open(path)
    assert raised.value.sqlstate == "58030"
    assert "left as it is" in (raised.value.hint or "")
    assert path.exists()
    assert not list(tmp_path.glob("*.damaged-*"))


def test_a_file_that_takes_the_place_of_a_marked_one_is_kept(tmp_path: Path) -> None:
    path, backup = tmp_path / "views.duckdb", tmp_path / "backup"
    Database.open(path).close()
    backup.write_bytes(path.read_bytes())
    Database.watch_of(path).notice(ValueError("Corrupt database file: computed checksum 1"))
    backup.replace(path)
    with Database.open(path) as opened:
        assert opened.set_aside is None
    assert not list(tmp_path.glob("*.is-damaged"))


def test_a_disk_that_damages_each_file_stops_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "views.duckdb"
    monkeypatch.setattr("mvserver.limits.DAMAGED_FILES_MAX", 2)
    damage: Callable[[], int] = lambda: path.write_bytes(b"x" * 5_000)  # noqa: E731
    for _ in range(2):
        damage()
        Database.open(path).close()
    damage()
    with pytest.raises(SqlError, match="XX001: the file of the views was damaged 3 times"):
        Database.open(path)
    assert path.exists()
