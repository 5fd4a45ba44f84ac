"""COPY FROM STDIN: the reader of its data beside a real PostgreSQL, and the messages around it."""

from __future__ import annotations

import os
import random
import struct
import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from mvserver import limits
from mvserver.copy_data.readers import CopyFormat, CopyReader, copy_reader
from mvserver.errors import SqlError
from tests.wire.client import (
    FLUSH,
    SYNC,
    Driven,
    bind,
    describe,
    error_fields,
    errors,
    execute,
    kinds,
    message,
    parse,
    query,
    split,
    tags,
)
from tests.wire.toy import ToyBackend

COLUMNS = ("a", "b", "c")
Outcome = list[tuple[str | None, ...]] | tuple[str, str, str | None]


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    for at in range(0, len(data), size):
        yield data[at : at + size]


def read(form: CopyFormat, data: bytes, size: int = 1 << 20, columns: tuple[str, ...] = COLUMNS) -> Outcome:
    """The rows, or SQLSTATE, message and context."""
    reader = copy_reader(form, columns)
    rows: list[tuple[str | None, ...]] = []

    def take(found: Iterator[list[bytes | None]]) -> None:
        rows.extend(tuple(None if value is None else value.decode() for value in row) for row in found)

    try:
        for piece in pieces(data, size):
            take(reader.feed(piece))
        take(reader.finish())
    except SqlError as error:
        shown = reader.shown
        context = f"COPY t, {reader.place}" + ("" if shown is None else f': "{shown}"')
        return error.sqlstate, error.message, context
    return rows


def options(form: CopyFormat) -> str:
    def text(value: str) -> str:
        return "E'" + value.replace("\\", "\\\\").replace("'", "\\'").replace("\t", "\\t") + "'"

    given = [f"FORMAT {form.format}"]
    if form.format != "binary":
        given += [f"DELIMITER {text(form.delimiter)}", f"NULL {text(form.null)}"]
    if form.header is not None:
        given.append(f"HEADER {'match' if form.header == 'match' else 'true'}")
    if form.format == "csv":
        given += [f"QUOTE {text(form.quote)}", f"ESCAPE {text(form.escape)}"]
        for name, flags in (("FORCE_NOT_NULL", form.force_not_null), ("FORCE_NULL", form.force_null)):
            chosen = [column for column, flag in zip(COLUMNS, flags, strict=False) if flag]
            if chosen:
                given.append(f"{name} ({', '.join(chosen)})")
    return ", ".join(given)


def postgres_reads(connection: psycopg.Connection[Any], form: CopyFormat, data: bytes) -> Outcome:
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE IF NOT EXISTS t (a text, b text, c text)")
        cursor.execute("TRUNCATE t")
        try:
            with cursor.copy(f"COPY t FROM STDIN ({options(form)})") as copy:
                copy.write(data)
        except psycopg.Error as error:
            return str(error.sqlstate), str(error.diag.message_primary), error.diag.context
        cursor.execute("SELECT a, b, c FROM t ORDER BY ctid")
        return cursor.fetchall()


@pytest.fixture(scope="module")
def postgres(postgres_server: Any) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_server.dsn, autocommit=True) as connection:
        yield connection


