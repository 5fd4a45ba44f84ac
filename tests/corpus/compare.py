"""One statement at two servers, in three ways: as text, in the binary format, and with its constants as parameters."""

from __future__ import annotations

import re
from dataclasses import dataclass

import psycopg
from psycopg import pq

WAYS = ("text", "binary", "parameters")


@dataclass(frozen=True)
class Answer:
    """Names, types and modifiers of the columns, and the rows; or the SQLSTATE."""

    names: tuple[str, ...] = ()
    types: tuple[tuple[int, int], ...] = ()
    rows: tuple[tuple[bytes | None, ...], ...] = ()
    error: str = ""
    message: str = ""

    def differs(self, other: Answer, *, ordered: bool) -> str:
        """In what; empty where they are equal. Rows without an order are a set."""
        if self.error or other.error:
            return "" if self.error == other.error else "error"
        if self.names != other.names:
            return "names"
        if self.types != other.types:
            return "types" if [kind for kind, _ in self.types] != [kind for kind, _ in other.types] else "modifiers"
        if ordered:
            return "" if self.rows == other.rows else "rows"
        return "" if sorted(self.rows, key=repr) == sorted(other.rows, key=repr) else "rows"


class Client:
    def __init__(self, conninfo: str) -> None:
        self.connection = psycopg.connect(conninfo, autocommit=True)
        self.connection.execute("SET TimeZone = 'UTC'")

    def close(self) -> None:
        self.connection.close()

    def ask(self, statement: str, way: str) -> Answer | None:
        """None where there is nothing to ask in that way."""
        said = self.connection.pgconn
        if way == "text":
            return answered(said.exec_(statement.encode()))
        if way == "binary":
            return answered(said.exec_params(statement.encode(), None, result_format=1))
        text, values = parameterized(statement)
        if not values:
            return None
        return answered(said.exec_params(text.encode(), [value.encode() for value in values]))


def answered(result: pq.abc.PGresult) -> Answer:
    """What the server said: columns and rows, or an error."""
    if result.status not in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
        state = result.error_field(pq.DiagnosticField.SQLSTATE)
        message = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY)
        return Answer(error=(state or b"?").decode(), message=(message or b"").decode())
    columns = range(result.nfields)
    return Answer(
        tuple((result.fname(column) or b"").decode() for column in columns),
        tuple((result.ftype(column), result.fmod(column)) for column in columns),
        tuple(
            tuple(None if (cell := result.get_value(row, column)) is None else bytes(cell) for column in columns)
            for row in range(result.ntuples)
        ),
    )


_TOKEN = re.compile(
    r"""
    (?P<kept>"(?:[^"]|"")*"                                  # a name
        |E'(?:[^'\\]|''|\\.)*'                               # a text with escapes
        |(?:\b(?:interval|date|timestamp|timestamptz|time|bytea|float8|numeric|text|jsonb?|int|bigint|zone)\s+)'[^']*'
        |\b(?:varchar|char|numeric|decimal|timestamp|time|bit|interval)\s*\(\s*\d+\s*(?:,\s*\d+\s*)?\)
        |\b(?:ORDER|GROUP|PARTITION)\s+BY\s+\d+(?:\s+(?:ASC|DESC)\b)?(?:\s*,\s*\d+(?:\s+(?:ASC|DESC)\b)?)*
        |\bDISTINCT\s+ON\s*\(\s*\d+\s*\)
        |\bAS\s+\w+
        |\b(?:ROWS|RANGE|GROUPS)\b.*?\bROW\b                   # a frame
        |\b[A-Za-z_]\w*)                                     # a word, with its digits
    |(?P<text>'(?:[^']|'')*')
    |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)


def parameterized(statement: str) -> tuple[str, list[str]]:
    """The statement with its constants as parameters, and their values. Constants that must be constants remain: those
    behind a type's name, in modifiers, and places in ORDER BY and GROUP BY."""
    values: list[str] = []

    def replaced(found: re.Match[str]) -> str:
        if found["kept"] is not None:
            return found[0]
        values.append(found[0][1:-1].replace("''", "'") if found["text"] is not None else found[0])
        return f"${len(values)}"

    return _TOKEN.sub(replaced, statement), values
