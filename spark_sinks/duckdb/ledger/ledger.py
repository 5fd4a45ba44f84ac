"""The ledger: what has been committed, in the transaction of the rows themselves.

It, not Spark's checkpoint, is the truth about progress. A batch is identified by pipeline, checkpoint generation, batch
id and its range of positions: the same range again is skipped, any other overlap or gap is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.base import Position
from spark_sinks.duckdb.changes import logs
from spark_sinks.duckdb.state import windows
from spark_sinks.duckdb.statements import Statements, Together

HISTORY_ROWS_MAX = 200  # ledger rows kept per pipeline, for people; only the last is needed

_SCHEMA = """
CREATE SCHEMA IF NOT EXISTS "_ledger";
CREATE SCHEMA IF NOT EXISTS "_state";
CREATE SCHEMA IF NOT EXISTS "_views";
CREATE TABLE IF NOT EXISTS "_ledger".pipelines (
    pipeline_id VARCHAR PRIMARY KEY, generation BIGINT NOT NULL, position VARCHAR NOT NULL, epoch BIGINT NOT NULL);
CREATE TABLE IF NOT EXISTS "_ledger".batches (
    pipeline_id VARCHAR NOT NULL, generation BIGINT NOT NULL, batch_id BIGINT NOT NULL, start_position VARCHAR NOT NULL,
    end_position VARCHAR NOT NULL, records BIGINT NOT NULL, committed_at TIMESTAMPTZ NOT NULL);
CREATE TABLE IF NOT EXISTS "_ledger".subscribers (
    query_id VARCHAR PRIMARY KEY, version BIGINT NOT NULL, pipeline_id VARCHAR NOT NULL, position VARCHAR NOT NULL,
    epoch BIGINT NOT NULL, filled BOOLEAN NOT NULL, note VARCHAR, failure VARCHAR, changed_at TIMESTAMPTZ);
CREATE TABLE IF NOT EXISTS "_ledger".rejected_rows (
    relation_id VARCHAR NOT NULL, position VARCHAR NOT NULL, raw BLOB, raw_bytes BIGINT, reason VARCHAR NOT NULL,
    rejected_at TIMESTAMPTZ NOT NULL, PRIMARY KEY (relation_id, position));
CREATE TABLE IF NOT EXISTS "_ledger".outboxes (
    query_id VARCHAR PRIMARY KEY, incarnation VARCHAR NOT NULL, last BIGINT NOT NULL);
CREATE TABLE IF NOT EXISTS "_ledger".sinks (query_id VARCHAR PRIMARY KEY, position VARCHAR NOT NULL);
CREATE TABLE IF NOT EXISTS "_ledger".histories (
    reader_id VARCHAR PRIMARY KEY, store_id VARCHAR NOT NULL, entity VARCHAR NOT NULL);
CREATE TABLE IF NOT EXISTS "_ledger".shared_states (
    state_table VARCHAR PRIMARY KEY, shared_table VARCHAR NOT NULL, slot BIGINT NOT NULL);
"""

_FEW = 30  # a list of more costs more to look into for each row than to join

_ONE_OF_FEW = "list_contains($2::VARCHAR[], query_id)"
_ONE_OF_MANY = "query_id IN (SELECT unnest($2::VARCHAR[]))"


@dataclass(frozen=True)
class PipelineRow:
    generation: int
    position: Position
    epoch: int


@dataclass(frozen=True)
class SubscriberRow:
    query_id: str
    version: int
    pipeline_id: str
    position: Position
    epoch: int
    filled: bool  # it has reached the end its source had when the query was made
    note: str | None
    failure: str | None


@dataclass(frozen=True)
class RejectedRow:
    relation_id: str
    position: str
    raw: bytes | None
    raw_bytes: int | None  # the whole length: raw may be cut
    reason: str


@dataclass(frozen=True)
class HistoryRow:
    """What a store keeps for a reader alone: ``reader_id`` is a pipeline's id, or that of a query that writes."""

    reader_id: str
    store_id: str
    entity: str


@dataclass(frozen=True)
class LedgerEntry:
    """One pipeline batch about to be committed."""

    pipeline_id: str
    generation: int
    batch_id: int
    start: Position
    end: Position
    records: int


def _moved(query_ids: Sequence[str], position: Position) -> tuple[str, list[Any]]:
    """The statement and its parameters."""
    moved = 'UPDATE "_ledger".subscribers SET position = $1, epoch = epoch + 1, changed_at = now() WHERE '
    one = _ONE_OF_FEW if len(query_ids) <= _FEW else _ONE_OF_MANY
    return moved + one, [encode(position), list(query_ids)]