TEXT, CSV = CopyFormat(), CopyFormat("csv", ",", "")
CASES: list[tuple[CopyFormat, bytes]] = [
    (TEXT, b""),
    (TEXT, b"1\t2\t3\n4\t5\t6\n"),
    (TEXT, b"1\t2\t3"),
    (TEXT, b"\t\t\n"),
    (TEXT, b"\\N\t\\\\N\tN\n"),
    (TEXT, b"a\\tb\ta\\\tb\tc\\nd\n"),
    (TEXT, b"\\b\\f\\r\\v\t\\101\\7\\x41\\x4\t\\q\\x\\9\n"),
    (TEXT, b"line\\\nbreak\tb\tc\nx\ty\tz\n"),
    (TEXT, b"a\\\\\tb\\\\\\\\\tc\\\\\\\n\n"),
    (TEXT, b"1\t2\t3\r\n4\t5\t6\r\n"),
    (TEXT, b"1\t2\t3\r4\t5\t6\r"),
    (TEXT, b"1\t2\t3\n4\t5\t6\r\n"),
    (TEXT, b"1\t2\t3\r\n4\t5\t6\n"),
    (TEXT, b"1\t2\t3\r4\t5\t6\n"),
    (TEXT, b"1\t2\t3\n\\.\nrest that nobody reads"),
    (TEXT, b"1\t2\t3\n\\.rest\n"),
    (TEXT, b"1\t2\t3\\.\n"),
    (TEXT, b"1\t2\t3\\\\.\n"),
    (TEXT, b"1\t2\n"),
    (TEXT, b"1\t2\t3\n\n"),
    (TEXT, b"1\t2\t3\t4\n"),
    (TEXT, "ü\t€\t😀\n".encode()),
    (TEXT, b"1\t2\t3\n\xff\t2\t3\n"),
    (TEXT, b"1\ta\0b\t3\n"),
    (TEXT, b"x" * 300 + b"\n"),
    (TEXT, b"a\tb\tc\\"),
    (TEXT, b"a\t\\N\t\\N\\"),
    (CopyFormat(header="skip"), b"q\tr\ts\n1\t2\t3\n"),
    (CopyFormat(header="match"), b"a\tb\tc\n1\t2\t3\n"),
    (CopyFormat(header="match"), b"a\tb\n1\t2\t3\n"),
    (CopyFormat(header="match"), b"a\tx\tc\n1\t2\t3\n"),
    (CopyFormat(header="match"), b"a\t\\N\tc\n1\t2\t3\n"),
    (CopyFormat(delimiter="|", null=""), b"a||c\\|d\n"),
    (CSV, b'1,"a,b","say ""hi"""\n'),
    (CSV, b',"",x\n'),
    (CSV, b'a"b,c"d,e,f\n'),
    (CSV, b'"line\nbreak",2,3\n4,5\n'),
    (CSV, b'"line\r\nbreak",2,3\r\n4,5,"\r"\r\n'),
    (CSV, b'1,2,"open\n4,5,6\n'),
    (CSV, b"1,2,3\n4,5\r,6\n"),
    (CSV, b"1,2,3\r\n4,5,6\n"),
    (CSV, b"1,2,\n,,\n"),
    (CSV, b"\n"),
    (CSV, b"1,2,3,4\n"),
    (CopyFormat("csv", ";", "nil", quote="'", escape="\\"), b"nil;'it\\'s; \\\\ \\x';'nil'\n"),
    (CopyFormat("csv", ";", "nil", quote="'", escape="\\"), b"a\\;b;'x\ny'\n"),
    (CopyFormat("csv", ",", "", force_null=(True, False, False), force_not_null=(False, True, False)), b'"",,\n'),
    (CopyFormat("csv", ",", "", header="match"), b'"a",b,c\n1,2,3\n'),
]  # fmt: skip


@pytest.mark.postgres
@pytest.mark.parametrize("size", [1 << 20, 1])
def test_rows_and_errors_are_postgresqls(postgres: psycopg.Connection[Any], size: int) -> None:
    for form, data in CASES:
        theirs = postgres_reads(postgres, form, data)
        assert read(form, data, size) == theirs, (form, data)


def binary(*rows: tuple[bytes | None, ...], head: bytes = b"PGCOPY\n\xff\r\n\0" + bytes(8)) -> bytes:
    data = head
    for row in rows:
        data += struct.pack("!h", len(row))
        for value in row:
            data += struct.pack("!i", -1) if value is None else struct.pack("!i", len(value)) + value
    return data


