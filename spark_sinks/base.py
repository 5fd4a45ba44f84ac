"""Protocols every store kind implements, and the frozen values that cross between stores, ledger and pipelines.

A *position* is how far a reader has read, as a JSON object whose shape belongs to the store kind:
Kafka ``{"topic_id": "...", "partitions": {"0": 17}}`` (next offset to read); FILE: see ``spark_sinks.file.source``.
A range is (start, end), start inclusive and end exclusive in that sense.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from mvserver.errors import SqlError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from spark_sinks.duckdb.changes.logs import Log
    from spark_sinks.schema_registry.book import SchemaBook

Position = Mapping[str, Any]
KeyedRecord = tuple[bytes | None, bytes]
"""A key, and a value."""
METADATA = "metadata"  # a column of what a SourceReader reads
RECORD_HEADERS = "headers"  # the same, of kinds that write headers


@dataclass(frozen=True)
class Entity:
    """A topic or directory. ``details`` are shown by DESCRIBE ENTITY (e.g. partitions, replicas, configs)."""

    name: str
    details: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class EntityRecord:
    """A record as PRINT ENTITY shows it: bytes, undecoded."""

    key: bytes | None
    value: bytes | None
    position: str  # e.g. "2:17" (partition:offset) or "a.json:3" (file:line)
    timestamp_ms: int | None


@dataclass(frozen=True)
class DeclaredColumn:
    """A column of a relation over an entity that says itself what it has; ``type`` as a statement spells it."""

    name: str
    type: str
    not_null: bool = False
    key: bool = False  # part of the primary key of a changelog
    spelling: str | None = None  # of the field of records, where that is not the name


class StoreClient(Protocol):
    """Effects on a store that need no Spark. All methods raise SqlError: 08006 with the store's name when it does not
    answer within its timeout, 42704 for an entity that does not exist, 0A000 for what the kind cannot do."""

    def check(self) -> None:
        """The store answers; used by CREATE STORE."""

    def list_entities(self) -> Sequence[Entity]: ...

    def describe_entity(self, name: str) -> Entity: ...

    def entity_exists(self, name: str) -> bool: ...

    def check_create_entity(self, name: str, properties: Mapping[str, Any]) -> None:
        """All the reasons for which create_entity would refuse, without effect."""

    def create_entity(self, name: str, properties: Mapping[str, Any]) -> None: ...

    def drop_entity(self, name: str, properties: Mapping[str, Any]) -> None: ...

    def print_entity(
        self, name: str, *, from_beginning: bool, limit: int | None, stopped: Callable[[], bool]
    ) -> Iterator[EntityRecord]:
        """Records as they come, until ``limit`` or until ``stopped`` is true (asked at least each 200 ms)."""

    def insert_record(self, name: str, value: str | None, key: str | None, properties: Mapping[str, Any]) -> None:
        """A record without a value deletes its key from the changelogs over the entity."""

    def write_records(self, writes: Sequence[tuple[str, Iterable[bytes]]]) -> None:
        """The values of records without key, for each entity; all of them or, where this raises, none that a reader
        would see. What an iterable raises ends the writing too."""

    def position(self, name: str, starting: str) -> Position:
        """``earliest`` or ``latest`` as exact positions now; or of a moment, milliseconds since 1970 as text, where the
        kind starts at moments."""

    def close(self) -> None: ...


class KeyedCopies(Protocol):
    """Of a client whose entities take records with keys."""

    def write_keyed_records(self, writes: Sequence[tuple[str, Iterable[KeyedRecord]]]) -> None:
        """As ``write_records``."""


class KnownColumns(Protocol):
    """Of a client whose entities have columns: what a declaration over them is made of, or compared with."""

    def columns(self, name: str, *, changelog: bool) -> Sequence[DeclaredColumn]:
        """Of a relation that is declared without columns."""

    def check_declared(
        self, name: str, fields: Mapping[str, Sequence[str]], primary_key: Sequence[str] | None
    ) -> Sequence[str]:
        """Refuses what the entity does not have; returns warnings. ``fields`` are the declared columns, with the fields
        of those that are a STRUCT; ``primary_key`` is a changelog's, None for a stream."""