def encode(position: Position) -> str:
    """One text per position, so that texts compare equal where positions do."""
    return json.dumps(position, sort_keys=True, separators=(",", ":"))


def decode(text: str) -> Position:
    value: Mapping[str, Any] = json.loads(text)
    return value


def create_tables(cursor: duckdb.DuckDBPyConnection) -> None:
    cursor.execute(_SCHEMA + logs.SCHEMA + windows.SCHEMA)


class Ledger:
    """Statements over a handed cursor; the caller owns the transaction and the commit lock.

    The rows of pipelines are remembered as the open transaction has them: nobody else writes them, and each batch asks
    for one. So whoever rolls back says so. ``closing`` is what is written just before the COMMIT, by the owner.
    """

    def __init__(self, cursor: duckdb.DuckDBPyConnection, statements: Statements | None = None) -> None:
        self._cursor = cursor
        self._statements = statements or Statements(cursor)
        self._pipelines: dict[str, PipelineRow] = {}
        self.closing = Together(self._statements)

    def rolled_back(self) -> None:
        self._pipelines.clear()
        self.closing.forget()

    def pipeline(self, pipeline_id: str) -> PipelineRow | None:
        known = self._pipelines.get(pipeline_id)
        if known is None:
            rows = self._cursor.execute(
                'SELECT generation, position, epoch FROM "_ledger".pipelines WHERE pipeline_id = $1', [pipeline_id]
            ).fetchall()  # to the end: an unfinished result blocks the connection
            if not rows:
                return None
            known = self._pipelines[pipeline_id] = PipelineRow(rows[0][0], decode(rows[0][1]), rows[0][2])
        return known

    def begin_generation(self, pipeline_id: str, position: Position) -> int:
        """A new checkpoint starts at ``position``; returns its generation number."""
        self._pipelines.pop(pipeline_id, None)
        self._forget_batches(pipeline_id)
        rows = self._cursor.execute(
            'INSERT INTO "_ledger".pipelines VALUES ($1, 1, $2, 0) ON CONFLICT (pipeline_id) '
            "DO UPDATE SET generation = generation + 1, position = excluded.position RETURNING generation",
            [pipeline_id, encode(position)],
        ).fetchall()
        return int(rows[0][0])

    def _forget_batches(self, pipeline_id: str) -> None:
        """All but the last ones, of whichever generations they are."""
        first_beyond = self._cursor.execute(
            'SELECT generation, batch_id FROM "_ledger".batches WHERE pipeline_id = $1 '
            "ORDER BY generation DESC, batch_id DESC LIMIT 1 OFFSET $2",
            [pipeline_id, HISTORY_ROWS_MAX],
        ).fetchall()
        for generation, batch_id in first_beyond:
            self._cursor.execute(
                'DELETE FROM "_ledger".batches WHERE pipeline_id = $1 AND '
                "(generation < $2 OR (generation = $2 AND batch_id <= $3))",
                [pipeline_id, generation, batch_id],
            )

    def subscribers(self) -> list[SubscriberRow]:
        rows = self._cursor.execute(
            'SELECT query_id, version, pipeline_id, position, epoch, filled, note, failure FROM "_ledger".subscribers'
        ).fetchall()
        return [SubscriberRow(r[0], r[1], r[2], decode(r[3]), r[4], r[5], r[6], r[7]) for r in rows]

    def add_subscriber(
        self, query_id: str, version: int, pipeline_id: str, position: Position, note: str | None = None
    ) -> None:
        windows.forget(self._cursor, query_id)
        self._cursor.execute(
            'INSERT OR REPLACE INTO "_ledger".subscribers VALUES ($1, $2, $3, $4, 0, false, $5, NULL, NULL)',
            [query_id, version, pipeline_id, encode(position), note],
        )

    def drop_subscriber(self, query_id: str) -> None:
        for table in ("subscribers", "outboxes", "sinks"):
            self._cursor.execute(f'DELETE FROM "_ledger".{table} WHERE query_id = $1', [query_id])
        windows.forget(self._cursor, query_id)

    def sink_position(self, query_id: str) -> Position | None:
        """How far a query has written its source to a sink without transactions; or where it begins, if its source
        keeps its history from there on."""
        rows = self._cursor.execute('SELECT position FROM "_ledger".sinks WHERE query_id = $1', [query_id]).fetchall()
        return decode(rows[0][0]) if rows else None

    def set_sink_position(self, query_id: str, position: Position) -> None:
        self._cursor.execute('INSERT OR REPLACE INTO "_ledger".sinks VALUES ($1, $2)', [query_id, encode(position)])

    def sinks(self) -> list[str]:
        """The queries that have such a position."""
        return [row[0] for row in self._cursor.execute('SELECT query_id FROM "_ledger".sinks').fetchall()]

    def hold_history(self, row: HistoryRow) -> None:
        self._cursor.execute(
            'INSERT OR REPLACE INTO "_ledger".histories VALUES ($1, $2, $3)', [row.reader_id, row.store_id, row.entity]
        )

    def drop_history(self, reader_id: str) -> None:
        self._cursor.execute('DELETE FROM "_ledger".histories WHERE reader_id = $1', [reader_id])

    def histories(self) -> list[HistoryRow]:
        rows = self._cursor.execute('SELECT reader_id, store_id, entity FROM "_ledger".histories').fetchall()
        return [HistoryRow(*row) for row in rows]

    def set_filled(self, query_id: str) -> None:
        self._cursor.execute('UPDATE "_ledger".subscribers SET filled = true WHERE query_id = $1', [query_id])

    def set_failure(self, query_id: str, failure: str | None) -> None:
        self._cursor.execute('UPDATE "_ledger".subscribers SET failure = $2 WHERE query_id = $1', [query_id, failure])

    def unused_pipelines(self) -> list[str]:
        """Those that no query is subscribed to: they were for push queries alone."""
        rows = self._cursor.execute(
            'SELECT pipeline_id FROM "_ledger".pipelines '
            'WHERE pipeline_id NOT IN (SELECT pipeline_id FROM "_ledger".subscribers)'
        ).fetchall()
        return [row[0] for row in rows]

    def drop_pipeline(self, pipeline_id: str) -> None:
        self._pipelines.pop(pipeline_id, None)
        for table in ("pipelines", "batches"):
            self._cursor.execute(f'DELETE FROM "_ledger".{table} WHERE pipeline_id = $1', [pipeline_id])

    def drop_rejected(self, relation_id: str) -> None:
        self._cursor.execute('DELETE FROM "_ledger".rejected_rows WHERE relation_id = $1', [relation_id])

    def already_committed(self, entry: LedgerEntry) -> bool:
        """True: this very range is in the ledger. Raises 40001 on any other overlap or gap."""
        row = self.pipeline(entry.pipeline_id)
        if row is not None and row.generation == entry.generation and encode(row.position) == encode(entry.start):
            return False
        found = self._cursor.execute(
            'SELECT 1 FROM "_ledger".batches WHERE pipeline_id = $1 AND generation = $2 AND batch_id = $3 '
            "AND start_position = $4 AND end_position = $5",
            [entry.pipeline_id, entry.generation, entry.batch_id, encode(entry.start), encode(entry.end)],
        ).fetchall()
        if found:
            return True
        raise SqlError(
            sqlstates.SERIALIZATION_FAILURE,
            f"batch {entry.batch_id} of generation {entry.generation} does not follow the ledger",
            detail=f"It reads from {encode(entry.start)}; the ledger is at "
            f"{encode(row.position) if row else 'no position'} of generation {row.generation if row else 0}.",
        )

    def advance(self, entry: LedgerEntry) -> None:
        """Written when the transaction closes."""
        known, end = self._pipelines.pop(entry.pipeline_id, None), encode(entry.end)
        self.closing.add(
            'UPDATE "_ledger".pipelines SET position = $2, epoch = epoch + 1 WHERE pipeline_id = $1',
            [entry.pipeline_id, end],
        )
        self.closing.add(
            'INSERT INTO "_ledger".batches VALUES ($1, $2, $3, $4, $5, $6, now())',
            [entry.pipeline_id, entry.generation, entry.batch_id, encode(entry.start), end, entry.records],
        )
        if known is not None:
            self._pipelines[entry.pipeline_id] = PipelineRow(known.generation, entry.end, known.epoch + 1)
        if entry.batch_id % HISTORY_ROWS_MAX == HISTORY_ROWS_MAX - 1:
            self._forget_batches(entry.pipeline_id)

    def move_subscribers(self, query_ids: Sequence[str], position: Position) -> None:
        if query_ids:
            self._statements.execute(*_moved(query_ids, position))

    def move_at_close(self, query_ids: Sequence[str], position: Position) -> None:
        """The same, written when the transaction closes; once in a transaction."""
        if query_ids:
            self.closing.add(*_moved(query_ids, position))

    def reject(self, rows: Sequence[RejectedRow]) -> None:
        """Keeps rejected rows; one that is known already (another view met it, or a rebuild) stays as it was."""
        if rows:
            self._cursor.executemany(
                'INSERT OR IGNORE INTO "_ledger".rejected_rows VALUES ($1, $2, $3, $4, $5, now())',
                [[r.relation_id, r.position, r.raw, r.raw_bytes, r.reason] for r in rows],
            )