BINARY = CopyFormat("binary")
BINARY_CASES = [
    binary((b"x", None, b""), (b"1", b"2", b"3")) + b"\xff\xff",
    binary((b"x", None, b"")),
    binary(),
    b"",
    binary((b"a", b"b", b"c"))[:-1],
    binary((b"a", b"b")) + b"\xff\xff",
    binary((b"a", b"b", b"c")) + b"\xff\xff more",
    binary(head=b"PGCOPY\r\n\xff\r\n" + bytes(8)),
    binary(head=b"PGCOPY\n\xff\r\n\0" + b"\0\1\0\0" + bytes(4)),
    binary(head=b"PGCOPY\n\xff\r\n\0" + b"\1\0\0\0" + bytes(4)),
    binary(head=b"PGCOPY\n\xff\r\n\0"),
    binary(head=b"PGCOPY\n\xff\r\n\0" + bytes(4)),
    binary((b"a", b"b", b"c"), head=b"PGCOPY\n\xff\r\n\0" + bytes(4) + b"\0\0\0\3abc") + b"\xff\xff",
    binary((b"a", b"b", b"c"))[:-5] + struct.pack("!i", -7),
    binary() + struct.pack("!h", -2),
]


@pytest.mark.postgres
@pytest.mark.parametrize("size", [1 << 20, 1])
def test_binary_rows_and_errors_are_postgresqls(postgres: psycopg.Connection[Any], size: int) -> None:
    for data in BINARY_CASES:
        theirs, ours = postgres_reads(postgres, BINARY, data), read(BINARY, data, size)
        if isinstance(theirs, tuple) and isinstance(ours, tuple):
            assert ours[:2] == theirs[:2], data
            if theirs[2] is not None:  # not yet in the header; in a row it also names the column that it was reading
                assert ours[2] == theirs[2].partition(", column")[0], data
        else:
            assert ours == theirs, data


@pytest.mark.postgres
def test_random_data_means_what_it_means_to_postgresql(postgres: psycopg.Connection[Any]) -> None:
    seed = int(os.environ.get("MVSERVER_TEST_SEED", "0")) or random.SystemRandom().randrange(1, 2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    forms = [
        (TEXT, [b"\t", b"\\", b"\n", b"\\N", b"a", b"1", b"x", b"\\t", b"\\\\"]),
        (CSV, [b",", b'"', b"\n", b"a", b"1", b'""', b" "]),
        (CopyFormat("csv", ";", "nil", quote="'", escape="\\"), [b";", b"'", b"\n", b"nil", b"\\", b"a", b"\\'"]),
    ]
    for _ in range(300):
        form, alphabet = rng.choice(forms)
        end = rng.choice((b"\n", b"\n", b"\r\n"))
        separator = form.delimiter.encode()
        lines = []
        for _ in range(rng.randrange(1, 4)):
            values = [b"".join(rng.choices(alphabet, k=rng.randrange(4))) for _ in range(3)]
            lines.append(separator.join(values))
        data = end.join(lines) + rng.choice((b"", end))
        theirs = postgres_reads(postgres, form, data)
        assert read(form, data, rng.choice((1, 3, 1000))) == theirs, (seed, form, data)


def test_the_end_mark_of_csv() -> None:
    """As PostgreSQL had it up to version 17; since then it is data there."""
    assert read(CSV, b"1,2,3\n\\.\nrest\n") == [("1", "2", "3")]


def consume(reader: CopyReader, data: list[bytes]) -> None:
    for piece in data:
        list(reader.feed(piece))


def test_a_row_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "COPY_LINE_BYTES_MAX", 100_000)
    reader: CopyReader = copy_reader(TEXT, COLUMNS)
    with pytest.raises(SqlError) as caught:
        consume(reader, [b"x\\\n" * 10_000] * 4)
    assert (caught.value.sqlstate, caught.value.message) == ("54000", "a row of the COPY data is too long")
    binary_reader = copy_reader(BINARY, COLUMNS)
    with pytest.raises(SqlError) as caught:
        list(binary_reader.feed(binary() + struct.pack("!hi", 3, 2**31 - 1)))
    assert caught.value.sqlstate == "54000"