@dataclass(frozen=True)
class SourceHealth:
    """What a look at the source says: ``ok``, ``stalled`` (does not answer; may come back) or ``failed`` (will not)."""

    state: str
    cause: str | None = None
    latest: Position | None = None


@dataclass(frozen=True)
class RecordOrder:
    """How the records of a frame stand to each other, as Spark SQL expressions over its columns.

    A ``segment`` (a partition, a file) has an order of its own by ``place``, a bigint that grows with the record's
    place in it; segments are ordered by :meth:`Positions.segment_ranks`. To be selected from a frame inside a
    micro-batch: not every expression is one that a streaming frame may have. A ``partition`` has a watermark of its
    own; its name is one of :meth:`Positions.partitions`.
    """

    segment: str
    place: str
    partition: str = "'0'"


class Positions(Protocol):
    """The arithmetic of a source's positions: no call reaches the source or changes anything."""

    @property
    def counts_records(self) -> bool:
        """Whether :meth:`distance` counts records, and does not estimate them."""

    def distance(self, start: Position, end: Position) -> int:
        """About how many records lie between: gaps in offsets count, files are estimated by their size."""

    def reached(self, position: Position, target: Position) -> bool:
        """True when everything before target is before position."""

    def limit(self, start: Position, end: Position, records: int) -> Position:
        """An end at most about ``records`` after start and not after end: rounds of a backfill."""

    def divisible(self, start: Position, end: Position, least: int) -> bool:
        """Whether fewer records can be read from start on; a range of at most ``least`` is not divided."""

    def advance(self, start: Position, end: Position) -> Position:
        """Where a reader that stood at ``start`` stands when it has read up to ``end``."""

    def initial(self, positions: Sequence[Position]) -> Position:
        """Where a pipeline begins whose ledger has no position: at or before every given one where that is possible."""

    def partitions(self, position: Position) -> Mapping[str, int]:
        """How far each partition is read: numbers that grow."""

    def segment_ranks(self, segments: Sequence[str]) -> Sequence[int]:
        """A number for each segment, such that they come in the order in which the source is read."""


class Health(Protocol):
    """What a source is asked about itself. Each call may reach it."""

    def look(self, position: Position) -> SourceHealth:
        """Asked every few seconds; a re-created topic, offsets that are gone and a dead broker are told apart."""

    def explain_failure(self, error: BaseException, position: Position) -> Exception:
        """The named error (SqlError) behind Spark's own."""

    def check_history(self, start: Position) -> None:
        """Raises SqlError (55000) when the source no longer has all that is behind ``start``: a rebuild would be
        partial."""

    def remaining(self, start: Position) -> tuple[Position, str | None]:
        """What the source still has of all that is behind ``start``, as a position to rebuild from, and what is
        missing in words (None: nothing)."""


class Rounds(Protocol):
    """How records come from a source of which Spark has no stream: in bounded batches, each asked for."""

    def wait(self, timeout_s: float) -> None:
        """Until there may be records, at most so long."""

    def next_batch(self, start: Position, records: int) -> Position:
        """The end of what is there now, at most so many records; equal to ``start`` where there is nothing. It is what
        :meth:`SourceReader.batch_end` answers until it is asked again."""

    def bounded(self, start: Position, end: Position, records: int) -> Position:
        """An end at most about ``records`` after start and not after end, for a :meth:`SourceReader.batch` beside the
        rounds. May read the source to find it, where :meth:`Positions.limit` cannot know it."""


@dataclass(frozen=True)
class KeptHistory:
    """What a source keeps for a reader, as the last look at it has found: under which name, and how many bytes."""

    name: str
    bytes: int | None  # None where nobody has looked, or nothing is kept


