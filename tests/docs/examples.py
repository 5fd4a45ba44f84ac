"""The SQL examples of the documents: how they are written, and how they are run.

A page is one psql session, from its first block to its last, on a server that holds nothing. Its conventions:

- Each ``sql`` block is run, statement by statement; a statement ends with a semicolon at the end of a line, outside of
  ``$$``. Lines that
  begin with a backslash are psql's and are left out, but ``\\gset`` at a statement's end keeps the columns of its one
  row, and ``:'name'`` stands for them after that.
- A ``text`` block right after an ``sql`` block is what psql prints for the last statement, without what follows the
  rows. Views follow their sources, so a SELECT is repeated until it is so, for a bounded time. ``…`` in a cell stands
  for any text.
- ``<!-- error 42P07 -->`` before a block: its last statement fails with this SQLSTATE; with a colon and a message in
  it, also with this message.
- ``<!-- kafka -->`` before a block: it needs a broker; ``localhost:9092`` is replaced by the address of one. Such a
  page is left out where there is none. ``<!-- kinesis -->`` is the same for an emulator at ``localhost:4567``.
- ``<!-- postgres -->`` before a block: it needs a PostgreSQL; ``localhost:5432`` is replaced by the address of one.
  ``<!-- in postgres -->``: it is run there, and not by this server. ``<!-- registry -->`` is the same for a schema
  registry at ``localhost:8081``.
- Behind ``COPY … FROM STDIN;`` stand the rows, up to ``\\.``, as in psql.
- What is not to be run (grammar, output) stands in a block of another language, or of none.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from psycopg import Connection
from psycopg.pq import ExecStatus, PGresult

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
BROKER = "localhost:9092"
KINESIS = "localhost:4567"
POSTGRES = "localhost:5432"
REGISTRY = "localhost:8081"
SERVICES = ("kafka", "kinesis", "postgres", "registry")
TRUE_WITHIN_S = 20.0

_BLOCK = re.compile(
    r"(?P<marks>(?:^<!-- (?:kafka|kinesis|postgres|registry|in postgres|error [^\n]*) -->\n)*)"
    r"^```sql\n(?P<sql>.*?)^```$"
    r"(?:\n\s*^```text\n(?P<result>.*?)^```$)?",
    re.DOTALL | re.MULTILINE,
)
_ERROR = re.compile(r"<!-- error (?P<code>\w{5})(?:: (?P<message>.*?))? -->")
_GSET = re.compile(r"\s*\\gset$")
_COPY_IN = re.compile(r"COPY .* FROM STDIN\b", re.DOTALL)
_ROWS_END = "\\."
_VARIABLE = re.compile(r":'(\w+)'")


@dataclass(frozen=True)
class Block:
    line: int
    statements: tuple[str, ...]
    services: frozenset[str]  # of SERVICES
    elsewhere: bool  # run in PostgreSQL
    error: tuple[str, str | None] | None
    result: tuple[tuple[str, ...], ...] | None  # the first row is the names


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _BLOCK.finditer(text):
        error = _ERROR.search(match["marks"])
        found.append(
            Block(
                line=text.count("\n", 0, match.start("sql")),
                statements=tuple(_statements(match["sql"])),
                services=frozenset(name for name in SERVICES if f"{name} -->" in match["marks"]),
                elsewhere="<!-- in postgres -->" in match["marks"],
                error=None if error is None else (error["code"], error["message"]),
                result=None if match["result"] is None else _table(match["result"]),
            )
        )
    return found


def _statements(sql: str) -> Iterator[str]:
    lines: list[str] = []
    left = iter(sql.splitlines())
    for line in left:
        code = re.sub(r"\s+--\s.*$|^--.*$", "", line).rstrip()
        if not code or (code.startswith("\\") and not lines):
            continue
        lines.append(code)
        if "\n".join(lines).count("$$") % 2:
            continue  # a text in $$ may have lines that end with semicolons
        if code.endswith(";") or _GSET.search(code):
            rows: list[str] = []
            if _COPY_IN.match("\n".join(lines)) and f"\n{_ROWS_END}\n" in sql:
                rows = [*iter(left.__next__, _ROWS_END), ""]
            yield "\n".join([*lines, *rows])
            lines = []
    assert not lines, f"a statement without its end: {lines}"


def _table(text: str) -> tuple[tuple[str, ...], ...]:
    frame = re.compile(r"[-+]+|\(\d+ rows?\)|")
    kept = [line for line in text.splitlines() if frame.fullmatch(line.strip()) is None]
    return tuple(tuple(cell.strip() for cell in line.split("|")) for line in kept)


class PageSession:
    """Runs one page's blocks in order over one connection. ``addresses`` are put in the place of those of the page;
    ``source`` is the PostgreSQL that a store of the page has."""

    def __init__(
        self,
        connection: Connection[tuple[object, ...]],
        page: Path,
        addresses: Mapping[str, str],
        source: Connection[Any] | None = None,
    ) -> None:
        self._connection = connection
        self._page = page.name
        self._addresses = addresses
        self._source = source
        self._variables: dict[str, str] = {}

    def run(self, block: Block) -> None:
        if block.elsewhere:
            assert self._source is not None
            for statement in block.statements:
                self._source.execute(statement)
            return
        for number, statement in enumerate(block.statements, start=1):
            where = f"{self._page}, block after line {block.line}: {statement}"
            last = number == len(block.statements)
            if last and block.error is not None:
                self._expect_error(statement, block.error, where)
            elif last and block.result is not None:
                self._expect_rows(statement, block.result, where)
            else:
                self._keep(statement, self._execute(statement, where))

    def _execute(self, statement: str, where: str) -> PGresult:
        result = self._send(statement)
        if result.status not in (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK):
            raise AssertionError(f"{where}\n{result.error_message.decode()}")
        return result

    def _send(self, statement: str) -> PGresult:
        text = _GSET.sub("", statement)
        text = _VARIABLE.sub(lambda match: f"'{self._variables[match[1]]}'", text)
        for address, actual in self._addresses.items():
            text = text.replace(address, actual)
        text, _, rows = text.partition(";\n") if _COPY_IN.match(text) else (text, "", "")
        connection = self._connection.pgconn
        result = connection.exec_(text.encode())
        if result.status == ExecStatus.COPY_IN:
            connection.put_copy_data(rows.encode())
            connection.put_copy_end()
            result = connection.get_result() or result
            connection.get_result()
        return result

    def _keep(self, statement: str, result: PGresult) -> None:
        if _GSET.search(statement):
            (row,) = _rows(result)[1:]
            self._variables.update(zip(_rows(result)[0], row, strict=True))

    def _expect_error(self, statement: str, error: tuple[str, str | None], where: str) -> None:
        result = self._send(statement)
        assert result.status == ExecStatus.FATAL_ERROR, f"{where}\nshould fail with {error}"
        code = (result.error_field(ord("C")) or b"").decode()
        message = (result.error_field(ord("M")) or b"").decode()
        assert (code, error[1] and message) == error, f"{where}\nfails with {code}: {message}"

    def _expect_rows(self, statement: str, expected: tuple[tuple[str, ...], ...], where: str) -> None:
        deadline = time.monotonic() + TRUE_WITHIN_S
        while True:
            found = _rows(self._execute(statement, where))
            if _same(found, expected):
                return
            if time.monotonic() > deadline or not statement.upper().startswith("SELECT"):
                raise AssertionError(f"{where}\nprints {found}\nnot    {expected}")
            time.sleep(0.1)


def _rows(result: PGresult) -> tuple[tuple[str, ...], ...]:
    """As psql prints them, the names first."""
    columns = range(result.nfields)
    names = tuple((result.fname(column) or b"").decode() for column in columns)
    rows = [
        tuple((result.get_value(row, column) or b"").decode().strip() for column in columns)
        for row in range(result.ntuples)
    ]
    return (names, *rows)


def _same(found: tuple[tuple[str, ...], ...], expected: tuple[tuple[str, ...], ...]) -> bool:
    if len(found) != len(expected):
        return False
    return all(
        len(row) == len(wanted) and all(_fits(cell, pattern) for cell, pattern in zip(row, wanted, strict=True))
        for row, wanted in zip(found, expected, strict=True)
    )


def _fits(cell: str, pattern: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("…"))), cell, re.DOTALL) is not None