def test_data_in_small_pieces_takes_linear_time() -> None:
    """A row of many pieces, each of which ends inside it, is looked at once: its square would be minutes."""
    for form, piece in ((TEXT, b"xxxxxxx\\\n"), (CSV, b'"xxxxxx\n"'), (CSV, b'x""xxxxxx')):
        reader = copy_reader(form, ("a",))
        began = time.process_time()
        consume(reader, [piece] * 50_000)
        assert time.process_time() - began < 5
        assert len(list(reader.finish())) == 1


# --- messages -------------------------------------------------------------------------------------------------------


@pytest.fixture
def backend() -> ToyBackend:
    return ToyBackend()


@pytest.fixture
def engine(backend: ToyBackend) -> Driven:
    return Driven(backend).log_in()


def data(content: bytes) -> bytes:
    return message(b"d", content)


DONE, FAIL = message(b"c"), message(b"f", b"enough\0")


def test_simple_query(engine: Driven, backend: ToyBackend) -> None:
    heard = engine.say(query("receive text 2"))
    assert kinds(heard) == "G"
    assert [body for _, body in split(heard)] == [struct.pack("!bH2h", 0, 2, 0, 0)]
    assert engine.say(data(b"1\ta\n2"), FLUSH, SYNC, data(b"\tb\n")) == b""
    heard = engine.say(DONE)
    assert kinds(heard) == "CZ"
    assert tags(heard) == ["COPY 2"]
    assert backend.received == [[b"1", b"a"], [b"2", b"b"]]


def test_extended_query(engine: Driven, backend: ToyBackend) -> None:
    heard = engine.say(parse("receive csv 1"), bind(), describe("P"), execute(), SYNC)
    assert kinds(heard) == "12nG"
    assert kinds(engine.say(data(b"x\n"), DONE, SYNC)) == "CZ"
    assert backend.received == [[b"x"]]


def test_the_client_gives_up(engine: Driven, backend: ToyBackend) -> None:
    engine.say(query("receive text 1"), data(b"1\n"))
    heard = engine.say(FAIL)
    assert kinds(heard) == "EZ"
    assert errors(heard)[0]["C"] == "57014"
    assert errors(heard)[0]["M"] == "COPY from stdin failed: enough"
    assert (backend.received, backend.open_results) == ([], 0)


def test_what_comes_behind_an_error_is_ignored(engine: Driven, backend: ToyBackend) -> None:
    heard = engine.say(query("receive text 1; insert 1"), data(b"1\n1\t2\n"), data(b"3\n"), DONE, query("insert 2"))
    assert kinds(heard) == "GEZCZ"
    assert errors(heard)[0]["W"] == 'COPY toy, line 2: "1\t2"'
    assert tags(heard) == ["INSERT 0 2"]
    assert backend.open_results == 0


def test_an_error_in_the_extended_protocol_is_skipped_until_sync(engine: Driven) -> None:
    heard = engine.say(parse("receive text 1"), bind(), execute(), data(b"1\t2\n"), data(b"x"), DONE, SYNC)
    assert kinds(heard) == "12GEZ"


def test_other_messages_end_the_connection(engine: Driven, backend: ToyBackend) -> None:
    engine.say(query("receive text 1"))
    heard = engine.say(query("insert 1"))
    assert [(error["S"], error["C"], error["M"]) for error in errors(heard)] == [
        ("FATAL", "08P01", "unexpected message type 0x51 during COPY from stdin")
    ]
    assert engine.done
    assert backend.open_results == 0


def test_a_client_that_leaves_frees_everything(engine: Driven, backend: ToyBackend) -> None:
    engine.say(query("receive text 1"), data(b"1\n"))
    assert backend.open_results == 1
    engine.machine.close()
    assert (backend.received, backend.open_results) == ([], 0)


def test_contexts_are_field_w(engine: Driven) -> None:
    engine.say(query("receive text 1"))
    heard = engine.say(data(b"\xff\n"))
    (body,) = [body for kind, body in split(heard) if kind == "E"]
    assert error_fields(body)["W"] == "COPY toy, line 1"