class HeldHistory(Protocol):
    """A source that keeps its history for those alone who have said where they are, and no longer than they need it."""

    def is_settled(self, position: Position) -> bool:
        """Whether it is known where a reader begins. It is not of one that begins with all that there is."""

    def settle(self, position: Position, assign: Callable[[Position], None]) -> None:
        """Gives ``assign`` the exact position at which that reader begins: all from there on is kept for it. This may
        take as long as copying what there is; 57014 where the reader is given up."""

    def release(self, positions: Callable[[], Sequence[Position]]) -> None:
        """What is before all of these positions may go. They are durable; those who have none are not asked for."""

    def forget(self) -> None:
        """Nobody reads the source by this reader any more: what is kept for it there goes. The reader is closed."""

    def kept(self) -> KeptHistory:
        """What the source keeps, without asking it."""


class LoggedRows(Protocol):
    """Rows that other queries of the server make, in a log that DuckDB has."""

    log: Log

    def evaluated(self, query: Callable[[str], str], start: Position, end: Position) -> pa.Table | None:
        """What a query over these rows, which it is given as text, makes of them; None where one of them fails its
        expressions."""


class LiveReading(Protocol):
    """How Spark reads a source by tasks that go on, one for each partition, so that a record is taken as it comes."""

    @property
    def refusal(self) -> str | None:
        """Why the source is not to be read so, by its store's word; None where it is."""

    def stream(self, spark: SparkSession, start: Position) -> AbstractContextManager[DataFrame]:
        """A frame for the real-time trigger, to be used inside the ``with`` alone. Raises the named error where the
        source cannot be read from ``start`` on."""

    def position(self, start: Position, places: Mapping[str, int]) -> Position:
        """Where a reader stands whose next places of the partitions of ``start`` are these."""

    def passed(self, start: Position, end: Position) -> Position | None:
        """As far as from ``start`` to ``end`` no partition has a record: asks the source, at most a moment. None where
        it did not answer in that."""


class SourceReader(Protocol):
    """One entity as Spark reads it. The frames have the raw columns ``key binary``, ``value binary``, ``position
    string`` (for people: "partition:offset" or file name), ``record_time timestamp`` (the record's own time) and
    ``metadata`` (a struct of what the store knows of the record, :attr:`StoreKind.metadata`), plus ``event_columns``
    where the format is typed by Spark itself (Parquet)."""

    @property
    def positions(self) -> Positions: ...

    @property
    def health(self) -> Health: ...

    @property
    def rounds(self) -> Rounds | None:
        """None for a source that :meth:`stream` reads."""

    @property
    def logged(self) -> LoggedRows | None:
        """None for a source outside of the server."""

    @property
    def held(self) -> HeldHistory | None:
        """None for a source that keeps its history by itself."""

    @property
    def live(self) -> LiveReading | None:
        """None for a source that is read in batches alone."""

    @property
    def schemas(self) -> SchemaBook | None:
        """None where the records' schemas are in no registry."""

    @property
    def record_order(self) -> RecordOrder: ...

    def adopt(self, position: Position, *, fresh: bool) -> Position:
        """A store's answer to ``position`` as a position of this reader; ``fresh``: nothing has been read yet."""

    def stream(
        self, spark: SparkSession, start: Position, *, records_per_trigger: int
    ) -> AbstractContextManager[DataFrame]:
        """A streaming frame, to be used inside the ``with`` alone. At its end the Spark query is stopped already."""

    def batch(self, spark: SparkSession, start: Position, end: Position) -> DataFrame: ...

    def batch_end(self, checkpoint: str, batch_id: int, start: Position) -> Position:
        """The end of a running micro-batch, from the checkpoint's offset log, given where it starts."""

    def confirm(self, position: Position) -> None:
        """Asked after a batch was read and before it counts: the source is still the one that the position belongs to.
        Raises the named error."""

    def rejected_positions(self, records: Sequence[tuple[str, bytes | None]]) -> Sequence[str]:
        """Where rejected records stand, for people and as their identity ("partition:offset", "file:line"), given the
        frame's ``position`` and the first bytes of each."""

    def give_up(self) -> None:
        """Before ``close``: a ``batch`` that is being made ends soon, and raises 57014."""

    def close(self) -> None:
        """Lets go of all that is held of the source, when the pipeline, the query or the read ends. It is opened again
        where the reader is used again."""


class KeptPosition(Protocol):
    """The position of a query's source in the server's ledger, for a sink whose store has no transactions."""

    def read(self) -> Position | None: ...

    def write(self, position: Position) -> None: ...


class SinkProgress(Protocol):
    """How far a query has written, which lives with the sink: in the transaction of what is written."""

    def committed_position(self, *, expected: bool = False) -> Position | None:
        """``expected``: the query has written before, so that none would be a loss and is an error."""

    def renew(self, position: Position) -> None:
        """Keeps the position from being forgotten while nothing is written."""

    def close(self) -> None: ...


Header = tuple[str, bytes | None]
"""A name, which others may have, too, and a value."""


@dataclass(frozen=True)
class RefusedRecords:
    """What becomes of records that a sink refuses: they go to the entity ``letters``, or, where it is None, nowhere."""

    letters: str | None


@dataclass(frozen=True)
class Refusal:
    """Why a record is not written to where it belongs; ``in_key``: its key is to blame, too."""

    reason: str
    in_key: bool = False


@dataclass(frozen=True)
class Refusals:
    """Of records that may be refused one by one: what is refused so far, None for the others. ``keyed`` records are
    rows that their keys tell apart: instead of one that is refused, its key is deleted."""

    found: Sequence[Refusal | None]
    keyed: bool

    def with_one(self, number: int, refusal: Refusal) -> Refusals:
        return Refusals((*self.found[:number], refusal, *self.found[number + 1 :]), self.keyed)


class RefusedLetterError(SqlError):
    """A record that was refused cannot be written among the dead letters either."""


@dataclass(frozen=True)
class SinkRecords:
    """Records in the order in which they are written, a list for each of their parts. ``places`` tell each from all
    others that the query writes, in the same way when it is written again; only some sinks need them. ``folders`` are
    those below the entity that they are written to, where it has some. ``headers`` are for sinks whose kind has them
    (``StoreKind.written_headers``). Without ``refusals``, a record that cannot be written is an error."""

    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    timestamps_ms: Sequence[int | None]
    places: Sequence[str] = ()
    folders: Sequence[str] = ()
    headers: Sequence[Sequence[Header]] = ()
    refusals: Refusals | None = None

    def __post_init__(self) -> None:
        count = len(self.keys)
        optional = (each or self.keys for each in (self.places, self.folders, self.headers))
        others = (self.values, self.timestamps_ms, *optional)
        if any(len(other) != count for other in others):
            raise ValueError("the parts of records differ in length")


class TransactionalSink(SinkProgress, Protocol):
    """A sink of records. It keeps the position in the transaction of the records; or in a :class:`KeptPosition` behind
    them, where its kind does not write exactly once."""

    def write(self, records: SinkRecords, position: Position) -> None: ...


@dataclass(frozen=True)
class TableShape:
    """A table that queries write to. A field that is not nullable takes no NULL. Rows are told apart, and so replaced
    and deleted, by ``key``; they are only added where it is empty."""

    schema: pa.Schema
    key: tuple[str, ...] = ()


class TableSink(SinkProgress, Protocol):
    """A sink of rows. The position is in the transaction of the rows, with the query's id."""

    def write(self, rows: pa.Table, gone: pa.Table, position: Position) -> None:
        """In one transaction: ``rows`` replace those of the same key, or are added where the table has no key; those
        of the keys ``gone`` are deleted. Each key is at most once in both. 40001 where another one has written for the
        same query, so that nothing is written twice."""


class TableClient(Protocol):
    """Of a client whose entities are tables that queries write to."""

    def check_table(self, name: str, shape: TableShape, properties: Mapping[str, str]) -> bool:
        """Whether the table is there. 42804, 42703 or 42P16 where it is and does not take such rows, column by column;
        else what :meth:`create_table` would refuse."""

    def create_table(self, name: str, shape: TableShape, properties: Mapping[str, str]) -> None: ...
